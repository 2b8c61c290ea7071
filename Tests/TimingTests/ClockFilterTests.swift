internal import Testing
internal import Timing

@Suite struct ClockFilterTests {
    private func exchange(at ms: Int64, delay: Int64) -> ClockExchange<RigTime, HostTime> {
        let sent = Timestamp<RigTime>(nanoseconds: ms * 1_000_000)
        return ClockExchange(
            sent: sent, arrived: Timestamp(nanoseconds: ms * 1_000_000 + delay / 2),
            answered: Timestamp(nanoseconds: ms * 1_000_000 + delay / 2), received: sent + .nanoseconds(delay))
    }

    @Test("of a burst the quickest way there and the quickest way back are kept, in their order")
    func directions() {
        func one(_ ms: Int64, there: Int64, back: Int64) -> ClockExchange<RigTime, HostTime> {
            let sent = ms * 1_000_000
            return ClockExchange(
                sent: Timestamp(nanoseconds: sent), arrived: Timestamp(nanoseconds: sent + there),
                answered: Timestamp(nanoseconds: sent + there), received: Timestamp(nanoseconds: sent + there + back))
        }
        var filter = ClockFilter<RigTime, HostTime>()
        let burst = [one(1, there: 500, back: 100), one(2, there: 100, back: 500), one(3, there: 300, back: 300)]
        let kept = burst.map { filter.add($0) }
        #expect(kept == [true, true, false])
        #expect(filter.exchanges == [burst[0], burst[1]])
        // One that is quicker both ways takes the place of both.
        let best = one(4, there: 90, back: 90)
        let isKept = filter.add(best)
        #expect(isKept)
        #expect(filter.exchanges == [best])
    }

    @Test("of each slot the least delayed exchange is kept")
    func leastDelay() {
        var filter = ClockFilter<RigTime, HostTime>(slot: .milliseconds(100), window: .milliseconds(10_000))
        var kept: [Bool] = []
        kept.append(filter.add(exchange(at: 10, delay: 500)))
        kept.append(filter.add(exchange(at: 20, delay: 500)))
        kept.append(filter.add(exchange(at: 90, delay: 300)))
        kept.append(filter.add(exchange(at: 110, delay: 900)))
        #expect(kept == [true, false, true, true])
        #expect(filter.exchanges.map(\.delay.nanoseconds) == [300, 900])
        #expect(filter.leastDelay == .nanoseconds(300))
    }

    @Test("what comes late from an older slot is not kept, also around zero")
    func order() {
        var filter = ClockFilter<RigTime, HostTime>(slot: .milliseconds(100), window: .milliseconds(10_000))
        var kept: [Bool] = []
        kept.append(filter.add(exchange(at: -50, delay: 500)))
        kept.append(filter.add(exchange(at: 50, delay: 900)))
        kept.append(filter.add(exchange(at: -60, delay: 1)))
        #expect(kept == [true, true, false])
        #expect(filter.exchanges.count == 2)
    }

    @Test("memory is bounded by the window")
    func window() {
        var filter = ClockFilter<RigTime, HostTime>(slot: .milliseconds(100), window: .milliseconds(1000))
        for tick in 0..<1000 { _ = filter.add(exchange(at: Int64(tick) * 100, delay: 500)) }
        #expect(filter.exchanges.count == 11)
        #expect(filter.exchanges.first?.sent.nanoseconds == 98_900_000_000)
        filter.keepNewest(3)
        #expect(filter.exchanges.count == 3)
        filter.keepNewest(-1)
        #expect(filter.exchanges.isEmpty)
    }
}
