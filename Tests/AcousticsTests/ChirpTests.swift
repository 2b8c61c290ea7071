internal import Acoustics
internal import Platform
internal import Protocol
internal import Testing

/// The waveform against values of an independent program.
///
/// That program is, in Python:
///
///     n=int(sr*ms/1000); e=max(1,min(int(sr*env/1000),n//2)); i=numpy.arange(n); t=i/sr; T=ms/1000; k=(f1-f0)/T
///     w=numpy.ones(n); a=i<e; w[a]=.5*(1-numpy.cos(numpy.pi*i[a]/e))
///     r=(i>=n-e)&~a; w[r]=.5*(1-numpy.cos(numpy.pi*(n-1-i[r])/e))
///     x=amp*w*numpy.sin(2*numpy.pi*(f0*t+k*t*t/2))
@Suite struct ChirpTests {
    struct Golden: Sendable, CustomTestStringConvertible {
        let spec: ChirpSpec
        let rate: Int
        let count: Int
        let values: [Int: Double]
        let energy: Double
        var testDescription: String { "\(spec.fromHz) to \(spec.toHz) Hz at \(rate)" }
    }

    static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)
    static let audible = ChirpSpec(fromHz: 400, toHz: 2_500)

    static let goldens = [
        Golden(
            spec: up, rate: 44_100, count: 22_050,
            values: [
                0: 0, 1: 3e-6, 100: -0.0160706, 300: -0.3413737, 7350: -0.5142301, 11_025: 0, 21_650: -0.4643199,
                22_048: 3.5e-6, 22_049: 0,
            ], energy: 6791.28),
        Golden(
            spec: up.reversed, rate: 44_100, count: 22_050,
            values: [
                1: 1.9e-6, 100: 0.019783, 300: 0.2879576, 7350: 0.5142301, 11_025: 0, 21_650: -0.4077292,
                22_048: 4.5e-6, 22_049: 0,
            ], energy: 6791.28),
        Golden(
            spec: up, rate: 48_000, count: 24_000,
            values: [
                0: 0, 1: 3e-6, 100: 0.0169413, 300: 0.2614653, 8000: -0.5142301, 12_000: 0, 23_600: -0.4395316,
                23_998: 3.7e-6, 23_999: 0,
            ], energy: 7391.68),
        Golden(
            spec: up.reversed, rate: 48_000, count: 24_000,
            values: [
                100: -0.0169413, 300: -0.2614653, 8000: 0.5142301, 12_000: 0, 23_600: 0.4395316, 23_998: 3.7e-6,
                23_999: 0,
            ], energy: 7391.68),
        Golden(
            spec: audible, rate: 44_100, count: 22_050,
            values: [
                100: -0.0218863, 300: -0.3112143, 7350: 0, 11_025: 0.8, 21_650: 0.0098495, 22_048: -3e-6, 22_049: 0,
            ], energy: 6791.2813),
        Golden(
            spec: audible, rate: 48_000, count: 24_000,
            values: [
                100: -0.0313302, 300: -0.1461307, 8000: 0, 12_000: 0.8, 23_600: 0.4321352, 23_998: -2.3e-6, 23_999: 0,
            ], energy: 7391.6812),
    ]

    @Test("the chirps are SyncField's, sample by sample", arguments: goldens)
    func golden(_ golden: Golden) throws {
        let samples = Chirp.samples(golden.spec, rate: golden.rate)
        try #require(samples.count == golden.count)
        for (index, value) in golden.values { #expect(abs(Double(samples[index]) - value) < 1e-6, "sample \(index)") }
        let energy = samples.reduce(0) { $0 + Double($1) * Double($1) }
        #expect(abs(energy - golden.energy) < 0.01)
        #expect(samples.allSatisfy { abs($0) <= 0.8 })
    }

    /// SHA-256 of all samples as little-endian 32-bit floats, by the program above with `math.sin` and `struct.pack`.
    @Test(
        "the chirps are the formula's, bit by bit",
        arguments: [
            (up, 44_100, "5e33c0a3c5cf0f0acbf37cccfd6d7852d646ec320ea22023222110105cac3bd8"),
            (up.reversed, 44_100, "7c240826efdec7992d93a2cd354e2a1cb7fe6a8988e41e9dd7c5dc00eec55dd4"),
            (audible, 44_100, "a03780b682667c643de78ac5f8b261aafc715751271a9db364746c50a66f0b93"),
            (audible.reversed, 44_100, "2121695620a4c31bcf6a3c9636f9a73c3b27818a56c1a3bfb3f6ae73469eaf0c"),
            (up, 48_000, "996d006a7096eaeff35ad8c1a380a2ac37492eddf0451a6ab895b802f97b94d1"),
            (up.reversed, 48_000, "39f1c44c72711db3e62324d543a89d4e803326d5d4607ad7c741c45fc2f096a6"),
            (audible, 48_000, "f7773fa7b5e54c93fd966fc11f4bf8f08e32ecc47cabf67c1dcbf4d800555393"),
            (audible.reversed, 48_000, "f83aa11dc15390b769f648f1f5b90a927c4bb6dc86a01a69091c47bba65b5104"),
        ] as [(ChirpSpec, Int, String)])
    func exact(spec: ChirpSpec, rate: Int, digest: String) {
        let bytes = Chirp.samples(spec, rate: rate).flatMap { sample in
            (0..<4).map { UInt8(truncatingIfNeeded: sample.bitPattern >> (8 * $0)) }
        }
        #expect(SHA256.of(bytes) == digest)
    }

    @Test("the ticks have SyncField's pitches and length")
    func ticks() throws {
        // 0.11 s × 44,100 = 4851 and × 48,000 = 5280; values of the program above for 880 Hz.
        let low = CountdownTick.samples(remaining: 3, rate: 44_100)
        try #require(low.count == 4851)
        for (index, value) in [100: -0.0047763, 300: -0.0727793, 1617: 0.8950697, 4451: -0.8187656, 4850: 0] {
            #expect(abs(Double(low[index]) - value) < 1e-6, "sample \(index)")
        }
        #expect(CountdownTick.samples(remaining: 3, rate: 48_000).count == 5280)
        #expect([5, 3, 2, 1].map { CountdownTick.spec(remaining: $0).fromHz } == [880, 880, 1047, 1175])
        #expect(CountdownTick.spec(remaining: 1).amplitude == 0.9)
    }

    @Test("an envelope longer than half the chirp is cut to half, one of nothing is one sample long")
    func envelopes() throws {
        // 10 ms at 1 kHz: 10 samples, ramps of 5: 0, (1−cos 36°)/2 = 0.0954915, 0.3454915, 0.6545085, 0.9045085 and back.
        // A tone of a quarter of the rate is 0, 1, 0, −1, …: sample 3 is −0.6545085; sample 5 is (1−cos(4·36°))/2 = 0.9045085.
        let short = Chirp.samples(
            ChirpSpec(fromHz: 250, toHz: 250, durationMilliseconds: 10, amplitude: 1, envelopeMilliseconds: 50),
            rate: 1000)
        try #require(short.count == 10)
        for (index, value) in [1: 0.0954915, 3: -0.6545085, 5: 0.9045085, 7: -0.3454915, 9: 0] {
            #expect(abs(Double(short[index]) - value) < 1e-6, "sample \(index)")
        }
        let hard = Chirp.samples(
            ChirpSpec(fromHz: 250, toHz: 250, durationMilliseconds: 10, amplitude: 1, envelopeMilliseconds: 0),
            rate: 1000)
        #expect(hard.map { ($0 * 1000).rounded() / 1000 } == [0, 1, 0, -1, 0, 1, 0, -1, 0, 0])
    }

    @Test("a spec that no one can play makes nothing", arguments: [Double.nan, .infinity, -1, 0, 1e12, 0.001])
    func wild(duration: Double) {
        #expect(Chirp.samples(ChirpSpec(fromHz: 1, toHz: 2, durationMilliseconds: duration), rate: 48_000).isEmpty)
        #expect(Chirp.samples(ChirpSpec(fromHz: duration, toHz: .nan), rate: 48_000).isEmpty)
        let spec = ChirpSpec(fromHz: 1, toHz: 2, durationMilliseconds: duration)
        #expect(MatchedFilter(specs: [spec], rate: 48_000) == nil)
    }
}
