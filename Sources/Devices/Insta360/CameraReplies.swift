/// What a response or a notification of the camera says; what can't be read is nil.
package enum CameraReplies {
    /// The sentence of an error response: field 2, such as "msg execute err.".
    package static func words(_ body: [UInt8]) -> String? {
        ProtobufFields(body)?.text(2).map { String($0.prefix(200)) }
    }

    /// The clip's path on the card, out of the response to a stop; nil when it holds none.
    ///
    /// The path stands in some field that differs with the firmware, so it is looked for: a text that begins with `/DCIM/`
    /// and ends with `.mp4` or `.insv`.
    package static func clipPath(_ body: [UInt8]) -> String? {
        guard let fields = ProtobufFields(body) else { return bareClipPath(body) }
        for (_, value) in fields.fields {
            guard case .bytes(let bytes) = value else { continue }
            if let path = path(bytes) ?? ProtobufFields(bytes).flatMap({ _ in clipPath(bytes) }) { return path }
        }
        return nil
    }

    private static func path(_ bytes: [UInt8]) -> String? {
        guard bytes.count <= 255, let text = String(validating: bytes, as: UTF8.self), text.hasPrefix("/DCIM/"),
            !text.contains(".."), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        let lower = text.lowercased()
        return lower.hasSuffix(".mp4") || lower.hasSuffix(".insv") ? text : nil
    }

    /// Out of bytes that are no protobuf: the first run of printable characters that is a path.
    private static func bareClipPath(_ bytes: [UInt8]) -> String? {
        bytes.split { $0 <= 0x20 || $0 >= 0x7F }.lazy.compactMap { path(Array($0)) }.first
    }

    package struct Battery: Sendable, Hashable {
        /// Percent.
        package var level: Int
        package var isCharging: Bool

        package init(level: Int, isCharging: Bool) {
            self.level = level
            self.isCharging = isCharging
        }
    }

    package static func battery(_ body: [UInt8]) -> Battery? {
        guard let fields = ProtobufFields(body), let level = fields.number(1), level <= 100 else { return nil }
        return Battery(level: Int(level), isCharging: fields.number(2) == 1)
    }

    /// What the camera tells of its state, when asked and by itself.
    package struct Capture: Sendable, Hashable {
        /// 0 is idle, 1 just after a recording; the others are kinds of recording.
        package var state: UInt64
        /// The camera's own count of what is left on its card; the unit isn't published.
        package var free: UInt64?
        package var fileCount: UInt64?

        package init(state: UInt64, free: UInt64? = nil, fileCount: UInt64? = nil) {
            self.state = state
            self.free = free
            self.fileCount = fileCount
        }

        package var isRecording: Bool { state > 1 }
    }

    /// Flat in a notification, in field 1 of a response.
    package static func capture(_ body: [UInt8]) -> Capture? {
        guard let outer = ProtobufFields(body) else { return nil }
        let fields = outer.message(1) ?? outer
        // An empty message is one with all its fields at zero.
        return Capture(state: fields.number(1) ?? 0, free: fields.number(4), fileCount: fields.number(5))
    }
}

/// What the camera says by itself.
package enum CameraNotice: Sendable, Hashable {
    case batteryLow
    case storageFull
    /// It stopped recording, for whatever reason.
    case captureStopped
    case capture(CameraReplies.Capture)
    case authorization(CameraAuthorization)
    case other(UInt16)

    package init(_ message: CameraMessage) {
        switch message.code {
        case 0x2004: self = .batteryLow
        case 0x2007: self = .storageFull
        case 0x2009: self = .captureStopped
        case 0x2010:
            guard let capture = CameraReplies.capture(message.body) else {
                self = .other(message.code)
                return
            }
            self = .capture(capture)
        case 0x008A: self = .authorization(CameraAuthorization(result: message.body))
        default: self = .other(message.code)
        }
    }
}

/// Whether the camera lets this program command it, and by what name it refuses.
package enum CameraAuthorization: String, Sendable, Hashable, CaseIterable {
    case granted
    /// It doesn't know this program yet: a person has to say yes on the camera.
    case required
    /// A person is being asked.
    case pending
    case rejected
    case timedOut
    case cancelled
    case systemBusy
    case connectedByOtherDevice
    case unknown

    /// The response to the question for a permission: 1 granted, 2 required, 3 pending, 4 rejected, 5 expired.
    package init(check body: [UInt8]) {
        switch ProtobufFields(body)?.number(1) {
        case 1: self = .granted
        case 2: self = .required
        case 3: self = .pending
        case 4: self = .rejected
        case 5: self = .timedOut
        case 6: self = .systemBusy
        case 7: self = .connectedByOtherDevice
        default: self = .unknown
        }
    }

    /// What came of asking the person: 1 granted; 0, which an empty message says too, rejected.
    package init(result body: [UInt8]) {
        guard let fields = ProtobufFields(body) else {
            self = .unknown
            return
        }
        switch fields.number(1) ?? 0 {
        case 0: self = .rejected
        case 1: self = .granted
        case 2: self = .timedOut
        case 3: self = .cancelled
        case 4: self = .systemBusy
        case 5: self = .connectedByOtherDevice
        default: self = .unknown
        }
    }

    /// Cause and cure, for the refusals.
    package var words: (cause: String, cure: String) {
        switch self {
        case .granted: ("it gave its permission", "nothing is needed")
        case .required:
            ("the camera doesn't know this host yet", "confirm the connection on the camera's screen and arm again")
        case .pending: ("the camera still waits for a person's yes", "confirm the connection on its screen")
        case .rejected:
            ("the connection was rejected on the camera", "arm again and confirm it on the camera's screen")
        case .timedOut:
            ("nobody confirmed the connection on the camera in time", "arm again and confirm it on its screen")
        case .cancelled: ("the confirmation was cancelled on the camera", "arm again and confirm it on its screen")
        case .systemBusy:
            ("the camera is busy with something else", "leave its menus, let it finish saving, and arm again")
        case .connectedByOtherDevice:
            (
                "the camera belongs to another device at the moment",
                "close the Insta360 app on phones near by, or take the camera out of the other host's configuration"
            )
        case .unknown:
            ("the camera's answer about its permission can't be understood", "restart the camera; update its firmware")
        }
    }
}
