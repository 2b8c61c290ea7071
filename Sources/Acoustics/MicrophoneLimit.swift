internal import Glibc
package import Protocol

/// Why a microphone can't hear a chirp.
package enum MicrophoneLimit: Sendable, Hashable, CustomStringConvertible {
    /// The band reaches over half of the sample rate.
    case rateTooLow(rate: Double, needed: Double)
    /// The rate is high enough, but something cut the band off (a resampler, a codec, a voice filter): dB under the
    /// level of the recording's own digits.
    case bandRemoved(level: Double)
    /// There is no sound at all.
    case silent

    package var description: String {
        switch self {
        case .rateTooLow(let rate, let needed):
            "this microphone can't hear it: at \(Self.hertz(rate)) Hz nothing over \(Self.hertz(rate / 2)) Hz is"
                + " recorded, and the chirp needs \(Self.hertz(needed)) Hz; use a rate of 44,100 Hz or more,"
                + " or the audible preset"
        case .bandRemoved:
            "this microphone can't hear it: a filter or codec took the chirp's band out; turn voice processing off,"
                + " raise the codec's bit rate, or use the audible preset"
        case .silent: "this microphone recorded nothing but zeros; is it muted?"
        }
    }

    private static func hertz(_ value: Double) -> Int { value.isFinite ? Int(min(max(value, 0), 1e9)) : 0 }

    /// The limit of a recording for a chirp, or nil when the band is there.
    ///
    /// A band that was removed has less in it than a 16-bit recording's rounding noise, while there is sound elsewhere.
    /// Even a quiet room's microphone has more: its own hiss.
    package static func judge(_ signal: ArraySlice<Float>, rate: Double, spec: ChirpSpec) -> MicrophoneLimit? {
        let top = max(spec.fromHz, spec.toHz)
        // 2 % for the slope of the converter's filter.
        guard rate.isFinite, min(spec.fromHz, spec.toHz) >= 0, top <= rate / 2 * 0.98 else {
            return .rateTooLow(rate: rate, needed: top)
        }
        let length = 4096
        guard signal.count >= length else { return signal.contains { $0 != 0 } ? nil : .silent }
        let forward = FourierTransform(.forwardReal, length: length)
        let (input, output) = (FourierBuffer(count: length), FourierBuffer(count: length + 2))
        let window = (0..<length).map { Float(0.5 - 0.5 * cos(2 * Double.pi * (Double($0) + 0.5) / Double(length))) }
        let bottom = min(spec.fromHz, spec.toHz)
        let low = max(1, Int(bottom / rate * Double(length)))
        let high = min(length / 2 - 1, max(low, Int(top / rate * Double(length))))
        var (loudest, all) = (0.0, 0.0)
        let blocks = min(200, signal.count / length)
        let stride = signal.count / blocks
        for block in 0..<blocks {
            let start = signal.startIndex + block * stride
            for i in 0..<length where start + i < signal.endIndex {
                let x = signal[start + i]
                input.floats[i] = (x.isFinite ? x : 0) * window[i]
                all += Double(input.floats[i]) * Double(input.floats[i])
            }
            forward.run(input, into: output)
            var power = 0.0
            for bin in low...high {
                power += Double(output.floats[2 * bin]) * Double(output.floats[2 * bin])
                power += Double(output.floats[2 * bin + 1]) * Double(output.floats[2 * bin + 1])
            }
            loudest = max(loudest, power / Double(high - low + 1))
        }
        guard all > 0 else { return .silent }
        // White rounding noise of 16 bits: variance 2^−30 / 12 each sample, times the window's energy of 3/8 length.
        let rounding = 0x1p-30 / 12 * 0.375 * Double(length)
        let level = 10 * log10(max(loudest, 1e-300) / rounding)
        return level < -6 ? .bandRemoved(level: level) : nil
    }
}
