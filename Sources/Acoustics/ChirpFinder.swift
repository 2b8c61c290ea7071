internal import Glibc
package import Protocol

/// A matched filter: where in a recording a chirp begins.
///
/// First the signal is mixed down to the chirp's middle frequency, averaged and decimated, and each lag of the window is
/// correlated there: this finds the place to about a millisecond and says how sure it is. Then the full rate is
/// correlated around it with the chirp and its quadrature twin, and a parabola through the peak of their magnitude gives
/// a fraction of a sample. The magnitude doesn't care for the phase that the room or the card adds.
package struct ChirpFinder: Sendable {
    /// One found chirp.
    package struct Arrival: Sendable, Hashable {
        /// Of the chirp's first sample, in samples from the start of the signal.
        package var position: Double
        /// 0…1: the normalised correlation inside the chirp's band.
        ///
        /// Noise alone stays far below 0.3; a clean chirp is at 1.
        package var confidence: Double
    }

    private let count: Int
    private let decimation: Int
    private let mixFrequency: Double
    private let rate: Double
    private let cosine: [Float]
    private let sine: [Float]
    private let template: Baseband

    /// Nil for a spec that has no samples at the rate.
    package init?(spec: ChirpSpec, rate: Int) { self.init(spec: spec, trueRate: Double(rate)) }

    /// For a card whose true rate is known, in samples a second of host time.
    ///
    /// A sweep that is played back too slowly looks like one at another time: with 17→19 kHz in 500 ms each ppm of the
    /// card's skew moves the found place by 18 kHz × 1e-6 / 4 kHz/s = 4.5 µs, and the stop chirp's by as much the other
    /// way. So who wants better than a millisecond gives the rate that the stamps say, not the nominal one.
    package init?(spec: ChirpSpec, trueRate rate: Double) {
        guard rate.isFinite, rate > 0, rate < 1e7 else { return nil }
        count = Chirp.count(spec, trueRate: rate)
        guard count > 0, spec.fromHz.isFinite, spec.toHz.isFinite else { return nil }
        self.rate = rate
        let ramp = Chirp.ramp(spec, trueRate: rate, count: count)
        var cosine: [Float] = []
        var sine: [Float] = []
        for i in 0..<count {
            let phase = Chirp.phase(spec, at: Double(i) / rate)
            let gain = Chirp.envelope(at: i, of: count, ramp: ramp)
            cosine.append(Float(gain * cos(phase)))
            sine.append(Float(gain * sin(phase)))
        }
        (self.cosine, self.sine) = (cosine, sine)
        mixFrequency = (spec.fromHz + spec.toHz) / 2
        let width = max(abs(spec.toHz - spec.fromHz), 200)
        decimation = max(1, Int(rate / (2 * width)))
        template = Baseband(sine[...], frequency: mixFrequency, rate: rate, decimation: decimation)
    }

    /// Looks for the chirp's first sample at the positions of `window`.
    ///
    /// The window is cut to the signal. Nil when nothing is left of it, or when it is silent. The cost is about
    /// (window / decimation) × (chirp / decimation): meant for windows of at most some seconds.
    package func find(in signal: [Float], window: Range<Int>) -> Arrival? {
        let window = window.clamped(to: 0..<signal.count)
        guard !window.isEmpty else { return nil }
        let end = min(signal.count, window.upperBound + count)
        let base = Baseband(
            signal[window.lowerBound..<end], frequency: mixFrequency, rate: rate, decimation: decimation)
        var best = (lag: 0, confidence: 0.0)
        for lag in 0...(window.count / decimation) {
            let confidence = template.match(in: base, at: lag)
            if confidence > best.confidence { best = (lag, confidence) }
        }
        guard best.confidence > 0 else { return nil }
        let position = refine(signal, around: window.lowerBound + best.lag * decimation)
        return Arrival(position: position, confidence: confidence(of: signal, at: Int(position.rounded())))
    }

    /// The normalised correlation at a place that need not be a multiple of the decimation.
    private func confidence(of signal: [Float], at place: Int) -> Double {
        let start = min(max(place, 0), signal.count)
        let base = Baseband(
            signal[start..<min(signal.count, start + count)], frequency: mixFrequency, rate: rate,
            decimation: decimation)
        return min(template.match(in: base, at: 0), 1)
    }

    /// The peak at the full rate.
    private func refine(_ signal: [Float], around coarse: Int) -> Double {
        let reach = 2 * decimation
        let magnitudes = (-reach...reach).map { magnitude(signal, at: coarse + $0) }
        var peak = 0
        for index in magnitudes.indices where magnitudes[index] > magnitudes[peak] { peak = index }
        let whole = Double(coarse - reach + peak)
        guard peak > 0, peak < magnitudes.count - 1 else { return whole }
        let (left, middle, right) = (magnitudes[peak - 1], magnitudes[peak], magnitudes[peak + 1])
        let bend = left - 2 * middle + right
        return bend < 0 ? whole + 0.5 * (left - right) / bend : whole
    }

    /// |correlation| with the chirp at one lag; what lies outside of the signal is silence.
    private func magnitude(_ signal: [Float], at lag: Int) -> Double {
        let from = max(0, -lag)
        let to = min(count, signal.count - lag)
        guard from < to else { return 0 }
        var (inPhase, quadrature): (Float, Float) = (0, 0)
        var (inPhaseSum, quadratureSum) = (0.0, 0.0)
        for i in from..<to {
            let x = signal[lag + i]
            inPhase += x * cosine[i]
            quadrature += x * sine[i]
            // Short sums in Float, the long one in Double: 24,000 products would lose digits.
            if i & 255 == 255 {
                inPhaseSum += Double(inPhase)
                quadratureSum += Double(quadrature)
                (inPhase, quadrature) = (0, 0)
            }
        }
        inPhaseSum += Double(inPhase)
        quadratureSum += Double(quadrature)
        return (inPhaseSum * inPhaseSum + quadratureSum * quadratureSum).squareRoot()
    }
}
