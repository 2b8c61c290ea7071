internal import Protocol

extension AudioFormat {
    /// The first channels of interleaved PCM as numbers from −1 to 1, an array for each.
    func floats(_ bytes: [UInt8], frames: Int, channels wanted: Int) -> [[Float]] {
        let (width, stride) = (encoding.bytes, bytesPerFrame)
        let count = min(frames, stride > 0 ? bytes.count / stride : 0)
        return bytes.withUnsafeBytes { raw in
            (0..<min(wanted, channels)).map { channel in
                [Float](unsafeUninitializedCapacity: count) { output, filled in
                    for frame in 0..<count {
                        let offset = frame * stride + channel * width
                        output[frame] = Self.float(raw, offset, encoding)
                    }
                    filled = count
                }
            }
        }
    }

    private static func float(_ raw: UnsafeRawBufferPointer, _ offset: Int, _ encoding: Encoding) -> Float {
        switch encoding {
        case .s16: return Float(Int16(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Int16.self))) / 32_768
        case .s24:
            let bits = UInt32(raw[offset]) << 8 | UInt32(raw[offset + 1]) << 16 | UInt32(raw[offset + 2]) << 24
            return Float(Int32(bitPattern: bits)) / 2_147_483_648
        case .s32:
            return Float(Int32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Int32.self))) / 2_147_483_648
        case .f32:
            let value = Float(
                bitPattern: UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
            return value.isFinite ? value : 0
        }
    }
}
