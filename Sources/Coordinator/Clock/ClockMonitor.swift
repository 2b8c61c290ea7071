package import Episode
package import Protocol
package import Timing

/// The clocks of all hosts against the rig's: exchanges go in, mappings with their bounds come out; pure.
package struct ClockMonitor: Sendable {
    /// What is known of one host's clock.
    private struct Clock: Sendable {
        var estimator = ClockEstimator()
        var path = PathWatch()
        /// Exchanges that aren't on the disk yet, oldest first; between takes those of the last 64 s.
        var unwritten: [ClockExchange<RigTime, HostTime>] = []
        var unwrittenEvents: [HostManifest.Event] = []
    }

    /// At most so many for each host: 64 s at the fastest pace.
    private static let maximumUnwritten = 2600
    private static let maximumEvents = 100
    private static let window = Interval.milliseconds(64_000)

    private var clocks: [HostID: Clock] = [:]

    package init() {}

    /// Takes the exchanges of a burst in; gives back what was unforeseen, so that new ones are wanted soon.
    package mutating func add(
        _ burst: [ClockExchange<RigTime, HostTime>], of host: HostID
    ) -> [HostManifest.Event] {
        var clock = clocks[host] ?? Clock()
        var events: [HostManifest.Event] = []
        for exchange in burst {
            let foreseen = clock.estimator.mapping(at: exchange.received)
            let changes = clock.estimator.hostRateChanges
            let outcome = clock.estimator.add(exchange)
            guard outcome != .impossible else { continue }
            clock.unwritten.append(exchange)
            if outcome == .restarted, let foreseen { events.append(Self.jump(exchange, foreseen)) }
            if outcome == .used, clock.estimator.hostRateChanges != changes {
                events.append(
                    HostManifest.Event(
                        at: exchange.answered, kind: "clock_rate",
                        message: "a daemon changed the rate of its clock; the mapping follows"))
            }
        }
        if let least = burst.map(\.delay).min(), let newest = burst.last, let change = clock.path.look(least) {
            events.append(
                HostManifest.Event(
                    at: newest.answered, kind: "clock_path",
                    message: "the network path to it changed: a datagram and its answer took "
                        + "\(change.before.nanoseconds / 1000) µs, and take \(change.after.nanoseconds / 1000) µs"))
        }
        if let newest = burst.last,
            let first = clock.unwritten.firstIndex(where: { newest.sent - $0.sent < Self.window })
        {
            clock.unwritten.removeFirst(max(first, clock.unwritten.count - Self.maximumUnwritten))
        }
        clock.unwrittenEvents = (clock.unwrittenEvents + events).suffix(Self.maximumEvents)
        clocks[host] = clock
        return events
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

    /// The exchanges and the events of a host that nobody has taken yet, oldest first; of a long time those of the last
    /// 64 s.
    package mutating func takeUnwritten(
        of host: HostID
    ) -> (exchanges: [ClockExchange<RigTime, HostTime>], events: [HostManifest.Event]) {
        guard var clock = clocks[host] else { return ([], []) }
        defer { clocks[host] = clock }
        let taken = (clock.unwritten, clock.unwrittenEvents)
        (clock.unwritten, clock.unwrittenEvents) = ([], [])
        return taken
    }

    /// Makes all exchanges that are known unwritten again: another take wants those from before its start.
    ///
    /// The events from
    /// before it belong to no take.
    package mutating func rewind() {
        for host in clocks.keys {
            guard var clock = clocks[host] else { continue }
            let known = Set(clock.unwritten)
            clock.unwritten = clock.estimator.exchanges.filter { !known.contains($0) } + clock.unwritten
            clock.unwrittenEvents = []
            clocks[host] = clock
        }
    }

    private static func jump(
        _ exchange: ClockExchange<RigTime, HostTime>, _ foreseen: ClockMapping<RigTime, HostTime>
    ) -> HostManifest.Event {
        let by = exchange.answered - foreseen.map(exchange.received)
        let text = "\((by.magnitude.seconds * 1000).rounded() / 1000) s"
        let why =
            by < .zero
            ? "the machine was suspended, or started anew" : "the machine was started anew, or this one slept"
        return HostManifest.Event(
            at: exchange.answered, kind: "clock_jump",
            message:
                "its clock jumped \(by < .zero ? "back" : "forward") by \(text): \(why); what lies between the last "
                + "exchange before and the first after it can't be placed on rig time")
    }
}
