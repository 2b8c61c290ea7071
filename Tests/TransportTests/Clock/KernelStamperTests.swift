internal import Testing
internal import Timing

@testable internal import Transport

/// The wall clock is `step` ahead of monotonic time; a reading takes 60 ns, and the wall is read in its middle.
@Suite struct KernelStamperTests {
    private func reading(at monotonic: Int64, step: Int64, width: Int64 = 60) -> KernelStamper.Reading {
        .init(before: monotonic, wall: monotonic + width / 2 + step, after: monotonic + width)
    }

    private let step: Int64 = 1_700_000_000_000_000_000

    @Test("the kernel's stamp is moved onto monotonic time, late by less than a reading")
    func moves() {
        var stamper = KernelStamper()
        stamper.note(reading(at: 1000, step: step))
        let stamp = stamper.arrival(kernel: step + 5000, reading: reading(at: 9000, step: step), notBefore: 2000)
        #expect((5000...5030).contains(stamp))
        #expect(stamper.fallbacks == 0)
    }

    @Test("readings narrow each other down, and a slow one does no harm")
    func narrows() {
        var stamper = KernelStamper()
        stamper.note(reading(at: 1000, step: step, width: 20))
        let slow = reading(at: 9000, step: step, width: 50_000)
        let stamp = stamper.arrival(kernel: step + 5000, reading: slow, notBefore: 2000)
        #expect((5000...5010).contains(stamp))
    }

    @Test(
        "a step of the wall clock between the stamp and the reading gives the time of the reading",
        arguments: [1_000_000, -1_000_000, 3_600_000_000_000, -3_600_000_000_000, 500, -500] as [Int64])
    func steps(by change: Int64) {
        var stamper = KernelStamper()
        stamper.note(reading(at: 1000, step: step))
        let stepped = reading(at: 9000, step: step + change)
        let stamp = stamper.arrival(kernel: step + 5000, reading: stepped, notBefore: 2000)
        #expect(stamp == 9060)
        #expect(stamper.steps == 1)
        #expect(stamper.fallbacks == 1)
        // And the next one is good again.
        let next = stamper.arrival(
            kernel: step + change + 20_000, reading: reading(at: 21_000, step: step + change), notBefore: 10_000)
        #expect((20_000...20_030).contains(next))
    }

    @Test(
        "a stamp from before the socket was empty, none at all, and none with a reading before: the time of the reading"
    )
    func untrusted() {
        var stamper = KernelStamper()
        let first = stamper.arrival(kernel: step + 5000, reading: reading(at: 9000, step: step), notBefore: 2000)
        #expect(first == 9060)
        let early = stamper.arrival(kernel: step + 5000, reading: reading(at: 19_000, step: step), notBefore: 12_000)
        #expect(early == 19_060)
        let none = stamper.arrival(kernel: nil, reading: reading(at: 29_000, step: step), notBefore: 22_000)
        #expect(none == 29_060)
        // A stamp after the reading can't be; it is cut, not believed.
        let late = stamper.arrival(kernel: step + 50_000, reading: reading(at: 39_000, step: step), notBefore: 32_000)
        #expect(late == 39_060)
        #expect(stamper.fallbacks == 3)
    }

    @Test(
        "a send stamp is moved early by less than a reading, and never before the call; what can't be trusted is the call"
    )
    func departures() {
        var stamper = KernelStamper()
        let unknown = stamper.departure(kernel: step + 5000, sent: 4000, reading: reading(at: 9000, step: step))
        #expect(unknown == 4000)
        let good = stamper.departure(kernel: step + 15_000, sent: 14_000, reading: reading(at: 19_000, step: step))
        #expect((14_970...15_000).contains(good))
        let early = stamper.departure(kernel: step + 23_000, sent: 24_000, reading: reading(at: 29_000, step: step))
        #expect(early == 24_000)
        let none = stamper.departure(kernel: nil, sent: 34_000, reading: reading(at: 39_000, step: step))
        #expect(none == 34_000)
        // After the call returned it can't have left; and a step of the wall clock in between.
        let late = stamper.departure(kernel: step + 60_000, sent: 44_000, reading: reading(at: 49_000, step: step))
        #expect(late == 44_000)
        let stepped = stamper.departure(
            kernel: step + 55_000, sent: 54_000, reading: reading(at: 59_000, step: step + 500))
        #expect(stepped == 54_000)
        #expect(stamper.steps == 1)
        #expect(stamper.fallbacks == 4)
    }

    @Test("wild numbers don't crash")
    func wild() {
        var stamper = KernelStamper()
        for value in [Int64.min, -1, 0, 1, .max] {
            for other in [Int64.min, -1, 0, 1, .max] {
                let reading = KernelStamper.Reading(before: value, wall: other, after: value)
                _ = stamper.arrival(kernel: other, reading: reading, notBefore: value)
                _ = stamper.departure(kernel: other, sent: value, reading: reading)
            }
        }
    }

    @Test("each address has its own measure, all together have one, and memory is bounded")
    func rateLimit() {
        var limit = RateLimit(perAddress: (rate: 5, burst: 10), overall: (rate: 200, burst: 30), capacity: 100)
        let start = Timestamp<HostTime>(nanoseconds: 0)
        let first = (0..<20).filter { _ in limit.admit("a", at: start) }.count
        #expect(first == 10)
        // 5 a second: one after 0.2 s.
        let later = (0..<20).filter { _ in limit.admit("a", at: start + .milliseconds(200)) }.count
        #expect(later == 1)
        // 30 + 40 for all; 11 are used.
        let others = (0..<1000).filter { limit.admit("b\($0)", at: start + .milliseconds(200)) }.count
        #expect((20...60).contains(others))
        #expect(limit.addressCount <= 100)
    }
}
