/// A UUID of Bluetooth, 16 or 128 bits; the short ones are equal to their long forms.
package struct BluetoothUUID: Sendable, Hashable, CustomStringConvertible {
    /// 16 bytes, the most significant first, as it is written.
    package let bytes: [UInt8]

    /// `0000xxxx-0000-1000-8000-00805f9b34fb` (Core specification, Vol 3 Part B 2.5.1), after its first four bytes.
    private static let baseTail: [UInt8] = [0, 0, 0x10, 0, 0x80, 0, 0, 0x80, 0x5F, 0x9B, 0x34, 0xFB]

    package init(_ short: UInt16) { bytes = [0, 0, UInt8(short >> 8), UInt8(short & 0xFF)] + Self.baseTail }

    /// From the order of the air, the least significant byte first; nil unless it is 2, 4 or 16 bytes.
    package init?(littleEndian raw: some Collection<UInt8>) {
        switch raw.count {
        case 2: bytes = [0, 0] + raw.reversed() + Self.baseTail
        case 4: bytes = raw.reversed() + Self.baseTail
        case 16: bytes = raw.reversed()
        default: return nil
        }
    }

    /// "180f", "0x180F" or "4652535f-424c-4500-0000-000000000001".
    package init?(_ text: String) {
        var digits = text.lowercased()
        if digits.hasPrefix("0x") { digits.removeFirst(2) }
        digits.removeAll { $0 == "-" }
        guard digits.count == 4 || digits.count == 8 || digits.count == 32 else { return nil }
        var raw: [UInt8] = []
        var rest = Substring(digits)
        while !rest.isEmpty {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
            raw.append(byte)
            rest = rest.dropFirst(2)
        }
        self.init(littleEndian: raw.reversed())
    }

    /// The 16-bit form; nil when there is none.
    package var short: UInt16? {
        guard bytes[0] == 0, bytes[1] == 0, bytes[4...].elementsEqual(Self.baseTail) else { return nil }
        return UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }

    /// As it goes over the air: 2 bytes when it has a short form, else 16, the least significant first.
    package var littleEndian: [UInt8] {
        short.map { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } ?? bytes.reversed()
    }

    package var description: String {
        func hex(_ range: Range<Int>) -> String {
            bytes[range].map { String($0 >> 4, radix: 16) + String($0 & 0xF, radix: 16) }.joined()
        }
        if short != nil { return hex(2..<4) }
        return [hex(0..<4), hex(4..<6), hex(6..<8), hex(8..<10), hex(10..<16)].joined(separator: "-")
    }
}
