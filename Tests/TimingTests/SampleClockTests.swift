internal import TestSupport
internal import Testing
internal import Timing

/// The fit against cards whose truth is known.
@Suite struct SampleClockTests {
    private static let rate = 48_000
    private static let period: Int64 = 960
    private static let begin = Timestamp<HostTime>(nanoseconds: 7_000_000_000_000)

    /// A card's true time at a second of its own nominal time: ppm are parts of the host's time.
    private struct Card {
        var ppm: Double
        /// From this nominal second on the rate is another one.
        var step: (second: Double, ppm: Double)?

        func host(_ nominal: Double) -> Timestamp<HostTime> {
            let early = min(nominal, step?.second ?? nominal)
            let late = nominal - early
            return begin + .seconds(early / (1 + ppm * 1e-6) + late / (1 + (step?.ppm ?? ppm) * 1e-6))
        }
    }

    /// Runs a card for some minutes of 20 ms periods, each read up to `late` seconds too late.
    ///
    /// - Returns: the clock, and the largest distance from the truth after the first half minute, seconds.
    private static func run(
        _ card: Card, minutes: Double, late: Double, seed: UInt64, changes: inout [SampleClock.Change]
    ) -> (clock: SampleClock, worst: Double) {
        var generator = SeededGenerator(seed: seed)
        var clock = SampleClock(rate: rate)
        var worst = 0.0
        for block in 1...Int64(minutes * 3000) {
            let position = block * period
            let truth = card.host(Double(position) / Double(rate))
            let reading = truth + .seconds(Double.random(in: 0...late, using: &generator))
            if let change = clock.take(position: position, at: reading) { changes.append(change) }
            guard block > 1500, let fitted = clock.time(of: position) else { continue }
            worst = max(worst, abs((fitted.instant - truth).seconds))
        }
        return (clock, worst)
    }

    @Test(
        "65: 80 ppm over 10 minutes are given back to 2 ppm, and the uncertainty holds",
        arguments: 0..<8 as Range<UInt64>)
    func skew(seed: UInt64) throws {
        var changes: [SampleClock.Change] = []
        let (clock, worst) = Self.run(Card(ppm: 80), minutes: 10, late: 1e-3, seed: seed, changes: &changes)
        let skew = try #require(clock.skew)
        #expect(abs(skew.ppm - 80) < 2)
        #expect(abs(skew.ppm - 80) <= skew.uncertainty)
        #expect(skew.uncertainty < 2)
        // The earliest of 50 readings between 0 and 1 ms is 20 µs late on the average.
        #expect(worst < 100e-6)
        #expect(changes.isEmpty)
    }

    @Test("47: cards of ±1000 ppm are followed", arguments: [-1000, -390, 390, 1000] as [Double])
    func wide(ppm: Double) throws {
        var changes: [SampleClock.Change] = []
        let (clock, worst) = Self.run(Card(ppm: ppm), minutes: 16, late: 50e-6, seed: 5, changes: &changes)
        #expect(abs(try #require(clock.skew).ppm - ppm) < 0.1)
        #expect(worst < 20e-6)
        #expect(changes.isEmpty)
    }

    @Test("67, 68: a rate that steps by 20 ppm after half an hour begins a new line, never 100 µs off")
    func rateStep() throws {
        var changes: [SampleClock.Change] = []
        let card = Card(ppm: 12, step: (1800, -8))
        let (clock, worst) = Self.run(card, minutes: 35, late: 50e-6, seed: 11, changes: &changes)
        #expect(changes == [.rate])
        #expect(worst < 100e-6)
        #expect(abs(try #require(clock.skew).ppm + 8) < 1)
    }

    @Test("a counter that leaps is told from a rate that changes")
    func jump() throws {
        var clock = SampleClock(rate: Self.rate)
        let card = Card(ppm: -30)
        var changes: [SampleClock.Change] = []
        // After a minute 480 frames, 10 ms, are missing without a word: the counter is behind from there on.
        for block in 1...6000 as ClosedRange<Int64> {
            let position = block * Self.period
            let missing: Int64 = block > 3000 ? 480 : 0
            let truth = card.host(Double(position) / Double(Self.rate))
            if let change = clock.take(position: position - missing, at: truth) { changes.append(change) }
        }
        #expect(changes.count == 1)
        guard case .jump(let length) = changes.first else {
            Issue.record("\(changes)")
            return
        }
        #expect((length - .milliseconds(10)).magnitude < .microseconds(100))
        let last = 6000 * Self.period
        let fitted = try #require(clock.time(of: last - 480))
        #expect((fitted.instant - card.host(Double(last) / Double(Self.rate))).magnitude < .microseconds(20))
    }

    @Test("after an overrun the rate is still known")
    func restart() throws {
        var changes: [SampleClock.Change] = []
        var (clock, _) = Self.run(Card(ppm: 250), minutes: 1, late: 1e-4, seed: 3, changes: &changes)
        clock.restart()
        #expect(clock.time(of: 0) == nil)
        let again = Self.begin + .seconds(100)
        // One reading, and then a look 2 s further: at 250 ppm these are 500 µs.
        _ = clock.take(position: 960, at: again)
        let fitted = try #require(clock.time(of: 960 + 96_000))
        #expect((fitted.instant - (again + .seconds(2 / 1.00025))).magnitude < .microseconds(20))
    }

    @Test("readings without sense move nothing out of range")
    func wild() {
        var generator = SeededGenerator(seed: 1)
        var clock = SampleClock(rate: Self.rate)
        for _ in 0..<2000 {
            _ = clock.take(
                position: Int64.random(in: .min ... .max, using: &generator),
                at: Timestamp(nanoseconds: Int64.random(in: .min ... .max, using: &generator)))
            _ = clock.time(of: Int64.random(in: .min ... .max, using: &generator))
            _ = clock.skew
        }
    }
}
