internal import Protocol

/// JSON as bytes, by hand: a row of a sensor at 1 kHz can't wait for an encoder of objects.
extension [UInt8] {
    mutating func appendText(_ text: StaticString) {
        append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Digits of a whole number; never through Double.
    mutating func appendJSON(_ value: Int64) { appendNumber { ShortestDecimal.write(value, to: $0) } }

    /// The shortest digits that read back as the same number; whole numbers below 2^53 without a point.
    ///
    /// JSON knows neither NaN nor infinity: they become null.
    mutating func appendJSON(_ value: Double) { appendNumber { ShortestDecimal.write(value, to: $0) } }

    private mutating func appendNumber(_ write: (UnsafeMutablePointer<UInt8>) -> Int) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: ShortestDecimal.most) { bytes in
            guard let start = bytes.baseAddress else { return }
            append(contentsOf: UnsafeBufferPointer(start: start, count: write(start)))
        }
    }

    /// A text with its quotes.
    mutating func appendJSON(_ text: String) {
        let hex = Array("0123456789abcdef".utf8)
        append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
            case 0x0A: appendText("\\n")
            case 0x0D: appendText("\\r")
            case 0x09: appendText("\\t")
            case 0..<0x20:
                appendText("\\u00")
                append(hex[Int(byte >> 4)])
                append(hex[Int(byte & 15)])
            default: append(byte)
            }
        }
        append(UInt8(ascii: "\""))
    }

    /// Any value, keys sorted.
    mutating func appendJSON(_ value: JSONValue) {
        switch value {
        case .null: appendText("null")
        case .bool(let value): value ? appendText("true") : appendText("false")
        case .integer(let value): appendJSON(value)
        case .number(let value): appendJSON(value)
        case .string(let value): appendJSON(value)
        case .array(let items):
            append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { append(UInt8(ascii: ",")) }
                appendJSON(item)
            }
            append(UInt8(ascii: "]"))
        case .object(let members):
            append(UInt8(ascii: "{"))
            for (index, key) in members.keys.sorted().enumerated() {
                if index > 0 { append(UInt8(ascii: ",")) }
                appendJSON(key)
                append(UInt8(ascii: ":"))
                appendJSON(members[key] ?? .null)
            }
            append(UInt8(ascii: "}"))
        }
    }
}
