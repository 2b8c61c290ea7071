internal import Acoustics
internal import Foundation
internal import Protocol
internal import Testing

@Suite struct ChirpFinderTests {
    /// A generator of our own, so that the noise is the same at each run.
    struct Noise: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state ^ (state >> 29)) &* 0xbf58_476d_1ce4_e5b9
        }
        /// About normal: the sum of 12 uniforms has variance 1.
        mutating func normal() -> Double {
            (0..<12).reduce(-6.0) { sum, _ in sum + Double.random(in: 0..<1, using: &self) }
        }
    }

    struct Case: Sendable {
        let spec: ChirpSpec
        let rate: Int
        /// Where the chirp really begins, samples.
        let place: Double
        let amplitude: Double
        let noise: Double
    }

    static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)
    static let cases = [
        Case(spec: up, rate: 48_000, place: 3000, amplitude: 0.8, noise: 0.001),
        Case(spec: up, rate: 48_000, place: 3007.37, amplitude: 0.1, noise: 0.02),
        Case(spec: up.reversed, rate: 44_100, place: 2900.5, amplitude: 0.05, noise: 0.02),
        // The noise is as strong as the chirp: 0.03²/2 and 0.021².
        Case(spec: up, rate: 48_000, place: 3011.8, amplitude: 0.03, noise: 0.021),
        Case(spec: ChirpSpec(fromHz: 400, toHz: 2_500), rate: 44_100, place: 3100.25, amplitude: 0.1, noise: 0.01),
    ]

    /// The chirp of the specification, begun at a broken sample, made from the formula: no interpolation is in it.
    static func signal(_ test: Case, count: Int) -> [Float] {
        var noise = Noise(state: 7)
        let (duration, envelope) = (test.spec.durationMilliseconds / 1000, test.spec.envelopeMilliseconds / 1000)
        let slope = (test.spec.toHz - test.spec.fromHz) / duration
        return (0..<count).map { index in
            let t = (Double(index) - test.place) / Double(test.rate)
            var value = test.noise * noise.normal()
            if t > 0 && t < duration {
                let edge = min(t, duration - t) / envelope
                let gain = edge < 1 ? 0.5 * (1 - cos(Double.pi * edge)) : 1
                value += test.amplitude * gain * sin(2 * Double.pi * (test.spec.fromHz * t + slope * t * t / 2))
            }
            return Float(value)
        }
    }

    @Test("a chirp is found to a part of a sample, also in noise", arguments: cases)
    func found(_ test: Case) throws {
        let finder = try #require(ChirpFinder(spec: test.spec, rate: test.rate))
        let signal = Self.signal(test, count: 32_000)
        let arrival = try #require(finder.find(in: signal, window: 600..<5400))
        #expect(abs(arrival.position - test.place) < 0.5)
        #expect(arrival.confidence > (test.amplitude > test.noise * 2 ? 0.9 : 0.8))
    }

    @Test("a card's skew moves what is found as the arithmetic says, and the true rate puts it right")
    func skew() throws {
        // The card runs 200 ppm fast: 18 kHz then reads 3.6 Hz low, which is 3.6/4000 s = 0.9 ms = 43.2 samples late.
        let trueRate = 48_000 * 1.0002
        let slope = 4000.0
        let signal = (0..<32_000).map { index in
            let t = (Double(index) - 3000) / trueRate
            return t < 0 || t > 0.5 ? 0 : Float(0.5 * sin(2 * Double.pi * (17_000 * t + slope * t * t / 2)))
        }
        let exact = try #require(ChirpFinder(spec: Self.up, trueRate: trueRate)?.find(in: signal, window: 600..<5400))
        #expect(abs(exact.position - 3000) < 0.5)
        let nominal = try #require(ChirpFinder(spec: Self.up, rate: 48_000)?.find(in: signal, window: 600..<5400))
        #expect(abs(nominal.position - 3043.2) < 3)
    }

    @Test("noise, silence and the other chirp are told from the chirp")
    func notFound() throws {
        let finder = try #require(ChirpFinder(spec: Self.up, rate: 48_000))
        let noise = Self.signal(Case(spec: Self.up, rate: 48_000, place: 1e9, amplitude: 0, noise: 0.1), count: 32_000)
        #expect(try #require(finder.find(in: noise, window: 600..<5400)).confidence < 0.3)
        #expect(finder.find(in: [Float](repeating: 0, count: 32_000), window: 600..<5400) == nil)
        #expect(finder.find(in: [], window: 0..<100) == nil)
        #expect(finder.find(in: [0.1, 0.2], window: -50..<100) == nil)
        let stop = Case(spec: Self.up.reversed, rate: 48_000, place: 3000, amplitude: 0.8, noise: 0.001)
        let other = try #require(finder.find(in: Self.signal(stop, count: 32_000), window: 600..<5400))
        #expect(other.confidence < 0.4)
    }

    @Test("the band's energy is a tone's mean square, and only inside the band")
    func bands() {
        let band = BandEnergy(rate: 48_000)
        let tone = { (hertz: Double) in
            (0..<4800).map { Float(0.5 * sin(2 * Double.pi * hertz * Double($0) / 48_000)) }
        }
        // 0.5² / 2 = 0.125, which is −6.02 dB of full scale.
        #expect(abs(band.level(of: tone(18_000), at: 480).meanSquare - 0.125) < 0.002)
        #expect(abs(band.level(of: tone(18_033), at: 480).decibels + 6.02) < 0.1)
        #expect(band.level(of: tone(1_000), at: 480).decibels < -60)
        #expect(band.level(of: tone(15_000), at: 480).decibels < -60)
        let profile = band.profile(of: [Float](repeating: 0, count: 4800) + tone(18_000))
        #expect(profile.count == 20)
        #expect(profile.first { $0.decibels > -20 }?.position == 4800)
    }
}
