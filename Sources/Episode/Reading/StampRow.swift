/// What every dialect's line says of one sample; numbers exactly as they stand there.
package struct StampRow: Sendable, Hashable {
    /// Of the file, from 1.
    package var line: Int64
    /// Nil where the dialect leaves it to the order of lines.
    package var frame: Int64?
    /// Nanoseconds of the clock that the file's domain names; with our own and SyncField's files the host's.
    package var capture: Int64
    package var uncertainty: Int64?
    package var device: Int64?
    /// It is a sensor's row.
    package var hasChannels: Bool
}

/// Finds the keys of a row in its text, without making an object of it.
///
/// The text between the keys that are looked for is only matched by its brackets and quotes. No input can make it trap.
struct RowScanner {
    enum Outcome {
        case row(StampRow)
        case blank
        case malformed(String)
    }

    /// The row has the keys of SyncField Swift up to 0.4: `frame` and `timestamp_ns`.
    private(set) var hasOldKeys = false
    /// A stamp had a point or an exponent, so it went through a Double.
    private(set) var isInexact = false
    /// The domain of the last row that named one, as it stands in the text.
    private(set) var domain: [UInt8] = []

    private enum Key {
        case frame, oldFrame, capture, oldCapture, uncertainty, device, channels, domain, other
    }

    private static let keys: [(StaticString, Key)] = [
        ("frame_number", .frame), ("capture_ns", .capture), ("uncertainty_ns", .uncertainty),
        ("device_timestamp_ns", .device), ("channels", .channels), ("clock_domain", .domain), ("frame", .oldFrame),
        ("timestamp_ns", .oldCapture),
    ]

    mutating func scan(_ text: UnsafeRawBufferPointer, line: Int64) -> Outcome {
        hasOldKeys = false
        isInexact = false
        var cursor = Cursor(text)
        cursor.skipSpace()
        if cursor.isAtEnd { return .blank }
        guard cursor.take(UInt8(ascii: "{")) else { return .malformed("it isn't a JSON object") }
        var row = StampRow(line: line, frame: nil, capture: 0, uncertainty: nil, device: nil, hasChannels: false)
        var capture: Int64?
        var old = (frame: Int64?.none, capture: Int64?.none)
        cursor.skipSpace()
        if !cursor.take(UInt8(ascii: "}")) {
            while true {
                cursor.skipSpace()
                guard let name = cursor.takeString() else { return .malformed("a key is missing or torn") }
                cursor.skipSpace()
                guard cursor.take(UInt8(ascii: ":")) else { return .malformed("a colon is missing") }
                cursor.skipSpace()
                switch Self.key(name) {
                case .frame: row.frame = integer(&cursor)
                case .capture: capture = integer(&cursor)
                case .uncertainty: row.uncertainty = integer(&cursor)
                case .device: row.device = integer(&cursor)
                case .oldFrame: old.frame = integer(&cursor)
                case .oldCapture: old.capture = integer(&cursor)
                case .channels:
                    row.hasChannels = cursor.peek == UInt8(ascii: "{")
                    cursor.skipValue()
                case .domain: readDomain(&cursor)
                case .other: cursor.skipValue()
                }
                if cursor.failed { return .malformed("a value is missing or torn") }
                cursor.skipSpace()
                if cursor.take(UInt8(ascii: ",")) { continue }
                guard cursor.take(UInt8(ascii: "}")) else { return .malformed("the line ends inside the object") }
                break
            }
        }
        cursor.skipSpace()
        guard cursor.isAtEnd else { return .malformed("something follows the object") }
        if capture == nil, let oldCapture = old.capture {
            hasOldKeys = true
            capture = oldCapture
            row.frame = row.frame ?? old.frame
        }
        guard let capture else { return .malformed("it has no capture_ns that is a whole number of nanoseconds") }
        row.capture = capture
        return .row(row)
    }

    private static func key(_ name: UnsafeRawBufferPointer) -> Key {
        for (text, key) in keys where text.utf8CodeUnitCount == name.count {
            let pattern = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
            if pattern.elementsEqual(name) { return key }
        }
        return .other
    }

