/// A name with a checked form.
///
/// Decoding refuses what isn't legal, so an illegal name can't enter the program.
package protocol Identifier: RawRepresentable<String>, Codable, Hashable, Comparable, Sendable,
    CustomStringConvertible
{
    /// Whether a text is legal.
    static func isLegal(_ text: String) -> Bool

    /// What is legal, in words.
    static var rule: String { get }

    init(unchecked rawValue: String)
}

extension Identifier {
    package init?(rawValue: String) {
        guard Self.isLegal(rawValue) else { return nil }
        self.init(unchecked: rawValue)
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = Self(rawValue: text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "'\(text.prefix(80))' is no \(Self.self): legal is \(Self.rule)")
        }
        self = value
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    package var description: String { rawValue }
}

/// What makes a legal file name that never leaves its folder: any script, dots and spaces are welcome.
enum FileNameRule {
    static let text = "1 to 64 bytes without '/', control characters, a leading dot or space at either end"

    static func holds(_ text: String) -> Bool {
        let bytes = text.utf8
        guard (1...64).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return false }
        guard bytes.first != UInt8(ascii: " "), bytes.last != UInt8(ascii: " ") else { return false }
        return text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != "/" }
    }
}

/// The name of a host, unique in the rig.
package struct HostID: Identifier {
    package let rawValue: String
    package init(unchecked rawValue: String) { self.rawValue = rawValue }
    package static let rule = FileNameRule.text
    package static func isLegal(_ text: String) -> Bool { FileNameRule.holds(text) }
}

/// The name of a stream, unique on its host.
package struct StreamID: Identifier {
    package let rawValue: String
    package init(unchecked rawValue: String) { self.rawValue = rawValue }
    package static let rule = FileNameRule.text
    package static func isLegal(_ text: String) -> Bool { FileNameRule.holds(text) }
}

/// The label of a sitting.
package struct SessionID: Identifier {
    package let rawValue: String
    package init(unchecked rawValue: String) { self.rawValue = rawValue }
    package static let rule = FileNameRule.text
    package static func isLegal(_ text: String) -> Bool { FileNameRule.holds(text) }
}

/// The name of an episode: `ep_<yyyyMMdd_HHmmss UTC>_<6 hex>`.
package struct EpisodeID: Identifier {
    package let rawValue: String
    package init(unchecked rawValue: String) { self.rawValue = rawValue }
    package static let rule = "ep_<yyyyMMdd>_<HHmmss>_<6 hexadecimal digits>"

    package static func isLegal(_ text: String) -> Bool {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "ep" else { return false }
        guard parts[1].utf8.count == 8, parts[2].utf8.count == 6, parts[3].utf8.count == 6 else { return false }
        let digits = (parts[1] + parts[2]).utf8.allSatisfy { (48...57).contains($0) }
        return digits && parts[3].utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}

/// 32 hexadecimal digits that name a machine, a coordinator, a take or a command once and for all.
package struct UniqueID: Identifier {
    package let rawValue: String
    package init(unchecked rawValue: String) { self.rawValue = rawValue }
    package static let rule = "32 lower-case hexadecimal digits"

    package static func isLegal(_ text: String) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// A new one of 128 random bits.
    package static func random() -> UniqueID {
        var generator = SystemRandomNumberGenerator()
        return UniqueID(bytes: (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    /// From exactly 16 bytes.
    package init(bytes: [UInt8]) {
        precondition(bytes.count == 16, "a UniqueID has 16 bytes, not \(bytes.count)")
        let digits = Array("0123456789abcdef")
        rawValue = String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    package var bytes: [UInt8] {
        let digits = rawValue.utf8.map { $0 < 58 ? $0 - 48 : $0 - 87 }
        return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
