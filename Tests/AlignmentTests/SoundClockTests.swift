internal import AcousticScenes
internal import TestSupport
internal import Testing

@testable internal import Alignment

@Suite struct SoundClockTests {
    @Test("Stamps with 100 µs of jitter tell an instant to some microseconds, and the card's rate to a ppm")
    func line() throws {
        var random = SeededGenerator(seed: 4)
        // 48 kHz, 70 ppm fast: 48,003.36 samples a second.
        let points = (0..<600).map { row -> (place: Double, time: Int64) in
            let place = Double(row * 4_800)
            let time = 1e18 + place / (48_000 * (1 + 70e-6)) * 1e9 + random.normal() * 100_000
            return (place, 1_000_000_000_000_000_000 + Int64((time - 1e18).rounded()))
        }
        let clock = try #require(SoundClock(points, rate: 48_000))
        for place in [0.0, 1_234_567.25, 2_875_200] {
            let reading = clock.reading(at: place)
            let truth = Int64((place / (48_000 * (1 + 70e-6)) * 1e9).rounded())
            let error = Double(reading.time - 1_000_000_000_000_000_000 - truth)
            #expect(abs(error) < 4 * reading.deviation + 200, "\(place): \(error) ± \(reading.deviation)")
            #expect(reading.deviation < 25_000)
            #expect(abs(reading.cardSkew - 70e-6) < 4e-6)
        }
    }

    @Test("Behind an overrun the line begins anew, and a wild stamp doesn't bend it")
    func jumps() throws {
        var points = (0..<200).map { (place: Double($0 * 4_800), time: Int64($0) * 100_000_000) }
        // 250 ms are lost behind the hundredth row, and one stamp is half a second wrong.
        for index in 100..<200 { points[index].time += 250_000_000 }
        points[150].time += 1_000_000
        let clock = try #require(SoundClock(points, rate: 48_000))
        #expect(abs(clock.reading(at: 99 * 4_800).time - 9_900_000_000) < 1000)
        #expect(abs(clock.reading(at: 100 * 4_800).time - 10_250_000_000) < 1000)
        #expect(abs(clock.reading(at: 150 * 4_800).time - 15_250_000_000) < 1000)
    }

    @Test("One stamp alone is known to a millisecond")
    func single() throws {
        let clock = try #require(SoundClock([(0, 5_000_000_000)], rate: 44_100))
        #expect(clock.reading(at: 44_100).time == 6_000_000_000)
        #expect(clock.reading(at: 44_100).deviation >= 1e6)
        #expect(SoundClock([], rate: 44_100) == nil)
    }
}
