internal import Platform
internal import Protocol
package import Timing

/// Computes the clocks of a take from what was measured, and checks that a series is what the measurements say.
package enum ClockSeriesMaker {
    /// How far before the start and behind the stop the series reaches.
    private static let margin = Interval.milliseconds(2000)

    /// Rows for `clock_sync.jsonl`, a second apart, from both sides of each instant.
    ///
    /// Without a start and a stop it reaches from the first to the last exchange of each host.
    package static func rows(
        _ exchanges: [String: [ClockExchange<RigTime, HostTime>]], start: Timestamp<RigTime>?,
        stop: Timestamp<RigTime>?
    ) -> [ClockSyncRow] {
        exchanges.sorted { $0.key < $1.key }.flatMap { host, all -> [ClockSyncRow] in
            guard let first = all.map(\.sent).min(), let last = all.map(\.received).max() else { return [] }
            let smoother = ClockSmoother(all)
            let begin = start.map { $0 - margin } ?? first
            let end = max(stop.map { $0 + margin } ?? last, begin)
            return smoother.series(from: begin, to: end).map {
                row(host, $0, first: first, last: last)
            }
        }
    }

    /// What is wrong with the series in a folder, a sentence each; empty when it is what the exchanges give.
    ///
    /// With the numbers of rows and of exchanges; nil when the folder has no exchanges.
    package static func check(folder: String) throws -> (rows: Int, exchanges: Int, findings: [String])? {
        let raw = "\(folder)/\(ClockExchangeLog.name)"
        guard Files.size(raw) != nil else { return nil }
        let exchanges = try ClockExchangeLog.read(raw)
        let series = try ClockSyncLog.rows("\(folder)/clock_sync.jsonl")
        var findings: [String] = []
        for (host, rows) in series.sorted(by: { $0.key < $1.key }) {
            guard let all = exchanges[host] else {
                findings.append(
                    "host \(host): clock_sync.jsonl has rows of it and \(ClockExchangeLog.name) no exchange")
                continue
            }
            let computed = ClockSmoother(all).series(at: rows.map(\.mapping.reference))
            let wrong = zip(rows, computed).filter { row, mapping in
                guard let mapping else { return true }
                return !agrees(row.mapping, mapping)
            }
            guard let first = wrong.first else { continue }
            findings.append(
                "host \(host): \(wrong.count) of \(rows.count) rows of clock_sync.jsonl aren't what its "
                    + "\(all.count) exchanges give, the first at rig time \(first.0.mapping.reference)")
        }
        for host in exchanges.keys.sorted() where series[host] == nil {
            findings.append("host \(host): its exchanges are there and clock_sync.jsonl has no row of it")
        }
        return (series.values.reduce(0) { $0 + $1.count }, exchanges.values.reduce(0) { $0 + $1.count }, findings)
    }

    /// To the rounding of the arithmetic on another machine.
    private static func agrees(_ a: ClockMapping<RigTime, HostTime>, _ b: ClockMapping<RigTime, HostTime>) -> Bool {
        (a.offset - b.offset).magnitude <= .nanoseconds(2) && (a.bound - b.bound).magnitude <= .nanoseconds(2)
            && (a.skew - b.skew).magnitude < 1e-11 && (a.skewBound - b.skewBound).magnitude < 1e-11
    }

    private static func row(
        _ host: String, _ mapping: ClockMapping<RigTime, HostTime>, first: Timestamp<RigTime>,
        last: Timestamp<RigTime>
    ) -> ClockSyncRow {
        let isInside = first <= mapping.reference && mapping.reference <= last
        return ClockSyncRow(
            host: host, mapping: mapping, state: isInside ? ClockState.locked.rawValue : ClockState.holdover.rawValue)
    }
}
