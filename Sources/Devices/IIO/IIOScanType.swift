/// How one element of a buffer's scan is stored: the text of `scan_elements/*_type`, such as `le:s16/32>>0`.
///
/// The bits above those that are used belong to nobody: a hid-sensor's hold the neighbour axis. So only the used ones are
/// read, and the sign is extended from them.
package struct IIOScanType: Sendable, Hashable {
    package var isBigEndian: Bool
    package var isSigned: Bool
    /// Bits that hold the value.
    package var bits: Int
    /// Bits that it takes up: 8, 16, 32 or 64.
    package var storage: Int
    package var shift: Int
    /// Elements of this kind one after the other.
    package var count: Int

    /// Parses `[be|le]:[s|u]bits/storage[Xcount][>>shift]`; nil for what isn't that.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "le" || parts[0] == "be", let sign = parts[1].first,
            sign == "s" || sign == "u"
        else { return nil }
        isBigEndian = parts[0] == "be"
        isSigned = sign == "s"
        var rest = parts[1].dropFirst()
        shift = 0
        if let arrows = rest.firstIndex(of: ">") {
            let tail = rest[arrows...]
            guard tail.hasPrefix(">>"), let shift = Int(tail.dropFirst(2)) else { return nil }
            self.shift = shift
            rest = rest[..<arrows]
        }
        count = 1
        if let cross = rest.firstIndex(of: "X") {
            guard let count = Int(rest[rest.index(after: cross)...]) else { return nil }
            self.count = count
            rest = rest[..<cross]
        }
        let sizes = rest.split(separator: "/", omittingEmptySubsequences: false)
        guard sizes.count == 2, let bits = Int(sizes[0]), let storage = Int(sizes[1]) else { return nil }
        self.bits = bits
        self.storage = storage
        guard [8, 16, 32, 64].contains(storage), (1...storage).contains(bits), (0...(storage - bits)).contains(shift),
            (1...64).contains(count)
        else { return nil }
    }

    /// Bytes of one element.
    package var size: Int { storage / 8 }

    /// The value of an element; nil when it isn't wholly there.
    package func value(in bytes: ArraySlice<UInt8>, at place: Int) -> Int64? {
        guard place >= bytes.startIndex, place <= bytes.endIndex - size else { return nil }
        var raw: UInt64 = 0
        for index in 0..<size {
            let byte = bytes[place + (isBigEndian ? index : size - 1 - index)]
            raw = raw << 8 | UInt64(byte)
        }
        raw >>= UInt64(shift)
        let unused = UInt64(64 - bits)
        raw <<= unused
        return isSigned ? Int64(bitPattern: raw) >> Int64(unused) : Int64(clamping: raw >> unused)
    }
}
