package import Protocol
package import Timing

/// The clocks of all hosts against the rig's: exchanges go in, mappings with their bounds come out; pure.
package struct ClockMonitor: Sendable {
    /// What is known of one host's clock.
    private struct Clock: Sendable {
        var estimator = ClockEstimator()
        /// Exchanges that aren't on the disk yet, oldest first; between takes those of the last 64 s.
        var unwritten: [ClockExchange<RigTime, HostTime>] = []
    }

    /// At most so many for each host: 64 s at the fastest pace.
    private static let maximumUnwritten = 2600
    private static let window = Interval.milliseconds(64_000)

    private var clocks: [HostID: Clock] = [:]

    package init() {}

    /// Takes the exchanges of a burst in; true when the clock did something unforeseen, so that new ones are wanted soon.
    package mutating func add(_ burst: [ClockExchange<RigTime, HostTime>], of host: HostID) -> Bool {
        var clock = clocks[host] ?? Clock()
        let before = (clock.estimator.restarts, clock.estimator.hostRateChanges)
        for exchange in burst where clock.estimator.add(exchange) != .impossible { clock.unwritten.append(exchange) }
        if let newest = burst.last,
            let first = clock.unwritten.firstIndex(where: { newest.sent - $0.sent < Self.window })
        {
            clock.unwritten.removeFirst(max(first, clock.unwritten.count - Self.maximumUnwritten))
        }
        clocks[host] = clock
        return before != (clock.estimator.restarts, clock.estimator.hostRateChanges)
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

    /// The exchanges with a host that nobody has taken yet, oldest first; of a long time at most those of the last 64 s.
    package mutating func takeUnwritten(of host: HostID) -> [ClockExchange<RigTime, HostTime>] {
        defer { clocks[host]?.unwritten = [] }
        return clocks[host]?.unwritten ?? []
    }

    /// Makes all exchanges that are known unwritten again: another take wants those from before its start.
    package mutating func rewind() {
        for host in clocks.keys {
            guard var clock = clocks[host] else { continue }
            let known = Set(clock.unwritten)
            clock.unwritten = clock.estimator.exchanges.filter { !known.contains($0) } + clock.unwritten
            clocks[host] = clock
        }
    }
}
