internal import Episode
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Coordinator

@Suite struct ClockMonitorTests {
    private func host() throws -> HostID { try #require(HostID(rawValue: "cam")) }

    /// Bursts of eight, a second apart.
    private func run(_ path: inout SimulatedPath, seconds: Range<Int64>, _ monitor: inout ClockMonitor) throws
        -> [String]
    {
        var kinds: [String] = []
        for second in seconds {
            var now = Timestamp<RigTime>(nanoseconds: path.start) + .milliseconds(second * 1000)
            var burst: [ClockExchange<RigTime, HostTime>] = []
            for _ in 0..<8 { if let e = path.exchange(at: now) { now = e.received; burst.append(e) } }
            kinds += monitor.add(burst, of: try host()).map(\.kind)
        }
        return kinds
    }

    private func path(seed: UInt64) -> SimulatedPath {
        var path = SimulatedPath(seed: seed)
        (path.forward, path.backward, path.loss, path.skew) = (80_000...200_000, 80_000...200_000, 0, 30e-6)
        return path
    }

    @Test("a quiet clock gives no event; a suspend, a daemon's new rate and another path give one each")
    func events() throws {
        var monitor = ClockMonitor()
        var path = path(seed: 1)
        #expect(try run(&path, seconds: 0..<30, &monitor).isEmpty)
        path.jump = (at: 30.5, by: -5_000_000_000)
        #expect(try run(&path, seconds: 30..<40, &monitor) == ["clock_jump"])
        path.hostSteering.changes = [(40.5, 200e-6)]
        #expect(try run(&path, seconds: 40..<50, &monitor) == ["clock_rate"])
        (path.forward, path.backward) = (900_000...1_000_000, 80_000...200_000)
        #expect(try run(&path, seconds: 50..<70, &monitor) == ["clock_path"])
        let taken = monitor.takeUnwritten(of: try host())
        #expect(taken.events.count == 3)
        #expect(taken.events.first?.message.contains("back by 5.0 s") == true)
        #expect(monitor.takeUnwritten(of: try host()).exchanges.isEmpty)
        let truth = path.truth(at: Timestamp(nanoseconds: path.start + 70_000_000_000))
        let mapping = try #require(
            monitor.mapping(of: try host(), at: Timestamp(nanoseconds: path.start + 70_000_000_000)))
        #expect(abs(mapping.map(mapping.reference).nanoseconds - truth) <= mapping.bound.nanoseconds)
    }

    @Test("a take gets the exchanges from before its start too, each once, and none of the events from before")
    func rewind() throws {
        var monitor = ClockMonitor()
        var path = path(seed: 2)
        _ = try run(&path, seconds: 0..<200, &monitor)
        let kept = monitor.takeUnwritten(of: try host()).exchanges
        // Those of the last 64 s, and not the hours before them.
        #expect((400...600).contains(kept.count))
        path.jump = (at: 200.5, by: -5_000_000_000)
        _ = try run(&path, seconds: 200..<210, &monitor)
        monitor.rewind()
        let again = monitor.takeUnwritten(of: try host())
        #expect(again.events.isEmpty)
        #expect(again.exchanges.count >= 18 && Set(again.exchanges).count == again.exchanges.count)
        monitor.forget(try host())
        #expect(monitor.bound(of: try host(), at: Timestamp(nanoseconds: 0)) == nil)
        #expect(monitor.state(of: try host(), at: Timestamp(nanoseconds: 0)) == .unsynchronized)
    }

    @Test("a path that is busy for a while is the same path")
    func busyPath() {
        var watch = PathWatch()
        var changes = 0
        for tick in 0..<200 {
            // Two in five bursts find the queue full.
            let delay = Interval.microseconds(tick % 5 < 2 ? 3000 : 200 + Int64(tick % 7))
            if watch.look(delay) != nil { changes += 1 }
        }
        #expect(changes == 0)
        // 3 × 200 + 200 µs are exceeded for six bursts.
        for _ in 0..<12 { if watch.look(.microseconds(850)) != nil { changes += 1 } }
        #expect(changes == 1)
        for _ in 0..<12 { if watch.look(.microseconds(150)) != nil { changes += 1 } }
        #expect(changes == 2)
    }
}
