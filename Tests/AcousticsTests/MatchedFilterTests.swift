internal import AcousticScenes
internal import Acoustics
internal import Protocol
internal import TestSupport
internal import Testing

@Suite struct MatchedFilterTests {
    static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)

    @Test("a stream in pieces of any size gives the same candidates, each sweep by its name")
    func pieces() throws {
        var random = SeededGenerator(seed: 4)
        // 12 s with a start chirp at 2 s, a stop chirp at 9 s, noise as strong as they are.
        var signal = Scene.chirp(Self.up, rate: 48_000, at: 96_000.4, count: 576_000)
        let stop = Scene.chirp(Self.up.reversed, rate: 48_000, at: 432_000.9, count: 576_000)
        for i in signal.indices { signal[i] += stop[i] }
        Scene.addNoise(0.56, to: &signal, &random)
        var first: [MatchedFilter.Candidate]?
        for piece in [1 << 20, 480, 4801, 131_072] {
            let filter = try #require(MatchedFilter(specs: [Self.up, Self.up.reversed], rate: 48_000))
            var found: [MatchedFilter.Candidate] = []
            var index = 0
            while index < signal.count {
                let end = min(index + piece, signal.count)
                found += filter.push(signal[index..<end])
                index = end
            }
            found += filter.finish()
            try #require(found.count == 2)
            #expect(found.map { $0.template } == [0, 1])
            // A tenth of a cell of 0.5 ms is 2.4 samples.
            #expect(abs(found[0].position - 96_000.4) < 3)
            #expect(abs(found[1].position - 432_000.9) < 3)
            // In the band the noise is a twelfth of the chirp's power: 0.32 against 0.56² × 2/24 = 0.026.
            #expect(found.allSatisfy { $0.correlation > 0.85 && $0.correlation < 1 })
            if let first { #expect(found == first) } else { first = found }
        }
    }

    @Test("noise, silence, tones, clicks, values that aren't numbers and nothing at all give no candidate")
    func nothing() throws {
        var random = SeededGenerator(seed: 5)
        var noise = [Float](repeating: 0, count: 960_000)
        Scene.addNoise(0.2, to: &noise, &random)
        var clicks = [Float](repeating: 0, count: 480_000)
        for index in stride(from: 0, to: clicks.count, by: 9_600) { clicks[index] = 1 }
        // A tone in the band, switched on and off.
        let tone = Scene.chirp(
            ChirpSpec(fromHz: 18_000, toHz: 18_000, durationMilliseconds: 700), rate: 48_000, at: 90_000, count: 480_000
        )
        let wild = [Float](repeating: .nan, count: 300_000) + [Float](repeating: .infinity, count: 300_000)
        for signal in [noise, clicks, tone, wild, [Float](repeating: 0, count: 300_000), [], [0.5]] {
            let filter = try #require(MatchedFilter(specs: [Self.up, Self.up.reversed], rate: 48_000))
            #expect((filter.push(signal) + filter.finish()).isEmpty)
        }
    }

    @Test("a chirp of which the recording's end leaves a third is found")
    func cutByTheEnd() throws {
        let signal = Array(Scene.chirp(Self.up, rate: 48_000, at: 200_000, count: 208_000))
        let filter = try #require(MatchedFilter(specs: [Self.up, Self.up.reversed], rate: 48_000))
        let found = filter.push(signal) + filter.finish()
        let best = try #require(found.max { $0.correlation < $1.correlation })
        #expect(best.template == 0)
        #expect(abs(best.position - 200_000) < 24)
    }

    @Test("a chirp over half of the rate makes no filter", arguments: [8_000.0, 16_000, 32_000, .nan, 0, -1])
    func rates(_ rate: Double) {
        #expect(MatchedFilter(specs: [Self.up], rate: rate) == nil)
    }

    @Test("a listener gives the arrivals of a long stream, and keeps little of it")
    func listener() throws {
        var random = SeededGenerator(seed: 6)
        let listener = try #require(ChirpListener(specs: [Self.up, Self.up.reversed], rate: 48_000))
        // 40 s, a start chirp each 10 s at a broken place; noise 10 dB below.
        let places = (0..<4).map { 480_000.0 * Double($0) + 200_000.25 + Double($0) * 0.2 }
        var heard: [ChirpListener.Heard] = []
        for (index, place) in places.enumerated() {
            var part = Scene.chirp(Self.up, rate: 48_000, at: place - 480_000 * Double(index), count: 480_000)
            Scene.addNoise(0.17, to: &part, &random)
            heard += listener.push(part)
        }
        heard += listener.finish()
        try #require(heard.count == 4)
        for (arrival, place) in zip(heard, places) {
            #expect(arrival.template == 0)
            // The bound at 10 dB is 0.6 µs = 0.03 samples.
            #expect(abs(arrival.arrival.position - place) < 0.12)
        }
        #expect(ChirpListener(specs: [Self.up], rate: 16_000) == nil)
    }

    @Test(
        "specs that no one can play make neither filter nor arrival",
        arguments: [
            ChirpSpec(fromHz: .nan, toHz: 1), ChirpSpec(fromHz: -1e300, toHz: 19_000),
            ChirpSpec(fromHz: 1e300, toHz: 2), ChirpSpec(fromHz: 17_000, toHz: 19_000, durationMilliseconds: 1e9),
            ChirpSpec(fromHz: 17_000, toHz: 19_000, durationMilliseconds: .nan),
        ])
    func wild(_ spec: ChirpSpec) {
        #expect(MatchedFilter(specs: [spec], rate: 48_000) == nil)
        let outcome = ArrivalEstimator(spec: spec, rate: 48_000).estimate(
            [Float](repeating: 0.5, count: 50_000), near: 9)
        #expect(outcome.arrival == nil)
        _ = "\(MicrophoneLimit.rateTooLow(rate: .nan, needed: .infinity))"
        _ = MicrophoneLimit.judge([0.5, 0.5], rate: 48_000, spec: spec)
    }
}
