/// Finds a few whole numbers and texts among the members of one JSON object, without building the rest of it.
///
/// No number goes through a Double. Nested values are skipped by their brackets, so their inside isn't judged.
struct RowScan {
    enum Value: Equatable {
        case integer(Int64)
        case text(String)
        /// A number with a fraction or out of Int64, or another kind of value.
        case other
    }

    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    private init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The members whose keys are asked for; nil when the bytes aren't a JSON object.
    static func members(_ keys: [String], of bytes: UnsafeRawBufferPointer) -> [String: Value]? {
        var scan = RowScan(bytes)
        return scan.object(keys.map { ($0, Array($0.utf8)) })
    }

    private mutating func object(_ keys: [(String, [UInt8])]) -> [String: Value]? {
        guard take(UInt8(ascii: "{")) else { return nil }
        var found: [String: Value] = [:]
        if take(UInt8(ascii: "}")) { return atEnd ? found : nil }
        while true {
            skipSpace()
            guard let name = string(), take(UInt8(ascii: ":")) else { return nil }
            let key = keys.first { $0.1.elementsEqual(bytes[name]) }?.0
            guard let value = value(wanted: key != nil) else { return nil }
            if let key { found[key] = value }
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "}")) else { return nil }
            return atEnd ? found : nil
        }
    }

    private mutating func value(wanted: Bool) -> Value? {
        skipSpace()
        guard place < bytes.count else { return nil }
        switch bytes[place] {
        case UInt8(ascii: "\""):
            guard let range = string() else { return nil }
            return wanted ? .text(String(decoding: bytes[range], as: UTF8.self)) : .other
        case UInt8(ascii: "{"), UInt8(ascii: "["): return nested() ? .other : nil
        default:
            let start = place
            while place < bytes.count, !RowScan.endsScalar(bytes[place]) { place += 1 }
            return place > start ? scalar(start..<place) : nil
        }
    }

    private func scalar(_ range: Range<Int>) -> Value? {
        let text = bytes[range]
        for word in ["true", "false", "null", "NaN", "Infinity", "-Infinity"]
        where text.elementsEqual(word.utf8) { return .other }
        guard let first = text.first, first == UInt8(ascii: "-") || (48...57).contains(first) else { return nil }
        var value: Int64 = 0
        let isNegative = first == UInt8(ascii: "-")
        for byte in isNegative ? text.dropFirst() : text {
            guard (48...57).contains(byte) else {
                // A fraction or an exponent; anything else is no number at all.
                let isLegal = text.allSatisfy { (48...57).contains($0) || [43, 45, 46, 69, 101].contains($0) }
                return isLegal ? .other : nil
            }
            let (tenfold, overflow) = value.multipliedReportingOverflow(by: 10)
            let (next, carry) = tenfold.subtractingReportingOverflow(Int64(byte - 48))
            if overflow || carry { return .other }
            value = next
        }
        guard text.count > (isNegative ? 1 : 0) else { return nil }
        if isNegative { return .integer(value) }
        // Summed up as a negative number, whose range is the larger one.
        return value == .min ? .other : .integer(-value)
    }

    /// Skips a list or an object.
    private mutating func nested() -> Bool {
        var depth = 0
        while place < bytes.count {
            switch bytes[place] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                guard string() != nil else { return false }
                continue
            default: break
            }
            place += 1
            if depth == 0 { return true }
        }
        return false
    }

    /// The inside of a string, with its escapes as they are.
    private mutating func string() -> Range<Int>? {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") else { return nil }
        place += 1
        let start = place
        while place < bytes.count {
            if bytes[place] == UInt8(ascii: "\\") {
                place += 2
                continue
            }
            if bytes[place] == UInt8(ascii: "\"") {
                place += 1
                return start..<(place - 1)
            }
            place += 1
        }
        return nil
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard place < bytes.count, bytes[place] == byte else { return false }
        place += 1
        return true
    }

    private mutating func skipSpace() {
        while place < bytes.count, bytes[place] == 0x20 || (0x09...0x0D).contains(bytes[place]) { place += 1 }
    }

    private var atEnd: Bool {
        bytes[place...].allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
    }

    private static func endsScalar(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte) || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}")
            || byte == UInt8(ascii: "]")
    }
}
