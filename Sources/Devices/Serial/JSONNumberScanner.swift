/// Finds numbers at given paths in a JSON text, without making objects of it.
///
/// A path is the keys and the array's places with dots between them: "acc.x", "gyro.0". Keys with escapes or dots can't
/// be named. Numbers in quotes count, as some firmware prints them.
struct JSONNumberScanner {
    private static let deepest = 8

    private(set) var found: [ArraySlice<UInt8>?]
    private let wanted: [[UInt8]]
    private var text: ArraySlice<UInt8> = []
    private var place = 0
    private var path: [UInt8] = []

    init(_ wanted: [[UInt8]]) {
        self.wanted = wanted
        found = [ArraySlice<UInt8>?](repeating: nil, count: wanted.count)
    }

    /// False when the text isn't one whole JSON value.
    mutating func scan(_ text: ArraySlice<UInt8>) -> Bool {
        self.text = text
        place = text.startIndex
        path.removeAll(keepingCapacity: true)
        guard value(depth: 0) else { return false }
        skipSpace()
        return place == text.endIndex
    }

    // MARK: Private

    private var next: UInt8? { place < text.endIndex ? text[place] : nil }

    private mutating func skipSpace() {
        while let byte = next, DecimalText.isSpace(byte) { place += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard next == byte else { return false }
        place += 1
        return true
    }

    private mutating func value(depth: Int) -> Bool {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return depth < Self.deepest && object(depth)
        case UInt8(ascii: "["): return depth < Self.deepest && array(depth)
        case UInt8(ascii: "\""):
            guard let content = string() else { return false }
            note(content)
            return true
        default:
            let start = place
            while let byte = next, !Self.endsWord(byte) { place += 1 }
            guard place > start else { return false }
            note(text[start..<place])
            return true
        }
    }

    private mutating func object(_ depth: Int) -> Bool {
        place += 1
        if take(UInt8(ascii: "}")) { return true }
        let length = path.count
        repeat {
            skipSpace()
            guard let key = string(), take(UInt8(ascii: ":")) else { return false }
            if length > 0 { path.append(UInt8(ascii: ".")) }
            path.append(contentsOf: key)
            guard value(depth: depth + 1) else { return false }
            path.removeLast(path.count - length)
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}"))
    }

    private mutating func array(_ depth: Int) -> Bool {
        place += 1
        if take(UInt8(ascii: "]")) { return true }
        let length = path.count
        var index = 0
        repeat {
            if length > 0 { path.append(UInt8(ascii: ".")) }
            path.append(contentsOf: String(index).utf8)
            guard value(depth: depth + 1) else { return false }
            path.removeLast(path.count - length)
            index += 1
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]"))
    }

    /// The content of a text, with its escapes as they stand.
    private mutating func string() -> ArraySlice<UInt8>? {
        guard next == UInt8(ascii: "\"") else { return nil }
        place += 1
        let start = place
        while let byte = next {
            if byte == UInt8(ascii: "\"") {
                place += 1
                return text[start..<(place - 1)]
            }
            place += byte == UInt8(ascii: "\\") ? 2 : 1
        }
        return nil
    }

    private mutating func note(_ content: ArraySlice<UInt8>) {
        for (index, path) in wanted.enumerated() where path == self.path { found[index] = content }
    }

    private static func endsWord(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") || DecimalText.isSpace(byte)
            || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[")
    }
}
