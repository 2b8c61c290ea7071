package import Protocol

/// Sample values in a card's bytes.
///
/// Pure.
package enum PCMSamples {
    /// 24 bits in four bytes (S24_LE) to three bytes (S24_3LE).
    package static func packed(_ padded: [UInt8]) -> [UInt8] {
        var packed: [UInt8] = []
        packed.reserveCapacity(padded.count / 4 * 3)
        var index = 0
        while index + 4 <= padded.count {
            packed += padded[index..<index + 3]
            index += 4
        }
        return packed
    }

    /// One channel of interleaved frames, counted from 1, full scale 1; what is no number is silence.
    package static func channel(
        _ channel: Int, of bytes: [UInt8], _ encoding: AudioFormat.Encoding, channels: Int
    ) -> [Float] {
        let width = encoding.bytes
        let size = width * channels
        guard size > 0, (1...channels).contains(channel) else { return [] }
        return bytes.withUnsafeBytes { raw in
            (0..<raw.count / size).map { frame in
                let at = frame * size + (channel - 1) * width
                switch encoding {
                case .s16:
                    return Float(Int16(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: Int16.self))) / 32_768
                case .s24:
                    let bits = UInt32(raw[at]) << 8 | UInt32(raw[at + 1]) << 16 | UInt32(raw[at + 2]) << 24
                    return Float(Double(Int32(bitPattern: bits)) / 2_147_483_648)
                case .s32:
                    return Float(
                        Double(Int32(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: Int32.self)))
                            / 2_147_483_648)
                case .f32:
                    let value = Float(
                        bitPattern: UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: UInt32.self)))
                    return value.isFinite ? value : 0
                }
            }
        }
    }

    /// Some channels of interleaved frames, counted from 1, in the order that is given.
    package static func picked(_ bytes: [UInt8], _ picked: [Int], channels: Int, width: Int) -> [UInt8] {
        let size = channels * width
        guard size > 0, picked.allSatisfy({ (1...channels).contains($0) }) else { return bytes }
        let frames = bytes.count / size
        return [UInt8](unsafeUninitializedCapacity: frames * picked.count * width) { buffer, filled in
            for frame in 0..<frames {
                for channel in picked {
                    let from = frame * size + (channel - 1) * width
                    for byte in 0..<width {
                        buffer.initializeElement(at: filled, to: bytes[from + byte])
                        filled += 1
                    }
                }
            }
        }
    }

    /// Mono samples (−1…1, what lies outside is clipped) to all channels of a card, little-endian.
    package static func bytes(
        _ samples: [Float], _ encoding: AudioFormat.Encoding, channels: Int, isPadded: Bool
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        let width = isPadded ? 4 : encoding.bytes
        bytes.reserveCapacity(samples.count * channels * width)
        for sample in samples {
            // NaN compares false with everything: it becomes silence.
            let value = sample >= -1 ? (sample <= 1 ? Double(sample) : 1) : (sample < -1 ? -1 : 0)
            let word: UInt32 =
                switch encoding {
                case .s16: UInt32(bitPattern: Int32((value * 32_767).rounded()))
                case .s24: UInt32(bitPattern: Int32((value * 8_388_607).rounded()))
                case .s32: UInt32(bitPattern: Int32((value * 2_147_483_647).rounded()))
                case .f32: Float(value).bitPattern
                }
            for _ in 0..<channels {
                for byte in 0..<width { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * byte))) }
            }
        }
        return bytes
    }
}
