internal import Glibc
internal import Protocol

/// A chirp as a complex template at a card's true rate, or a part of it: cos + j·sin of its phase, with soft ends.
struct AnalyticChirp: Sendable {
    /// 43 s at 96 kHz: a spec from outside can't ask for all memory.
    private static let longest = 1 << 22

    /// Samples in the order real, imaginary.
    let interleaved: [Float]
    /// Samples of the whole chirp's time line; those outside of the part are 0.
    let count: Int
    /// Sum of the squared magnitudes.
    let energy: Double
    /// The middle of the part's band, Hz.
    let middle: Double
    /// The width of the part's band, Hz.
    let width: Double

    /// `part` says which share of the chirp is there, 0…1.
    ///
    /// A cut end gets the spec's own ramp, so that the part's pulse stays symmetric.
    init?(_ spec: ChirpSpec, trueRate rate: Double, part: ClosedRange<Double> = 0...1) {
        guard rate.isFinite, rate > 0, rate < 1e7, (0...rate / 2).contains(spec.fromHz),
            (0...rate / 2).contains(spec.toHz)
        else { return nil }
        count = Chirp.count(spec, trueRate: rate)
        let from = Int((Double(count) * min(max(part.lowerBound, 0), 1)).rounded())
        let to = Int((Double(count) * min(max(part.upperBound, 0), 1)).rounded())
        guard count > 0, count <= Self.longest, to - from >= 2 else { return nil }
        let ramp = Chirp.ramp(spec, trueRate: rate, count: to - from)
        var values = [Float](repeating: 0, count: 2 * count)
        var energy = 0.0
        for i in from..<to {
            let gain = Chirp.envelope(at: i - from, of: to - from, ramp: ramp)
            let phase = Chirp.phase(spec, at: Double(i) / rate)
            values[2 * i] = Float(gain * cos(phase))
            values[2 * i + 1] = Float(gain * sin(phase))
            energy += gain * gain
        }
        guard energy > 0 else { return nil }
        interleaved = values
        self.energy = energy
        let bend = spec.toHz - spec.fromHz
        let (low, high) = (Double(from) / Double(count), Double(to) / Double(count))
        middle = spec.fromHz + bend * (low + high) / 2
        width = max(abs(bend) * (high - low), 2 / (Double(to - from) / rate))
    }

    /// The conjugated spectrum at bins `first..<first + bins` of a transform of `length`, interleaved.
    ///
    /// Two real transforms make it, so that one plan is enough.
    func conjugateSpectrum(_ forward: FourierTransform, first: Int, bins: Int) -> [Float] {
        let input = FourierBuffer(count: forward.length)
        let (cosine, sine) = (
            FourierBuffer(count: forward.length + 2), FourierBuffer(count: forward.length + 2)
        )
        for (quadrature, output) in [(0, cosine), (1, sine)] {
            for i in 0..<min(count, forward.length) { input.floats[i] = interleaved[2 * i + quadrature] }
            forward.run(input, into: output)
        }
        var spectrum = [Float](repeating: 0, count: 2 * bins)
        for bin in 0..<bins where first + bin >= 0 && first + bin <= forward.length / 2 {
            let at = 2 * (first + bin)
            // C + jS, then conjugated.
            spectrum[2 * bin] = cosine.floats[at] - sine.floats[at + 1]
            spectrum[2 * bin + 1] = -(cosine.floats[at + 1] + sine.floats[at])
        }
        return spectrum
    }
}
