package import Timing

/// What to do about hosts or streams that are absent at `arm`.
package enum AbsencePolicy: String, Codable, Sendable, CaseIterable {
    /// Any absence refuses the take.
    case strict
    /// The take goes on, and its verdict is amber.
    case warn
    /// The take goes on.
    case allow
}

/// SyncField's word for a host's part in a take.
package enum HostRole: String, Codable, Sendable, CaseIterable {
    /// The host that plays the chirps.
    case leader
    case follower
}

/// `arm`: open the devices, start the pre-roll, say what is there.
package struct TakePlan: Codable, Sendable, Hashable {
    package var take: UniqueID
    package var session: SessionID
    package var episode: EpisodeID
    package var task: String
    package var participant: String
    package var role: HostRole
    /// The host that plays the chirps.
    package var leader: HostID
    package var chirp: ChirpPreset
    /// Whether this host plays a turn of its own; nil is no.
    package var playsTurn: Bool?
    /// The start chirp of the preset `custom`.
    package var chirpSpec: ChirpSpec?
    /// Whole seconds that the leader counts down before T0 with a tick each; nil for none.
    package var countdown: Int?
    package var policy: AbsencePolicy
    /// Free bytes below which the take isn't begun, and at which it is ended.
    package var reserveBytes: Int64
    /// How long a stream may take to open.
    package var startTimeout: Interval
    /// An armed agent that hears no commit for this long disarms itself.
    package var armTimeout: Interval

    package init(
        take: UniqueID, session: SessionID, episode: EpisodeID, task: String, participant: String, role: HostRole,
        leader: HostID, chirp: ChirpPreset, chirpSpec: ChirpSpec? = nil, playsTurn: Bool? = nil, countdown: Int? = nil,
        policy: AbsencePolicy, reserveBytes: Int64, startTimeout: Interval, armTimeout: Interval
    ) {
        self.take = take
        self.session = session
        self.episode = episode
        self.task = task
        self.participant = participant
        self.role = role
        self.leader = leader
        self.chirp = chirp
        self.playsTurn = playsTurn
        self.chirpSpec = chirpSpec
        self.countdown = countdown
        self.policy = policy
        self.reserveBytes = reserveBytes
        self.startTimeout = startTimeout
        self.armTimeout = armTimeout
    }

    private enum CodingKeys: String, CodingKey {
        case take, session, episode, task, participant, role, leader, chirp, countdown, policy
        case chirpSpec = "chirp_spec"
        case playsTurn = "plays_turn"
        case reserveBytes = "reserve_bytes"
        case startTimeout = "start_timeout_ns"
        case armTimeout = "arm_timeout_ns"
    }
}

extension TakePlan {
    /// The start chirp of the take; nil when it has none.
    ///
    /// The stop chirp is its reverse.
    package var startSpec: ChirpSpec? { chirp == .custom ? chirpSpec : chirp.startSpec }
}

/// What became of one stream in a step of the take.
package struct StreamOutcome: Codable, Sendable, Hashable {
    package var stream: StreamDescription
    /// Nil when all is well; else one sentence with cause and cure.
    package var error: String?
    /// A device that one host at most can have, wherever it is configured: its kind and address; nil for all others.
    package var hardware: String?

    package init(stream: StreamDescription, error: String? = nil, hardware: String? = nil) {
        self.stream = stream
        self.error = error
        self.hardware = hardware
    }
}

/// `armed`: the answer to `arm`.
package struct ArmReport: Codable, Sendable, Hashable {
    package var take: UniqueID
    package var streams: [StreamOutcome]
    package var freeBytes: Int64
    /// What the streams are expected to write, bytes a second.
    package var bytesPerSecond: Int64
    package var canPlayChirps: Bool

    package init(
        take: UniqueID, streams: [StreamOutcome], freeBytes: Int64, bytesPerSecond: Int64, canPlayChirps: Bool
    ) {
        self.take = take
        self.streams = streams
        self.freeBytes = freeBytes
        self.bytesPerSecond = bytesPerSecond
        self.canPlayChirps = canPlayChirps
    }

    private enum CodingKeys: String, CodingKey {
        case take, streams
        case freeBytes = "free_bytes"
        case bytesPerSecond = "bytes_per_second"
        case canPlayChirps = "can_play_chirps"
    }
}

/// `commit`: begin at an instant of the agent's own clock.
package struct Commit: Codable, Sendable, Hashable {
    package var take: UniqueID
    /// T0.
    package var start: Timestamp<HostTime>
    /// The limit of the error of `start` against rig time.
    package var bound: Interval
    /// The agent stops by itself then, when nobody has told it otherwise.
    package var limit: Timestamp<HostTime>

    package init(take: UniqueID, start: Timestamp<HostTime>, bound: Interval, limit: Timestamp<HostTime>) {
        self.take = take
        self.start = start
        self.bound = bound
        self.limit = limit
    }

    private enum CodingKeys: String, CodingKey {
        case take
        case start = "start_ns"
        case bound = "bound_ns"
        case limit = "limit_ns"
    }
}

/// `stop`: end at an instant of the agent's own clock.
package struct StopCommand: Codable, Sendable, Hashable {
    package var take: UniqueID
    /// T1.
    package var stop: Timestamp<HostTime>
    /// In words: "operator", "duration", "disk".
    package var reason: String

    package init(take: UniqueID, stop: Timestamp<HostTime>, reason: String) {
        self.take = take
        self.stop = stop
        self.reason = reason
    }

    private enum CodingKeys: String, CodingKey {
        case take, reason
        case stop = "stop_ns"
    }
}

/// `abort` and the acknowledgements that name only a take.
package struct TakeReference: Codable, Sendable, Hashable {
    package var take: UniqueID
    package var reason: String

    package init(take: UniqueID, reason: String = "") {
        self.take = take
        self.reason = reason
    }
}

/// Which chirp of a take.
package enum ChirpMoment: String, Codable, Sendable, CaseIterable {
    case start, stop
    /// A host that isn't the leader plays both sweeps, so that each host hears each other one.
    case turn
}

/// `chirp`: play one at an instant of the host's clock.
package struct ChirpCommand: Codable, Sendable, Hashable {
    package var take: UniqueID
    package var moment: ChirpMoment
    package var at: Timestamp<HostTime>

    package init(take: UniqueID, moment: ChirpMoment, at: Timestamp<HostTime>) {
        self.take = take
        self.moment = moment
        self.at = at
    }

    private enum CodingKeys: String, CodingKey {
        case take, moment
        case at = "at_ns"
    }
}

/// `chirped`: when the first sample of the chirp left, and how that is known.
package struct ChirpReport: Codable, Sendable, Hashable {
    package var take: UniqueID
    package var moment: ChirpMoment
    package var emitted: Timestamp<HostTime>?
    package var source: ChirpSource
    package var error: String?

    package init(
        take: UniqueID, moment: ChirpMoment, emitted: Timestamp<HostTime>?, source: ChirpSource, error: String? = nil
    ) {
        self.take = take
        self.moment = moment
        self.emitted = emitted
        self.source = source
        self.error = error
    }

    private enum CodingKeys: String, CodingKey {
        case take, moment, source, error
        case emitted = "emitted_ns"
    }
}
