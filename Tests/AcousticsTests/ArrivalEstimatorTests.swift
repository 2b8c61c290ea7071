internal import AcousticScenes
internal import Acoustics
internal import Foundation
internal import Protocol
internal import TestSupport
internal import Testing

@Suite struct ArrivalEstimatorTests {
    static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)

    /// A chirp at a place of 48,000 samples a second with noise of a ratio in dB, and what the estimator makes of it.
    private func trial(
        _ spec: ChirpSpec, snr: Double, place: Double, _ random: inout SeededGenerator, rate: Double = 48_000,
        change: (inout [Float]) -> Void = { _ in }
    ) -> ArrivalOutcome {
        var signal = Scene.chirp(spec, rate: rate, at: place, count: 44_000)
        change(&signal)
        let power = Scene.power(Scene.chirp(spec, rate: rate, at: place, count: 44_000), 14_000..<38_000)
        Scene.addNoise((power / pow(10, snr / 10)).squareRoot(), to: &signal, &random)
        return ArrivalEstimator(spec: spec, rate: rate).estimate(signal, near: place.rounded() + 40)
    }

    @Test(
        "the error in white noise is near to the bound of Cramér and Rao, and the uncertainty is true",
        arguments: [-20.0, -10, 0, 10, 20, 30])
    func bound(snr: Double) throws {
        var random = SeededGenerator(seed: 11)
        var (squares, inside) = (0.0, 0)
        let trials = 24
        for _ in 0..<trials {
            let place = 14_000 + Double.random(in: 0..<1, using: &random)
            let arrival = try #require(trial(Self.up, snr: snr, place: place, &random).arrival)
            squares += (arrival.position - place) * (arrival.position - place)
            if abs(arrival.position - place) <= 2 * arrival.deviation { inside += 1 }
        }
        let rms = (squares / Double(trials)).squareRoot()
        let bound = Scene.bound(Self.up, rate: 48_000, snr: pow(10, snr / 10)) * 48_000
        // 24 draws of a normal variable have an RMS within 1 ± 0.14; 1.5 is over three of those.
        #expect(rms < 1.5 * bound, "\(rms / bound) of the bound")
        #expect(inside >= 20)
    }

    @Test("in simulated rooms the direct path is found, and the uncertainty is true")
    func rooms() throws {
        var random = SeededGenerator(seed: 23)
        let estimator = ArrivalEstimator(spec: Self.up, rate: 48_000)
        let source = Scene.chirp(Self.up, rate: 48_000, at: 14_000, count: 60_000)
        var (errors, inside): ([Double], Int) = ([], 0)
        for _ in 0..<20 {
            let room = RoomSimulator.random(&random)
            let (a, b) = room.pair(&random)
            let snr = Double.random(in: 0...20, using: &random)
            var signal = Scene.convolve(
                source, room.response(from: a, to: b, rate: 48_000, duration: room.reverberation * 0.8))
            let place = 14_000 + a.distance(to: b) / RoomSimulator.soundSpeed * 48_000
            let power = Scene.power(signal, Int(place)..<Int(place) + 24_000)
            Scene.addNoise((power / pow(10, snr / 10)).squareRoot(), to: &signal, &random)
            let filter = try #require(MatchedFilter(specs: [Self.up], rate: 48_000))
            let best = try #require((filter.push(signal) + filter.finish()).max { $0.correlation < $1.correlation })
            let arrival = try #require(estimator.estimate(signal, near: best.position).arrival)
            errors.append(abs(arrival.position - place) / 48_000)
            if abs(arrival.position - place) <= 2 * arrival.deviation { inside += 1 }
        }
        // Of 20 the 19th: the 95th percentile.
        #expect(errors.sorted()[18] < 50e-6)
        #expect(inside >= 18)
    }

    @Test("the last 300 or 400 ms missing: by the file's end, or by silence", arguments: [300.0, 400])
    func partial(missing: Double) throws {
        var random = SeededGenerator(seed: 31)
        let place = 14_000.37
        let left = Int(48_000 * (0.5 - missing / 1000))
        for ends in [true, false] {
            let outcome = trial(Self.up, snr: 10, place: place, &random) { signal in
                if ends {
                    signal.removeLast(signal.count - 14_000 - left)
                } else {
                    for i in 14_000 + left..<signal.count { signal[i] = 0 }
                }
            }
            let arrival = try #require(outcome.arrival)
            // A share s of the chirp has a bound s^−1.5 times as wide: 0.58 µs × 23 for an eighth, so 60 µs is 4.5 of it.
            #expect(abs(arrival.position - place) / 48_000 < 60e-6)
            #expect(abs(arrival.position - place) < 4 * arrival.deviation + 0.05)
            #expect(abs(arrival.part.upperBound - (1 - missing / 500)) < 0.1)
            #expect(arrival.part.lowerBound == 0)
        }
    }

    @Test("clipping and a gain that is turned down by 12 dB on the way are taken, and clipping is told")
    func distorted() throws {
        var random = SeededGenerator(seed: 37)
        let place = 14_000.81
        let hard = try #require(
            trial(Self.up, snr: 20, place: place, &random) { signal in
                for i in signal.indices { signal[i] = max(-0.2, min(0.2, signal[i])) }
            }.arrival)
        #expect(abs(hard.position - place) / 48_000 < 8e-6)
        var clean = Scene.chirp(Self.up, rate: 48_000, at: place, count: 44_000)
        for i in clean.indices { clean[i] = max(-0.2, min(0.2, clean[i])) }
        let told = ArrivalEstimator(spec: Self.up, rate: 48_000).estimate(clean, near: place).arrival
        // A sine of 0.8 is over 0.2 for 1 − 2/π·asin(1/4) = 84 % of the time.
        #expect(abs((told?.clipped ?? 0) - 0.84) < 0.06)
        let soft = try #require(
            trial(Self.up, snr: 20, place: place, &random) { signal in
                for i in 14_000..<signal.count {
                    signal[i] *= Float(max(0.25, 1 - 0.75 * Double(i - 14_000) / 14_400))
                }
            }.arrival)
        // A kink in the gain is left after the tilt: less is known, and that is said.
        #expect(abs(soft.position - place) / 48_000 < 100e-6, "\(soft)")
        #expect(abs(soft.position - place) < 3 * soft.deviation)
        #expect(soft.clipped < 0.01)
    }

    @Test("what a microphone can't hear is said: a rate too low, a band cut off, zeros, and mere noise")
    func deaf() throws {
        let slow = ArrivalEstimator(spec: Self.up, rate: 16_000).estimate(
            [Float](repeating: 0.1, count: 9000), near: 100)
        guard case .deaf(let limit) = slow else { return #expect(Bool(false), "\(slow)") }
        #expect(limit == .rateTooLow(rate: 16_000, needed: 19_000))
        #expect(limit.description.contains("16000 Hz"))
        let estimator = ArrivalEstimator(spec: Self.up, rate: 48_000)
        #expect(estimator.estimate([Float](repeating: 0, count: 90_000), near: 30_000) == .deaf(.silent))
        // A voice of 16 kHz in a file of 48 kHz: 1 kHz alone.
        let voice = Scene.chirp(
            ChirpSpec(fromHz: 900, toHz: 1100, durationMilliseconds: 1500, envelopeMilliseconds: 300), rate: 48_000,
            at: 5000, count: 90_000)
        guard case .deaf(.bandRemoved) = estimator.estimate(voice, near: 30_000) else {
            return #expect(Bool(false), "\(estimator.estimate(voice, near: 30_000))")
        }
        var random = SeededGenerator(seed: 41)
        var noise = [Float](repeating: 0, count: 90_000)
        Scene.addNoise(0.1, to: &noise, &random)
        guard case .absent = estimator.estimate(noise, near: 30_000) else {
            return #expect(Bool(false), "\(estimator.estimate(noise, near: 30_000))")
        }
        for place in [Double.nan, .infinity, -1e9, 1e12, 90_000] {
            #expect(estimator.estimate(noise, near: place) == .outside)
        }
        #expect(estimator.estimate([], near: 0) == .outside)
        #expect(estimator.estimate([Float](repeating: .nan, count: 90_000), near: 30_000).arrival == nil)
    }

    @Test("a card's skew moves both sweeps as the arithmetic says")
    func skew() throws {
        // Arrival moves by (f/slope + T/2)·skew: (18,000/4000 + 0.25) × 1e-4 = 475 µs for the way up, −425 µs for down.
        for (spec, shift) in [(Self.up, 475e-6), (Self.up.reversed, -425e-6)] {
            let signal = Scene.chirp(spec, rate: 48_000, at: 14_000, count: 44_000, stretch: 1.0001)
            let found = try #require(ArrivalEstimator(spec: spec, rate: 48_000).estimate(signal, near: 14_000).arrival)
            #expect(abs((found.position - 14_000) / 48_000 - shift) < 8e-6)
            let right = ArrivalEstimator(spec: spec, rate: 48_000 * 1.0001).estimate(signal, near: 14_000).arrival
            #expect(abs(try #require(right).position - 14_000) / 48_000 < 0.5e-6)
        }
    }

    @Test("the audible preset and 44.1 kHz are as good")
    func presets() throws {
        var random = SeededGenerator(seed: 43)
        let audible = ChirpSpec(fromHz: 400, toHz: 2_500)
        for (spec, rate) in [(audible, 48_000.0), (audible.reversed, 44_100), (Self.up, 44_100)] {
            let place = 14_000.25
            let arrival = try #require(trial(spec, snr: 10, place: place, &random, rate: rate).arrival)
            // The bound is 0.6 µs.
            #expect(abs(arrival.position - place) / rate < 2.5e-6)
        }
    }
}
