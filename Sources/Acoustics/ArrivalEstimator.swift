internal import Glibc
package import Protocol
internal import Timing

/// When a chirp came to a microphone by the direct path, to a small part of a sample, with an uncertainty that is true.
///
/// **Envelope, not carrier.** The phase that a speaker, a microphone and their filters add at 18 kHz isn't known, and a
/// cycle is only 56 µs: a coherent estimate is a hundred times finer in a simulation, and wrong by whole cycles in a
/// room. So the amplitude is taken as an unknown complex number, and what is left is the bound of the envelope:
/// σ = 1 / (2π · 577 Hz · √(2E/N₀)), which is 1.9 µs for a chirp as strong as the white noise around it.
///
/// **No window on the template.** A window would lower the sidelobes at the price of a pulse that is twice as wide, and
/// echoes within the pulse are the trouble of a room. The sidelobes are in the model instead (`FirstPathModel`), so they
/// aren't taken for paths.
///
/// **First path.** Echoes within 0.5 ms of the direct path can't be told apart one by one: in a room there are several in
/// each 0.5 ms, and as strong. CLEAN and other fits of single paths then split what they see at will. What can be known
/// is the time before which there was nothing but noise, given how reverberation looks; that is a posterior, and its mean
/// and width are the answer.
package struct ArrivalEstimator: Sendable {
    package let spec: ChirpSpec
    package let rate: Double
    /// A path is believed above this; noise alone reaches it once in 10^7 places.
    package static let least = 15.0

    /// What is left unexplained of a strong chirp, as a share of its power: −45 dB.
    ///
    /// A clipped, compressed, skewed or filtered chirp has a pulse a little unlike the model's. Taken as noise, this can't
    /// pass for a weak path before the first one; it only keeps the uncertainty over 1.6 µs, however quiet the room.
    static let distortion = 3e-5
    /// The same when an automatic gain worked on the chirp: −25 dB.
    static let unevenDistortion = 3e-3

    private let chirp: AnalyticChirp?

    /// `rate` is the card's true one in samples a second of the time that is wanted.
    ///
    /// Each ppm between it and the speaker's moves what is found by 4.75 µs for the start chirp and −4.25 µs for the
    /// stop chirp. `TwoWaySolution` solves for it.
    package init(spec: ChirpSpec, rate: Double) {
        self.spec = spec
        self.rate = rate
        let top = max(spec.fromHz, spec.toHz)
        chirp = top <= rate / 2 * 0.98 ? AnalyticChirp(spec, trueRate: rate) : nil
    }

    /// Looks for the chirp whose strongest path begins within `reach` samples of `place`.
    ///
    /// The noise is measured in the quarter of a second before, so it helps to hand over that much. Takes about 10 ms.
    package func estimate(_ signal: [Float], near place: Double, reach: Int = 240) -> ArrivalOutcome {
        guard let chirp else {
            return .deaf(.rateTooLow(rate: rate, needed: max(spec.fromHz, spec.toHz)))
        }
        guard place.isFinite, place > -Double(chirp.count), place < Double(signal.count), reach >= 0,
            reach < 1 << 24
        else { return .outside }
        let center = Int(place.rounded())
        var part = presentPart(of: signal, chirp, at: center)
        guard part.upperBound - part.lowerBound >= 2 / 16.0 else { return .absent(correlation: 0) }
        var template = part == 0...1 ? chirp : AnalyticChirp(spec, trueRate: rate, part: part) ?? chirp
        var window = CorrelationWindow(signal, template, rate: rate, around: center, reach: reach)
        guard var peak = window.strongest(reach: reach) else { return silence(signal, center) }
        // What is missing inside of the recording, and what an automatic gain did, show only once the place is known.
        let profile = ChirpProfile(signal, chirp, at: Int(peak.position.rounded()), within: part)
        if profile.part != 0...1 || profile.isUneven {
            part = profile.part
            template = AnalyticChirp(spec, trueRate: rate, part: part) ?? chirp
            let evened = profile.evened(signal, chirp, spec: spec, rate: rate)
            window = CorrelationWindow(
                evened.signal, template, rate: rate, around: Int(peak.position.rounded()), reach: reach,
                noiseGain: evened.noiseGain)
            guard let again = window.strongest(reach: reach) else { return silence(signal, center) }
            peak = again
        }
        let noise = max(window.noise, peak.power * (profile.isUneven ? Self.unevenDistortion : Self.distortion), 1e-30)
        let correlation = window.correlation(at: peak.position, power: peak.power)
        guard 10 * log10(peak.power / noise) >= Self.least, correlation >= 0.01 else {
            return MicrophoneLimit.judge(signal[...], rate: rate, spec: spec).map { .deaf($0) }
                ?? .absent(correlation: correlation)
        }
        let models = FirstPathModels.models(template, spec: spec, part: part, rate: rate)
        let first = FirstPathSearch(window: window, models: models, noise: noise, cell: rate / template.width)
        let (position, deviation) = first.search(from: peak.position)
        let clean = max(deviation, 1e-5 * rate / 1000)
        return .heard(
            ChirpArrival(
                position: position, deviation: clean, uncertainty: .seconds(clean / rate),
                signalToNoise: 10 * log10(max(window.power(at: position), 1e-30) / noise), correlation: correlation,
                confidence: correlation.squareRoot(), strongestDelay: max(peak.position - position, 0), part: part,
                clipped: clipped(signal, from: position, chirp.count)))
    }

    private func silence(_ signal: [Float], _ center: Int) -> ArrivalOutcome {
        MicrophoneLimit.judge(signal[...], rate: rate, spec: spec).map { .deaf($0) } ?? .absent(correlation: 0)
    }

    /// The share of the chirp that the recording's ends leave, in whole sixteenths.
    private func presentPart(of signal: [Float], _ chirp: AnalyticChirp, at start: Int) -> ClosedRange<Double> {
        let length = Double(chirp.count)
        // A tenth of a millisecond of doubt about the place is no reason to cut.
        let slack = rate * 0.001
        let low = start < 0 && Double(-start) > slack ? (16 * Double(-start) / length).rounded(.up) / 16 : 0
        let left = Double(signal.count - start)
        let high = left < length - slack ? (16 * left / length).rounded(.down) / 16 : 1
        return min(low, 1)...max(min(low, 1), high)
    }

    private func clipped(_ signal: [Float], from position: Double, _ count: Int) -> Double {
        let start = min(max(Int(position.rounded()), 0), signal.count)
        let range = start..<min(start + count, signal.count)
        guard !range.isEmpty else { return 0 }
        var (largest, at): (Float, Int) = (0, 0)
        for x in signal[range] {
            let size = abs(x)
            if size > largest * 1.0001 { (largest, at) = (size, 1) } else if size > largest * 0.9999 { at += 1 }
        }
        // Fewer than four in a row of a hundred are chance.
        return Double(at) / Double(range.count)
    }
}
