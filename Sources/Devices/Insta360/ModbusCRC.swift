/// CRC-16/MODBUS: polynomial 0x8005 reflected (0xA001), initial value 0xFFFF, nothing added at the end.
package enum ModbusCRC {
    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xA001 : value >> 1 }
    }

    package static func of(_ bytes: some Sequence<UInt8>) -> UInt16 {
        bytes.reduce(0xFFFF) { $0 >> 8 ^ table[Int(($0 ^ UInt16($1)) & 0xFF)] }
    }
}
