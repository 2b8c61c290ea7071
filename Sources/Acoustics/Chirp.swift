internal import Glibc
package import Protocol
internal import Timing

/// The waveform of a chirp: SyncField's linear FM sweep with raised-cosine ends.
package enum Chirp {
    /// No chirp is longer than this, seconds: a spec from outside can't ask for all memory.
    package static let longest = 60.0

    /// How many samples a spec makes: trunc(rate × duration); 0 for a spec that no one can play.
    package static func count(_ spec: ChirpSpec, rate: Int) -> Int { count(spec, trueRate: Double(rate)) }

    /// The same for a card whose clock doesn't run at a round number of samples a second.
    static func count(_ spec: ChirpSpec, trueRate rate: Double) -> Int {
        let exact = rate * spec.durationMilliseconds / 1000
        guard exact.isFinite, exact >= 1, exact <= rate * longest else { return 0 }
        return Int(exact)
    }

    /// The samples, mono, within ±amplitude.
    ///
    /// phase(t) = 2π(f0·t + k·t²/2) with k = (f1 − f0)/T. Attack and release are trunc(rate × envelope) samples long,
    /// at most half the chirp and at least one; the release is counted from the last sample, which is 0.
    package static func samples(_ spec: ChirpSpec, rate: Int) -> [Float] {
        let count = count(spec, rate: rate)
        guard count > 0, [spec.fromHz, spec.toHz, spec.amplitude].allSatisfy({ $0.isFinite }) else { return [] }
        let ramp = ramp(spec, trueRate: Double(rate), count: count)
        var samples: [Float] = []
        samples.reserveCapacity(count)
        for i in 0..<count {
            let gain = spec.amplitude * envelope(at: i, of: count, ramp: ramp)
            samples.append(Float(gain * sin(phase(spec, at: Double(i) / Double(rate)))))
        }
        return samples
    }

    /// All sweeps of a moment as one sound, for a take whose start chirp is `start`; a sweep's delay is in whole samples.
    package static func samples(_ moment: ChirpMoment, of start: ChirpSpec, rate: Int) -> [Float] {
        var samples: [Float] = []
        for sweep in moment.sweeps(of: start) {
            let begin = Int((sweep.delay.seconds * Double(rate)).rounded())
            if begin > samples.count { samples += [Float](repeating: 0, count: begin - samples.count) }
            samples += self.samples(sweep.spec, rate: rate)
        }
        return samples
    }

    /// Radians at `t` seconds after the start.
    static func phase(_ spec: ChirpSpec, at t: Double) -> Double {
        let slope = (spec.toHz - spec.fromHz) / (spec.durationMilliseconds / 1000)
        return 2 * Double.pi * (spec.fromHz * t + slope * t * t / 2)
    }

    /// The length of the attack and of the release, samples.
    static func ramp(_ spec: ChirpSpec, trueRate rate: Double, count: Int) -> Int {
        let exact = rate * spec.envelopeMilliseconds / 1000
        guard exact.isFinite, exact >= 1 else { return 1 }
        return max(1, min(Int(min(exact, Double(count))), count / 2))
    }

    /// 0…1 at sample `i`.
    static func envelope(at i: Int, of count: Int, ramp: Int) -> Double {
        if i < ramp { return raisedCosine(Double(i) / Double(ramp)) }
        if i >= count - ramp { return raisedCosine(Double(count - 1 - i) / Double(ramp)) }
        return 1
    }

    private static func raisedCosine(_ x: Double) -> Double { 0.5 * (1 - cos(Double.pi * x)) }
}
