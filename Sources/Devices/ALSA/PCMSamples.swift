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
