internal import Protocol

/// The bytes before the samples of a WAV file, for any length of them.
///
/// A place of 28 bytes is kept behind the form type. While the file is small it is a `JUNK` chunk; over 4 GiB it
/// becomes the `ds64` chunk of RF64 (EBU Tech 3306), which has the lengths in 64 bits. So the header never moves.
struct WAVHeader {
    let format: AudioFormat
    /// Offset of the first sample.
    let length: Int

    private let formatChunk: [UInt8]
    private let hasFact: Bool

    init(_ format: AudioFormat) {
        self.format = format
        formatChunk = Self.formatChunk(format)
        // Everything that isn't plain PCM has to say how many sample frames there are.
        hasFact = format.encoding == .f32
        length = 12 + 36 + formatChunk.count + (hasFact ? 12 : 0) + 8
    }

    /// The header of a file with so many bytes of samples.
    func bytes(dataBytes: Int64) -> [UInt8] {
        let padded = dataBytes + dataBytes % 2
        let riffSize = Int64(length) - 8 + padded
        let frames = format.bytesPerFrame > 0 ? dataBytes / Int64(format.bytesPerFrame) : 0
        let isLarge = riffSize > Int64(UInt32.max)
        var header: [UInt8] = []
        header.appendText(isLarge ? "RF64" : "RIFF")
        header.appendLittle(isLarge ? UInt32.max : UInt32(clamping: riffSize))
        header.appendText("WAVE")
        header.appendText(isLarge ? "ds64" : "JUNK")
        header.appendLittle(UInt32(28))
        if isLarge {
            header.appendLittle(riffSize)
            header.appendLittle(dataBytes)
            header.appendLittle(frames)
            header.appendLittle(UInt32(0))
        } else {
            header += [UInt8](repeating: 0, count: 28)
        }
        header += formatChunk
        if hasFact {
            header.appendText("fact")
            header.appendLittle(UInt32(4))
            header.appendLittle(isLarge ? UInt32.max : UInt32(clamping: frames))
        }
        header.appendText("data")
        header.appendLittle(isLarge ? UInt32.max : UInt32(clamping: dataBytes))
        return header
    }

    private static func formatChunk(_ format: AudioFormat) -> [UInt8] {
        let isFloat = format.encoding == .f32
        let bits = UInt16(format.encoding.bytes * 8)
        let channels = UInt16(clamping: format.channels)
        let tag: UInt16 = isFloat ? 3 : 1
        // More than two channels need the long form, without any claim about loudspeaker places.
        let isExtensible = format.channels > 2
        var chunk: [UInt8] = []
        chunk.appendText("fmt ")
        chunk.appendLittle(UInt32(isExtensible ? 40 : isFloat ? 18 : 16))
        chunk.appendLittle(isExtensible ? 0xFFFE : tag)
        chunk.appendLittle(channels)
        chunk.appendLittle(UInt32(clamping: format.rate))
        chunk.appendLittle(
            UInt32(clamping: format.rate.multipliedReportingOverflow(by: format.bytesPerFrame).partialValue))
        chunk.appendLittle(UInt16(clamping: format.bytesPerFrame))
        chunk.appendLittle(bits)
        if isExtensible {
            chunk.appendLittle(UInt16(22))
            chunk.appendLittle(bits)
            chunk.appendLittle(UInt32(0))
            chunk.appendLittle(tag)
            chunk += [0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71]
        } else if isFloat {
            chunk.appendLittle(UInt16(0))
        }
        return chunk
    }
}

extension [UInt8] {
    mutating func appendLittle(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}
