package import Episode
package import Protocol
package import Timing

/// The clocks of all hosts against the rig's: exchanges go in, mappings with their bounds come out; pure.
package struct ClockMonitor: Sendable {
    /// What is known of one host's clock.
    private struct Clock: Sendable {
        var estimator = ClockEstimator()
        var rows: [ClockSyncRow] = []
        var lastRow: Timestamp<RigTime>?
    }

    /// Rows that are kept in memory for each host; each second of a take also goes to the disk.
    private static let maximumRows = 600

    private var clocks: [HostID: Clock] = [:]

    package init() {}

    package mutating func add(_ exchange: ClockExchange<RigTime, HostTime>, of host: HostID) {
        clocks[host, default: Clock()].estimator.add(exchange)
    }

    /// Forgets a host's clock: its machine was started anew.
    package mutating func forget(_ host: HostID) { clocks[host] = nil }

    /// The map from rig time to a host's time that is sharpest at an instant; nil while nothing is known.
    package func mapping(of host: HostID, at instant: Timestamp<RigTime>) -> ClockMapping<RigTime, HostTime>? {
        clocks[host]?.estimator.mapping(at: instant)
    }

    /// How far a host's clock may be off at an instant; nil while nothing is known.
    package func bound(of host: HostID, at instant: Timestamp<RigTime>) -> Interval? {
        mapping(of: host, at: instant)?.bound
    }

    package func state(of host: HostID, at instant: Timestamp<RigTime>) -> ClockState {
        clocks[host]?.estimator.state(at: instant) ?? .unsynchronized
    }

    /// How often a host's clock did what is not in a clock's nature.
    package func restarts(of host: HostID) -> Int { clocks[host]?.estimator.restarts ?? 0 }

    /// A row for `clock_sync.jsonl`, at most one a second for each host; nil when it isn't time, or nothing is known.
    package mutating func row(of host: HostID, now: Timestamp<RigTime>) -> ClockSyncRow? {
        guard let clock = clocks[host], clock.lastRow.map({ now - $0 >= .milliseconds(950) }) ?? true,
            let mapping = clock.estimator.mapping(at: now)
        else { return nil }
        let row = ClockSyncRow(
            host: host.rawValue, mapping: mapping, delay: clock.estimator.leastDelay,
            state: clock.estimator.state(at: now).rawValue)
        clocks[host]?.lastRow = now
        clocks[host]?.rows.append(row)
        if clock.rows.count >= Self.maximumRows { clocks[host]?.rows.removeFirst() }
        return row
    }

    /// The newest rows of a host, oldest first.
    package func rows(of host: HostID) -> [ClockSyncRow] { clocks[host]?.rows ?? [] }
}
