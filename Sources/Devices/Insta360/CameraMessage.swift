/// The inside of a message frame: a head of 16 bytes and a protobuf body.
///
/// Head: total size as a little-endian u32, [4] mode 04, [7…8] the command of a request, the status of a response or
/// the code of a notification, [9] = 02 for protobuf, [10] the sequence, [13] = 80 for the last fragment. A response
/// doesn't repeat the command: it belongs to the request with its sequence.
package struct CameraMessage: Sendable, Hashable {
    static let headSize = 16
    /// The sequence of what the camera says by itself.
    package static let unsolicited: UInt8 = 255

    package var code: UInt16
    package var sequence: UInt8
    package var body: [UInt8]

    package init(code: UInt16, sequence: UInt8, body: [UInt8] = []) {
        self.code = code
        self.sequence = sequence
        self.body = body
    }

    /// Reads the inside of a frame; nil when it is no message.
    package init?(inside: [UInt8]) {
        var reader = ByteReader(inside)
        guard let size = reader.u32(), size >= UInt32(Self.headSize), let mode = reader.u8(), mode == 4,
            reader.bytes(2) != nil, let code = reader.u16(), reader.u8() != nil, let sequence = reader.u8(),
            reader.bytes(5) != nil, let length = Int(exactly: size).map({ $0 - Self.headSize }),
            let body = reader.bytes(length)
        else { return nil }
        self.init(code: code, sequence: sequence, body: body)
    }

    package var inside: [UInt8] {
        let size = UInt32(clamping: Self.headSize + body.count)
        let length = (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * UInt32($0))) }
        return length + [4, 0, 0, UInt8(code & 0xFF), UInt8(code >> 8), 2, sequence, 0, 0, 0x80, 0, 0] + body
    }

    /// The inside of the frame that keeps the link alive: mode 05, nothing in it.
    package static let heartbeat: [UInt8] = [7, 0, 0, 0, 5, 0, 0]
    /// The answer to the camera's handshake.
    package static let handshakeAnswer = [UInt8](repeating: 0, count: 7)
    /// What the camera's handshake holds.
    package static let handshakeCall: [UInt8] = Array(repeatElement([0xAB, 0xBA], count: 5).joined())

    package static func isHeartbeat(_ inside: [UInt8]) -> Bool { inside.count == 7 && inside[4] == 5 }
}

/// What the camera is asked for.
package enum CameraCommand: Sendable, Hashable {
    /// Normal video instead of photos, time lapse and the like.
    case setVideoMode
    case start
    case stop
    case captureStatus
    case battery
    case checkAuthorization(id: String)
    /// Lets the camera ask the person who holds it.
    case requestAuthorization

    package var code: UInt16 {
        switch self {
        case .setVideoMode: 0x0002
        case .start: 0x0004
        case .stop: 0x0005
        case .captureStatus: 0x000F
        case .battery: 0x0019
        case .checkAuthorization: 0x0027
        case .requestAuthorization: 0x0056
        }
    }

    package var body: [UInt8] {
        switch self {
        case .setVideoMode: return [0x0A, 0x04, 0x08, 0x29, 0x10, 0x00]
        case .start, .requestAuthorization: return [0x08, 0x01]
        case .stop, .captureStatus, .battery: return []
        case .checkAuthorization(let id):
            var fields = ProtobufFields()
            fields.add(1, .bytes(Array(id.utf8.prefix(64))))
            fields.add(2, .number(2))
            return fields.bytes
        }
    }

    /// For a person.
    package var name: String {
        switch self {
        case .setVideoMode: "the change to video"
        case .start: "the start"
        case .stop: "the stop"
        case .captureStatus: "the question whether it records"
        case .battery: "the question for its battery"
        case .checkAuthorization: "the question for its permission"
        case .requestAuthorization: "the request for its permission"
        }
    }
}

/// The status of a response.
package enum CameraStatus: Sendable, Hashable, CustomStringConvertible {
    case ok, badRequest, error, notImplemented, other(UInt16)

    package init(_ code: UInt16) {
        switch code {
        case 0x00C8: self = .ok
        case 0x0190: self = .badRequest
        case 0x01F4: self = .error
        case 0x01F5: self = .notImplemented
        default: self = .other(code)
        }
    }

    package var code: UInt16 {
        switch self {
        case .ok: 0x00C8
        case .badRequest: 0x0190
        case .error: 0x01F4
        case .notImplemented: 0x01F5
        case .other(let code): code
        }
    }

    package var description: String {
        switch self {
        case .ok: "ok"
        case .badRequest: "bad request (400)"
        case .error: "error (500)"
        case .notImplemented: "not implemented (501)"
        case .other(let code): "status \(code)"
        }
    }
}
