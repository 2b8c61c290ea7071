/// The base-85 text of ZeroMQ (RFC 32): five characters for four bytes.
enum Z85 {
    private static let alphabet = Array(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#".utf8)

    /// Each character's value; 255 where there is none.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// The number of bytes must be a multiple of four.
    static func encode(_ bytes: [UInt8]) -> String {
        precondition(bytes.count % 4 == 0, "Z85 takes multiples of 4 bytes, not \(bytes.count)")
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 4) {
            var number = bytes[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            var group = [UInt8](repeating: 0, count: 5)
            for place in (0..<5).reversed() {
                group[place] = alphabet[Int(number % 85)]
                number /= 85
            }
            text += group
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil when the length isn't a multiple of five, a character is foreign, or a group is above 32 bits.
    static func decode(_ text: String) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count % 5 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: characters.count, by: 5) {
            var number: UInt64 = 0
            for character in characters[start..<start + 5] {
                let value = values[Int(character)]
                guard value < 85 else { return nil }
                number = number * 85 + UInt64(value)
            }
            guard let word = UInt32(exactly: number) else { return nil }
            bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
        }
        return bytes
    }
}
