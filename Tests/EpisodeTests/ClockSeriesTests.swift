internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct ClockSeriesTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func exchanges(_ path: inout SimulatedPath, seconds: Int64) -> [ClockExchange<RigTime, HostTime>] {
        (0..<seconds * 2).compactMap {
            path.exchange(at: Timestamp(nanoseconds: path.start) + .milliseconds($0 * 500))
        }
    }

    @Test(
        "the series of an episode is within its bounds of the truth, between the rows too, and verify computes the same"
    )
    func series() throws {
        var path = SimulatedPath(seed: 31)
        (path.forward, path.backward) = (50_000...300_000, 60_000...500_000)
        path.hostSteering.changes = [(11.3, 80e-6)]
        let all = exchanges(&path, seconds: 30)
        let cam = try #require(HostID(rawValue: "cam"))
        let event = HostManifest.Event(at: Timestamp(nanoseconds: 7), kind: "clock_rate", message: "it changed")
        let raw = "\(folder.path)/clock_exchanges.jsonl"
        let lines = try ClockExchangeLog.lines(all, events: [event], of: cam)
        // A torn last line, and all of it twice, as when a coordinator took over.
        try AtomicFile.write(lines + lines + Array("{\"host_id\":\"cam\",\"sent".utf8), to: raw)
        let read = try ClockExchangeLog.read(raw)
        #expect(read == ["cam": all])
        #expect(try ClockExchangeLog.events(raw)["cam"]?.first == event)

        let (start, stop) = (
            Timestamp<RigTime>(nanoseconds: path.start + 5_000_000_000),
            Timestamp<RigTime>(nanoseconds: path.start + 25_000_000_000)
        )
        let rows = ClockSeriesMaker.rows(read, start: start, stop: stop)
        #expect(rows.count == 25)
        #expect(rows.first?.mapping.reference == start - .seconds(2))
        let log = try ClockSyncLog(path: "\(folder.path)/clock_sync.jsonl")
        for row in rows { try log.append(row) }
        try log.sync()
        let series = try #require(try ClockSyncLog.read("\(folder.path)/clock_sync.jsonl")["cam"])
        var violations = 0
        for step in 0..<2000 {
            let rig = start + .milliseconds(Int64(step) * 10)
            let (time, bound) = try #require(series.rig(Timestamp(nanoseconds: path.truth(at: rig))))
            if (time - rig).magnitude > bound { violations += 1 }
        }
        #expect(violations == 0)

        let check = try #require(try ClockSeriesMaker.check(folder: folder.path))
        #expect(check.rows == 25 && check.exchanges == all.count)
        #expect(check.findings.isEmpty)
    }

    @Test("a series that isn't what the exchanges give is found, and so are rows and exchanges without each other")
    func wrong() throws {
        #expect(try ClockSeriesMaker.check(folder: folder.path) == nil)
        var path = SimulatedPath(seed: 32)
        let all = exchanges(&path, seconds: 10)
        let (a, b) = (try #require(HostID(rawValue: "a")), try #require(HostID(rawValue: "b")))
        try AtomicFile.write(
            ClockExchangeLog.lines(all, of: a) + ClockExchangeLog.lines(all, of: b),
            to: "\(folder.path)/clock_exchanges.jsonl")
        var rows = ClockSeriesMaker.rows(["a": all], start: nil, stop: nil)
        // Somebody made it prettier.
        rows[3].mapping.bound = rows[3].mapping.bound / 2
        rows[4].mapping.offset = rows[4].mapping.offset + .nanoseconds(3)
        rows.append(ClockSyncRow(host: "c", mapping: rows[0].mapping))
        let log = try ClockSyncLog(path: "\(folder.path)/clock_sync.jsonl")
        for row in rows { try log.append(row) }
        let check = try #require(try ClockSeriesMaker.check(folder: folder.path))
        #expect(check.findings.count == 3)
        #expect(check.findings.contains { $0.hasPrefix("host a: 2 of ") })
        #expect(check.findings.contains { $0.hasPrefix("host b: its exchanges are there") })
        #expect(check.findings.contains { $0.hasPrefix("host c: ") })
    }

    private func claim(_ maximum: Interval?, daemons: [String] = ["chronyd"]) -> ClockClaim {
        ClockClaim(
            isSynchronized: maximum != nil, daemons: maximum == nil ? [] : daemons,
            maximumError: maximum ?? .seconds(16))
    }

    /// Difference in s, what host and coordinator vouch for in ms, and the verdict: grand_tour_box 655 was 1 s between two
    /// PCs whose PTP was green.
    @Test(
        "a wall clock that is farther off than both daemons vouch for is red, and 37 s have a name",
        arguments: [
            (1.0, 5, 5, .red, "1 s ahead of"), (-0.05, 10, 10, .red, "50 ms behind"), (0.015, 10, 10, nil, ""),
            (-37.0, 1, 1, .red, "TAI minus UTC"), (37.2, nil, nil, .amber, "TAI minus UTC"),
            (18, nil, 5, .amber, "GPS time minus UTC"), (7200, nil, nil, .amber, "time zone"),
            (5400, nil, nil, .amber, "time zone"), (12.0, nil, nil, nil, ""), (0.0, nil, nil, nil, ""),
        ] as [(Double, Int64?, Int64?, VerdictColor?, String)])
    func wallClock(seconds: Double, host: Int64?, rig: Int64?, color: VerdictColor?, words: String) {
        let reason = WallClockRule.judge(
            "cam",
            WallClockRule.Comparison(
                difference: .seconds(seconds), bound: .milliseconds(1), host: claim(host.map { .milliseconds($0) }),
                rig: claim(rig.map { .milliseconds($0) })))
        #expect(reason?.color == color)
        if color != nil { #expect(reason?.text.contains(words) == true, "\(reason?.text ?? "")") }
    }

    @Test("PTP's daemons vouch without the kernel's word; nobody vouches by himself")
    func vouching() {
        let ptp = ClockClaim(isSynchronized: false, daemons: ["phc2sys", "ptp4l"], maximumError: .seconds(16))
        #expect(ptp.vouched == .milliseconds(1))
        #expect(ClockClaim(isSynchronized: false, daemons: ["chronyd"], maximumError: .seconds(16)).vouched == nil)
        let chrony = ClockClaim(
            isSynchronized: true, daemons: ["chronyd"], offset: .milliseconds(-3), maximumError: .milliseconds(12))
        #expect(chrony.vouched == .milliseconds(15))
        #expect(chrony.words == "chronyd, within 15 ms")
        // What this machine says is readable, whatever it is.
        #expect(ClockClaim.now.map { $0.maximumError >= .zero } ?? true)
    }
}
