import Devices
import Testing
import Timing

@Suite struct GloveLedgerTests {
    private func reading(_ sequence: UInt32?, _ counter: UInt32 = 0) -> GloveReading {
        GloveReading(.tactile, sequence: sequence, counter: counter, values: [])
    }

    @Test func countsAcrossItsEnd() {
        var ledger = GloveLedger(rate: 100)
        #expect(ledger.judge(reading(.max - 1)) == .next(missing: 0))
        #expect(ledger.judge(reading(.max)) == .next(missing: 0))
        #expect(ledger.judge(reading(2)) == .next(missing: 2))
        #expect(ledger.missing == 2)
    }

    /// field.md 70 and 77: after a reconnection everything may be delivered twice.
    @Test func field70_repeatedRowsAreDroppedAndCounted() {
        var ledger = GloveLedger(rate: 100)
        for number in UInt32(100)...110 { _ = ledger.judge(reading(number)) }
        ledger.linkLost()
        for number in UInt32(105)...110 { #expect(ledger.judge(reading(number)) == .duplicate) }
        #expect(ledger.judge(reading(111)) == .next(missing: 0))
        #expect(ledger.duplicates == 6)
    }

    /// A step of a million or more is a damaged frame and no loss, unless the next one goes on from there.
    @Test func fault38_impossibleJumpsAreIgnored() {
        var ledger = GloveLedger(rate: 100)
        _ = ledger.judge(reading(1000))
        #expect(ledger.judge(reading(5_000_000)) == .suspect)
        #expect(ledger.judge(reading(1001)) == .next(missing: 0))
        #expect(ledger.damaged == 1 && ledger.missing == 0)
        #expect(ledger.judge(reading(9_000_000)) == .suspect)
        #expect(ledger.judge(reading(9_000_001)) == .restarted)
        #expect(ledger.judge(reading(9_000_002)) == .next(missing: 0))
    }

    @Test func aGloveThatWasSwitchedOffCountsAnew() {
        var ledger = GloveLedger(rate: 100)
        for number in UInt32(3000)...3010 { _ = ledger.judge(reading(number)) }
        ledger.linkLost()
        #expect(ledger.judge(reading(40)) == .restarted)
        #expect(ledger.judge(reading(41)) == .next(missing: 0))
    }

    /// Without a count the clock tells: more than one and a half intervals beyond the expected one.
    @Test func gapsByTheClock() {
        var ledger = GloveLedger(rate: 100)
        _ = ledger.judge(reading(nil, 4_294_960_000))
        #expect(ledger.judge(reading(nil, 2_704)) == .next(missing: 0))
        #expect(ledger.judge(reading(nil, 27_000)) == .next(missing: 0))
        #expect(ledger.judge(reading(nil, 67_000)) == .next(missing: 3))
        #expect(ledger.judge(reading(nil, 57_000)) == .duplicate)
        #expect(ledger.judge(reading(nil, 67_000)) == .duplicate)
    }
}

@Suite struct GloveLinkMachineTests {
    private let start = Timestamp<HostTime>(nanoseconds: 0)
    private let broken = GloveFault(.disconnected, "x", cure: "y")
    private let wrong = GloveFault(.unsupported, "x", cure: "y", isFinal: true)

    private func at(_ seconds: Double) -> Timestamp<HostTime> { start + .seconds(seconds) }

    private func streaming() -> GloveLinkMachine {
        var machine = GloveLinkMachine()
        _ = machine.handle(.open, at: at(0))
        _ = machine.handle(.connected, at: at(0.5))
        #expect(machine.handle(.data, at: at(1)) == [.ready])
        return machine
    }

    /// Connected is not yet good: only a whole data packet is (a heartbeat's text was believed once).
    @Test func fault34_onlyDataIsSuccess() {
        var machine = GloveLinkMachine()
        #expect(machine.handle(.open, at: at(0)) == [.connect(within: .seconds(10))])
        #expect(machine.handle(.connected, at: at(1)).isEmpty)
        #expect(machine.handle(.tick, at: at(3.9)).isEmpty)
        #expect(machine.handle(.tick, at: at(4)) == [.disconnect])
        #expect(machine.handle(.tick, at: at(4.4)).isEmpty)
        #expect(machine.handle(.tick, at: at(4.5)) == [.connect(within: .seconds(10))])
        #expect(machine.handle(.data, at: at(5)) == [.ready])
    }

    /// 36 minutes of silence were found a week later; here it is two seconds.
    @Test func fault33_silenceIsALostLink() {
        var machine = streaming()
        #expect(machine.handle(.tick, at: at(2.9)).isEmpty)
        let actions = machine.handle(.tick, at: at(3))
        #expect(actions == [.lost("nothing came for 2.0 s"), .disconnect, .connect(within: .seconds(10))])
        #expect(machine.handle(.connected, at: at(3.5)).isEmpty)
        #expect(machine.handle(.data, at: at(3.6)) == [.recovered])
        #expect(machine.reconnects == 1)
    }

    /// min(0.5 n, 5) s, without an end, and from the beginning again after a success.
    @Test func itIsTriedWithoutAnEndAndMoreSlowly() {
        var machine = streaming()
        _ = machine.handle(.ended("gone"), at: at(2))
        var now = 2.0
        for attempt in 1...20 {
            #expect(machine.handle(.failed(wrong), at: at(now)).isEmpty)
            let rest = min(0.5 * Double(attempt), 5)
            #expect(machine.handle(.tick, at: at(now + rest - 0.01)).isEmpty)
            now += rest
            #expect(machine.handle(.tick, at: at(now)) == [.connect(within: .seconds(10))])
        }
        #expect(machine.handle(.data, at: at(now)) == [.recovered])
        _ = machine.handle(.ended("gone"), at: at(now))
        #expect(machine.attempts == 1)
    }

    /// Ends that are told twice, and one that was asked for, count once and not at all.
    @Test func fault18_repeatedEndsDoNotSlowItDown() {
        var machine = streaming()
        #expect(!machine.handle(.ended("gone"), at: at(2)).isEmpty)
        _ = machine.handle(.failed(broken), at: at(2.1))
        for _ in 0..<5 { #expect(machine.handle(.ended("gone"), at: at(2.2)).isEmpty) }
        #expect(machine.attempts == 1)
        _ = machine.handle(.close, at: at(3))
        #expect(machine.handle(.ended("gone"), at: at(3)).isEmpty)
        #expect(machine.handle(.tick, at: at(9)).isEmpty)
        #expect(machine.state == .closed)
    }

    @Test func openingGivesUpInTime() {
        var machine = GloveLinkMachine()
        _ = machine.handle(.open, at: at(0))
        #expect(machine.handle(.failed(wrong), at: at(1)) == [.giveUp(wrong)])
        _ = machine.handle(.open, at: at(2))
        #expect(machine.handle(.failed(broken), at: at(12)).isEmpty)
        #expect(machine.handle(.tick, at: at(12.5)) == [.connect(within: .seconds(4.5))])
        #expect(machine.handle(.failed(broken), at: at(17)) == [.giveUp(broken)])
    }
}
