package import Protocol
package import Timing

/// What a person is shown of the rig at one instant.
package struct RigView: Sendable, Hashable {
    package enum Presence: Sendable, Hashable {
        /// Expected, and never seen.
        case absent
        case connecting
        case alive
        case lost(String)
    }

    package struct Host: Sendable, Hashable {
        package var host: HostID
        package var uuid: UniqueID?
        package var address: String?
        package var presence: Presence
        package var isTrusted: Bool
        package var isExpected: Bool
        package var problem: HostProblem?
        package var status: HostStatus?
        package var version: String?
        /// How far its clock may be off; nil while it isn't known.
        package var clockBound: Interval?
        package var ingest: IngestProgress?
        /// In the take that runs.
        package var phase: TakeHostPhase?

        package init(host: HostID, presence: Presence = .absent) {
            self.host = host
            self.presence = presence
            isTrusted = false
            isExpected = false
        }
    }

    package struct Take: Sendable, Hashable {
        package var episode: EpisodeID
        package var session: SessionID
        package var task: String
        package var leader: HostID
        package var phase: TakePhase
        /// Since T0; negative before it, nil while it isn't set.
        package var elapsed: Interval?
        package var duration: Interval?

        package init(
            episode: EpisodeID, session: SessionID, task: String, leader: HostID, phase: TakePhase,
            elapsed: Interval?, duration: Interval?
        ) {
            self.episode = episode
            self.session = session
            self.task = task
            self.leader = leader
            self.phase = phase
            self.elapsed = elapsed
            self.duration = duration
        }
    }

    /// Sorted by name.
    package var hosts: [Host]
    package var take: Take?
    /// Why discovery doesn't work, with the cure.
    package var discoveryProblem: String?

    package init(hosts: [Host], take: Take? = nil, discoveryProblem: String? = nil) {
        self.hosts = hosts
        self.take = take
        self.discoveryProblem = discoveryProblem
    }
}
