package import Protocol

/// What a glove says of itself: characteristic 0002, or `#CONFIG` over USB.
package struct GloveConfiguration: Sendable, Hashable {
    package enum Invalid: Error, Sendable, Hashable, CustomStringConvertible {
        case notJSON(String)
        /// What it says instead of left or right.
        case sideUnknown(String?)

        package var description: String {
            switch self {
            case .notJSON(let why): "the glove's configuration can't be read: \(why)"
            case .sideUnknown(let text):
                "the glove doesn't know whether it is a left or a right one (it says \(text.map { "'\($0)'" } ?? "nothing"))"
            }
        }
    }

    package var side: GloveSide
    package var serial: String?
    package var firmware: String?
    package var hardware: String?
    /// 4, 5 or 6; nil for the first gloves with five sensors.
    package var schema: Int?
    /// Samples a second.
    package var rate: Double
    package var samplesPerPacket: Int?
    /// Rows, columns and so on of a sample; [5] for the first gloves.
    package var shape: [Int]
    /// The fingers in the order of the values.
    package var fingers: [String]
    /// False when it says that it has no inertial sensor.
    package var hasIMU: Bool
    /// What it says of its calibration and its factory test; nil when it says nothing.
    package var isCalibrated: Bool?
    /// The text was cut off, as BlueZ does after some 510 bytes; what was lost has the standard value.
    package var isTruncated: Bool

    /// The one with five sensors.
    package var isLegacy: Bool { shape == [5] }
    package var valuesPerSample: Int { shape.reduce(1) { $0 &* $1 } }

    /// Reads the text as it came.
    ///
    /// `hint` is the side of the advertised name; it is taken only when the text was cut off before its side.
    package init(_ text: [UInt8], hint: GloveSide? = nil) throws(Invalid) {
        let (members, isTruncated) = try Self.members(text)
        self.isTruncated = isTruncated
        let said = members["side"]?.string
        if let side = said.flatMap({ GloveSide(rawValue: $0.lowercased()) }) {
            self.side = side
        } else if said == nil, isTruncated, let hint {
            side = hint
        } else {
            throw .sideUnknown(said)
        }
        serial = Self.text(members["serial"]) ?? Self.text(members["device_id"])
        firmware = Self.text(members["fw_rev"])
        hardware = Self.text(members["hw_rev"])
        let objects = members["channels"]?.array?.compactMap(\.object) ?? []
        schema = members["schema_ver"]?.integer.flatMap { Int(exactly: $0) }
        let isLegacy = !objects.isEmpty || members["values_per_sample"]?.integer == 5
        if !isLegacy && schema == nil { schema = Self.schema(ofFormat: members["packet_format"]?.string) }
        let rate = members["rate_hz"]?.double ?? 100
        self.rate = rate.isFinite && (1...2000).contains(rate) ? rate : 100
        samplesPerPacket = members["samples_per_packet"]?.integer.flatMap { Int(exactly: $0) }
        hasIMU = !isLegacy && members["imu"] != .bool(false)
        isCalibrated = members["cal_valid"]?.bool
        shape = isLegacy ? [5] : Self.shape(members["sample_shape"]) ?? [5, 4, 4]
        if isLegacy { schema = nil }
        fingers = Self.fingers(members["channels"]?.array ?? [], side: side, isLegacy: isLegacy, count: shape[0])
    }

    // MARK: Names

    /// `<finger>` of the first gloves, else `<finger>_<row>_<column>`, in the order of the values.
    package var tactileChannels: [String] {
        guard !isLegacy else { return fingers }
        let rest = shape.dropFirst()
        return fingers.flatMap { finger in
            rest.reduce([finger]) { names, count in
                names.flatMap { name in (0..<count).map { "\(name)_\($0)" } }
            }
        }
    }

    package func channels(_ modality: GloveModality) -> [SensorFormat.Channel] {
        let names =
            switch modality {
            case .tactile: tactileChannels
            case .imu: ["ax", "ay", "az", "gx", "gy", "gz"]
            case .mag: ["mx", "my", "mz"]
            }
        return names.map { SensorFormat.Channel(name: $0, unit: "count") }
    }

    /// For a person.
    package var label: String {
        var text = "OGLO glove, \(side.rawValue)"
        if let serial { text += ", serial \(serial)" }
        if let firmware { text += ", firmware \(firmware)" }
        text += schema.map { ", schema \($0)" } ?? ", five sensors"
        return isTruncated ? text + " (its configuration was cut off)" : text
    }

    // MARK: Reading

    private static func members(_ text: [UInt8]) throws(Invalid) -> ([String: JSONValue], isTruncated: Bool) {
        // Some firmwares fill the attribute up with zeros.
        let text = Array(text.prefix { $0 != 0 })
        let failure: String
        do {
            guard case .object(let members) = try JSONText.decode(JSONValue.self, from: text) else {
                throw Invalid.notJSON("it is no object")
            }
            return (members, false)
        } catch let error as JSONText.Malformed {
            failure = error.description
        } catch let error as Invalid {
            throw error
        } catch {
            failure = "\(error)"
        }
        guard let whole = wholeMembers(of: text),
            case .object(let members) = try? JSONText.decode(JSONValue.self, from: whole)
        else { throw .notJSON(failure) }
        return (members, true)
    }

    /// The text up to its last whole member, with a closing brace; nil when it isn't the beginning of an object.
    static func wholeMembers(of text: [UInt8]) -> [UInt8]? {
        guard text.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") else { return nil }
        var (depth, inText, isEscaped) = (0, false, false)
        var end: Int?
        for (index, byte) in text.enumerated() {
            if inText {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    inText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): inText = true
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth == 0 { return Array(text[...index]) }
            case UInt8(ascii: ","): if depth == 1 { end = index }
            default: break
            }
        }
        return end.map { Array(text[..<$0]) + [UInt8(ascii: "}")] }
    }

    private static func text(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text): text.isEmpty ? nil : text
        case .integer(let number): "\(number)"
        default: nil
        }
    }

    private static func schema(ofFormat text: String?) -> Int? {
        switch text {
        case "packed12_v5": 5
        case "packed12_v6": 6
        default: nil
        }
    }

    /// At most 1024 values, so that a damaged text doesn't ask for memory.
    private static func shape(_ value: JSONValue?) -> [Int]? {
        guard let items = value?.array, (1...4).contains(items.count) else { return nil }
        let sizes = items.compactMap { $0.integer.flatMap { Int(exactly: $0) } }.filter { (1...64).contains($0) }
        guard sizes.count == items.count, sizes.reduce(1, *) <= 1024 else { return nil }
        return sizes
    }

    private static func fingers(_ items: [JSONValue], side: GloveSide, isLegacy: Bool, count: Int) -> [String] {
        let named = items.compactMap { $0.string ?? $0["loc"]?.string }.map { $0.lowercased() }
        if named.count == count, Set(named).count == count, named.allSatisfy({ !$0.isEmpty }) { return named }
        // The first gloves sent thumb to pinky, whatever the hand.
        let standard = isLegacy ? GloveSide.right.fingers : side.fingers
        return (0..<count).map { $0 < standard.count ? standard[$0] : "f\($0)" }
    }
}
