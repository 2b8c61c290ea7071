/// Reads little-endian numbers out of bytes from outside; what isn't there is nil.
package struct ByteReader: Sendable {
    private var left: ArraySlice<UInt8>

    package init(_ bytes: some Collection<UInt8>) { left = Array(bytes)[...] }
    package init(_ bytes: ArraySlice<UInt8>) { left = bytes }

    package var remaining: Int { left.count }
    package var isAtEnd: Bool { left.isEmpty }

    package mutating func u8() -> UInt8? { left.popFirst() }

    package mutating func u16() -> UInt16? {
        guard left.count >= 2 else { return nil }
        let start = left.startIndex
        let value = UInt16(left[start]) | UInt16(left[start + 1]) << 8
        left = left[(start + 2)...]
        return value
    }

    package mutating func i16() -> Int16? { u16().map { Int16(bitPattern: $0) } }

    package mutating func u32() -> UInt32? {
        guard left.count >= 4, let low = u16(), let high = u16() else { return nil }
        return UInt32(low) | UInt32(high) << 16
    }

    /// Exactly so many bytes.
    package mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count >= 0, left.count >= count else { return nil }
        defer { left = left.dropFirst(count) }
        return Array(left.prefix(count))
    }

    /// All that is left.
    package mutating func rest() -> [UInt8] {
        defer { left = [] }
        return Array(left)
    }

    /// The value when nothing is left; else nil.
    package func ended<T>(_ value: T) -> T? { left.isEmpty ? value : nil }
}
