internal import TestSupport
internal import Testing
internal import Timing

@Suite("Counter unwrapper")
struct CounterUnwrapperTests {
    @Test("ticks become nanoseconds rounded down, and saturate")
    func shape() {
        #expect(CounterShape.milliseconds16.period == .milliseconds(65_536))
        // 2^32 µs = 71 min 34.967296 s.
        #expect(CounterShape.microseconds32.period == .nanoseconds(4_294_967_296_000))
        #expect(CounterShape.microseconds64.period == nil)
        let crystal = CounterShape(bits: 32, ticksPerSecond: 32_768)
        // 1/32768 s = 30517.578125 ns.
        #expect(crystal.nanoseconds(ofTicks: 1) == 30_517)
        #expect(crystal.nanoseconds(ofTicks: 32_768) == 1_000_000_000)
        #expect(crystal.tick == .nanoseconds(30_518))
        #expect(crystal.ticks(of: .milliseconds(1000)) == 32_768)
        #expect(CounterShape(bits: 64, ticksPerSecond: 1).nanoseconds(ofTicks: .max) == .max)
        #expect(CounterShape(bits: 64, ticksPerSecond: 1).nanoseconds(ofTicks: .min) == .min)
    }

    @Test(
        "any width and rate, with arrivals that jitter and pauses of many periods",
        arguments: [(8, 100), (10, 1000), (16, 1000), (24, 32_768), (32, 1_000_000), (48, 1_000_000), (63, 1_000_000)])
    func anyShape(bits: Int, rate: Int64) {
        let shape = CounterShape(bits: bits, ticksPerSecond: rate)
        var generator = SeededGenerator(seed: UInt64(bits))
        var unwrapper = CounterUnwrapper(shape)
        let origin = UInt64.random(in: 0..<(1 << UInt64(min(bits, 40))), using: &generator)
        let first = Timestamp<HostTime>(nanoseconds: 77_000_000_000)
        let skew = 1 + Double.random(in: -1e-3...1e-3, using: &generator)
        var taken = 0.0
        // A delay may take up most of what the counter can tell apart.
        let spread = min(0.4, (shape.period?.seconds ?? 10) / 2 - 0.1)
        for index in 0..<3000 {
            let ticks = origin + UInt64(taken * skew * Double(rate))
            let delay = index == 0 ? 0 : Double.random(in: 0...spread, using: &generator)
            let raw = bits == 64 ? ticks : ticks & ((1 << UInt64(bits)) - 1)
            let reading = unwrapper.unwrap(raw, arrival: first + .seconds(taken + delay))
            let zero = origin & ((1 << UInt64(bits)) - 1)
            let expected = shape.nanoseconds(ofTicks: Int64(zero + (ticks - origin)))
            #expect(reading.outcome == .continuous)
            #expect(reading.device.nanoseconds == expected)
            taken += index % 500 == 499 ? 33 : 0.01
        }
        #expect(unwrapper.epoch == 0)
        #expect(unwrapper.damaged == 0)
    }

    @Test("a duplicate that comes late keeps its time")
    func duplicate() {
        var unwrapper = CounterUnwrapper(.milliseconds16)
        let start = Timestamp<HostTime>(nanoseconds: 1_000_000_000)
        for step in 0..<100 {
            _ = unwrapper.unwrap(UInt64(65_000 + step * 10) & 0xFFFF, arrival: start + .milliseconds(Int64(step) * 10))
        }
        // 65 530 came 530 ms after 65 000, before the counter went around.
        let again = unwrapper.unwrap(65_530, arrival: start + .milliseconds(1000))
        #expect(again.device == Timestamp(nanoseconds: 65_530_000_000))
        let next = unwrapper.unwrap(66_000 & 0xFFFF, arrival: start + .milliseconds(1001))
        #expect(next.device == Timestamp(nanoseconds: 66_000_000_000))
    }

    @Test("wild counters and arrivals never trap", arguments: 0..<20 as Range<UInt64>)
    func wild(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bits = Int.random(in: 1...64, using: &generator)
        let rate = Int64.random(in: 1...1_000_000_000, using: &generator)
        var clock = DeviceClock(
            CounterShape(bits: bits, ticksPerSecond: rate), path: .bluetooth(connectionInterval: .microseconds(43_300)))
        for _ in 0..<500 {
            let edges: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max, Int64(bitPattern: generator.next())]
            let arrival = edges.randomElement(using: &generator) ?? 0
            let counters = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
                Bool.random(using: &generator) ? generator.next() : UInt64.max
            }
            for stamp in clock.stamps(for: counters, arrival: Timestamp(nanoseconds: arrival)) {
                #expect(stamp.uncertainty >= .zero)
            }
        }
    }
}