    private mutating func integer(_ cursor: inout Cursor) -> Int64? {
        switch cursor.takeNumber() {
        case .whole(let value): return value
        case .broken(let value):
            isInexact = true
            return Int64(exactly: value.rounded())
        case .none: return nil
        }
    }

    private mutating func readDomain(_ cursor: inout Cursor) {
        guard cursor.peek == UInt8(ascii: "\""), let text = cursor.takeString() else { return cursor.skipValue() }
        if !text.elementsEqual(domain) { domain = Array(text) }
    }
}

extension RowScanner {
    /// A place in the text; it never leaves it.
    private struct Cursor {
        enum Number {
            case whole(Int64)
            case broken(Double)
            case none
        }

        private let text: UnsafeRawBufferPointer
        private var index = 0
        private(set) var failed = false

        init(_ text: UnsafeRawBufferPointer) { self.text = text }

        var isAtEnd: Bool { index >= text.count }
        var peek: UInt8? { index < text.count ? text[index] : nil }

        mutating func skipSpace() {
            while index < text.count, text[index] == 0x20 || text[index] == 0x09 || text[index] == 0x0D { index += 1 }
        }

        mutating func take(_ byte: UInt8) -> Bool {
            guard peek == byte else { return false }
            index += 1
            return true
        }

        /// The bytes between quotes, escapes as they are; nil when there's no whole text.
        mutating func takeString() -> UnsafeRawBufferPointer? {
            guard take(UInt8(ascii: "\"")) else { return fail() }
            let start = index
            while index < text.count {
                switch text[index] {
                case UInt8(ascii: "\""):
                    index += 1
                    return UnsafeRawBufferPointer(rebasing: text[start..<index - 1])
                case UInt8(ascii: "\\"): index += 2
                case 0..<0x20: return fail()
                default: index += 1
                }
            }
            return fail()
        }

        /// A number; any other whole value is skipped.
        mutating func takeNumber() -> Number {
            let start = index
            guard let first = peek, first == UInt8(ascii: "-") || (48...57).contains(first) else {
                skipValue()
                return .none
            }
            let isNegative = take(UInt8(ascii: "-"))
            var value: Int64 = 0
            var fits = true
            let digits = index
            while index < text.count, (48...57).contains(text[index]) {
                // Downwards: the least Int64 has no positive twin.
                let (tens, over) = value.multipliedReportingOverflow(by: 10)
                let (next, under) = tens.subtractingReportingOverflow(Int64(text[index] - 48))
                fits = fits && !over && !under
                value = next
                index += 1
            }
            guard index > digits else {
                failed = true
                return .none
            }
            let isBroken = peek == UInt8(ascii: ".") || peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E")
            while index < text.count, !Self.endsToken(text[index]) { index += 1 }
            guard !isBroken else {
                let token = String(decoding: text[start..<index], as: UTF8.self)
                return Double(token).map { .broken($0) } ?? .none
            }
            guard fits else { return .none }
            if isNegative { return .whole(value) }
            return value == .min ? .none : .whole(-value)
        }

        /// Steps over one value of any kind.
        mutating func skipValue() {
            var depth = 0
            repeat {
                skipSpace()
                guard let byte = peek else {
                    failed = true
                    return
                }
                switch byte {
                case UInt8(ascii: "\""): if takeString() == nil { return }
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    depth += 1
                    index += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    depth -= 1
                    index += 1
                    if depth < 0 { failed = true }
                case UInt8(ascii: ","), UInt8(ascii: ":"):
                    index += 1
                    if depth == 0 { failed = true }
                default:
                    let start = index
                    while index < text.count, !Self.endsToken(text[index]) { index += 1 }
                    if index == start { failed = true }
                }
            } while depth > 0 && !failed
        }

        private static func endsToken(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ":"), 0x20, 0x09, 0x0D,
                UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "["):
                true
            default: false
            }
        }

        private mutating func fail() -> UnsafeRawBufferPointer? {
            failed = true
            return nil
        }
    }
}
