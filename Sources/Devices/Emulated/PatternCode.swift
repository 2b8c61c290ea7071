/// A frame's number and time in its picture, readable after any codec: 32 × 5 black and white blocks at the upper left.
///
/// Rows from above: the number (two rows, 64 bits), the host time of the start of the frame in ns (two rows, 64 bits), and
/// a checksum (32 bits); the highest bit is first. White is 1.
package struct PatternCode: Sendable, Hashable {
    static let columns = 32
    static let rows = 5
    static let black: UInt8 = 32
    static let white: UInt8 = 220

    /// Counted from each start of the camera.
    package var number: Int64
    /// Host time of the start of the frame, ns, without the stamp's jitter.
    package var instant: Int64

    package init(number: Int64, instant: Int64) {
        self.number = number
        self.instant = instant
    }

    /// Where the code lies in a picture.
    struct Place: Sendable, Hashable {
        /// Pixels on each side of a block.
        let block: Int
        /// Of the first block's corner, from the left and from above.
        let origin: Int

        /// A block of 16 pixels is what codecs work with; smaller ones only where there is no room.
        init(width: Int, height: Int) {
            let fitting = min((width - 16) / PatternCode.columns, (height - 16) / PatternCode.rows, 16)
            block = max(fitting & ~3, 4)
            origin = block == 16 ? 16 : 8
        }

        var width: Int { block * PatternCode.columns }
        var height: Int { block * PatternCode.rows }
    }

    /// The words of the rows, from above.
    var words: [UInt32] {
        let parts = [number, instant].map { UInt64(bitPattern: $0) }
        let data = parts.flatMap { [UInt32($0 >> 32), UInt32($0 & 0xffff_ffff)] }
        return data + [Self.checksum(data)]
    }

    /// Reads the code of a picture's luma.
    ///
    /// - Parameters:
    ///   - luma: rows of `bytesPerLine`; in packed YUYV each second byte is a luma value, so `step` is 2 there.
    ///   - width: of the picture, pixels.
    ///   - height: of the picture, pixels.
    ///   - bytesPerLine: of the luma rows.
    ///   - step: bytes from one luma value to the next.
    /// - Returns: nil when there is no code, or when its checksum is wrong.
    package static func read(luma: [UInt8], width: Int, height: Int, bytesPerLine: Int, step: Int = 1) -> PatternCode? {
        guard width >= 160, height >= 120, bytesPerLine >= width * step, luma.count >= bytesPerLine * height else {
            return nil
        }
        let place = Place(width: width, height: height)
        var words: [UInt32] = []
        for row in 0..<rows {
            var word: UInt32 = 0
            for column in 0..<columns {
                // The middle quarter of the block: what a codec smears over the edges stays outside.
                var sum = 0
                for y in place.block / 4..<3 * place.block / 4 {
                    let line = (place.origin + row * place.block + y) * bytesPerLine
                    for x in place.block / 4..<3 * place.block / 4 {
                        sum += Int(luma[line + (place.origin + column * place.block + x) * step])
                    }
                }
                let count = (place.block / 2) * (place.block / 2)
                word = word << 1 | (sum > count * 126 ? 1 : 0)
            }
            words.append(word)
        }
        guard words[4] == checksum(Array(words[..<4])) else { return nil }
        return PatternCode(
            number: Int64(bitPattern: UInt64(words[0]) << 32 | UInt64(words[1])),
            instant: Int64(bitPattern: UInt64(words[2]) << 32 | UInt64(words[3])))
    }

    /// FNV-1a of the words' bytes, highest first.
    private static func checksum(_ words: [UInt32]) -> UInt32 {
        var hash: UInt32 = 0x811c_9dc5
        for word in words {
            for shift in [24, 16, 8, 0] as [UInt32] { hash = (hash ^ (word >> shift & 255)) &* 0x0100_0193 }
        }
        return hash
    }
}
