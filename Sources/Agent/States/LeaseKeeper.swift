package import Protocol
package import Timing

/// Who may command this agent: one coordinator at a time, for as long as its heartbeats come.
///
/// The end of a lease harms no take: an armed one times out by itself, and a running one goes on to its limit.
package struct LeaseKeeper: Sendable, Hashable {
    /// A lease that isn't renewed for this long is over.
    package static let standardLength = Interval.milliseconds(10_000)
    package static let longest = Interval.milliseconds(60_000)

    package struct Holder: Sendable, Hashable {
        /// The key that its messages come with.
        package var identity: String
        package var coordinator: UniqueID
        /// For a person.
        package var name: String
        package var length: Interval
        package var until: Timestamp<HostTime>
    }

    private let host: HostID
    private var latest: Holder?

    package init(host: HostID) { self.host = host }

    package func holder(at now: Timestamp<HostTime>) -> Holder? { latest.flatMap { now < $0.until ? $0 : nil } }

    /// When the lease is over if nothing more is heard; nil when nobody holds it.
    package var deadline: Timestamp<HostTime>? { latest?.until }

    /// Grants, renews, gives back (with a zero length), or refuses with the holder's name.
    package mutating func request(
        _ request: LeaseRequest, identity: String, at now: Timestamp<HostTime>
    ) throws(Refusal) -> Lease {
        if let holder = holder(at: now), holder.identity != identity || holder.coordinator != request.coordinator {
            throw refusal(holder, at: now)
        }
        guard request.length > .zero else {
            latest = nil
            return Lease(coordinator: request.coordinator, until: now)
        }
        let length = min(request.length, Self.longest)
        let holder = Holder(
            identity: identity, coordinator: request.coordinator, name: request.name, length: length,
            until: now + length)
        latest = holder
        return Lease(coordinator: holder.coordinator, until: holder.until)
    }

    /// A heartbeat has come; only the holder's counts.
    package mutating func heard(from identity: String, at now: Timestamp<HostTime>) {
        guard var holder = holder(at: now), holder.identity == identity else { return }
        holder.until = max(holder.until, now + holder.length)
        latest = holder
    }

    /// Whether the lease has run out since the last call of this; then nobody holds it.
    package mutating func expire(at now: Timestamp<HostTime>) -> Holder? {
        guard let holder = latest, holder.until <= now else { return nil }
        latest = nil
        return holder
    }

    /// Refuses a command of anybody but the holder.
    package func check(_ identity: String, doing: Message.Kind, at now: Timestamp<HostTime>) throws(Refusal) {
        guard let holder = holder(at: now) else {
            throw Refusal(
                .notLeased, "host \(host): '\(doing.rawValue)' needs the lease, and nobody holds it; ask for it first")
        }
        guard holder.identity == identity else { throw refusal(holder, at: now) }
    }

    private func refusal(_ holder: Holder, at now: Timestamp<HostTime>) -> Refusal {
        let rest = max(1, Int((holder.until - now).seconds.rounded(.up)))
        return Refusal(
            .leasedToOther,
            "host \(host) is commanded by coordinator '\(holder.name)' (\(holder.coordinator.rawValue.prefix(8))); end its "
                + "command there, or wait: its lease ends \(rest) s after its last heartbeat")
    }
}
