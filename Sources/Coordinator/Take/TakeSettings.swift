package import Protocol
package import Timing

/// What one take is to be, decided before it begins.
package struct TakeSettings: Codable, Sendable, Hashable {
    package var take: UniqueID
    /// The id that the take gets when it has to be armed a second time, with another leader.
    package var spareTake: UniqueID
    package var session: SessionID
    package var episode: EpisodeID
    package var task: String
    package var participant: String
    /// The hosts that are expected, sorted.
    package var hosts: [HostID]
    /// The host that plays the chirps.
    package var leader: HostID
    /// Whether somebody chose the leader; else another one may be taken that can play.
    package var isLeaderFixed: Bool
    /// `<host_id>.<stream_id>` of the stream that the others are aligned to; nil lets the merge choose.
    package var primary: String?
    package var chirp: ChirpPreset
    /// Whether the other hosts with a speaker play in turn, so that each hears each; nil in journals from before.
    package var playsTurns: Bool?
    /// Metres between a host's speaker and its microphone, where they are known.
    package var speakerDistances: [HostID: Double]?
    /// The start chirp of the preset `custom`.
    package var chirpSpec: ChirpSpec?
    /// Whether the microphones are asked before T0 if they hear the leader; nil is no.
    package var checksSound: Bool?
    package var policy: AbsencePolicy
    /// From T0 to the stop chirp; nil means until somebody stops it.
    package var duration: Interval?
    /// Whole seconds that are counted down before T0; 0 for none.
    package var countdown: Int
    package var reserveBytes: Int64
    /// False leaves the files on the agents.
    package var ingests: Bool
    package var timing: TakeTiming

    package init(
        take: UniqueID = .random(), spareTake: UniqueID = .random(), session: SessionID, episode: EpisodeID,
        task: String = "", participant: String = "", hosts: [HostID], leader: HostID, isLeaderFixed: Bool = true,
        primary: String? = nil, chirp: ChirpPreset = .ultrasonic, chirpSpec: ChirpSpec? = nil,
        playsTurns: Bool = false, speakerDistances: [HostID: Double]? = nil, policy: AbsencePolicy = .strict,
        duration: Interval? = nil, countdown: Int = 0, reserveBytes: Int64 = 0, ingests: Bool = true,
        timing: TakeTiming = TakeTiming()
    ) {
        self.take = take
        self.spareTake = spareTake
        self.session = session
        self.episode = episode
        self.task = task
        self.participant = participant
        self.hosts = hosts.sorted()
        self.leader = leader
        self.isLeaderFixed = isLeaderFixed
        self.primary = primary
        self.chirp = chirp
        self.playsTurns = playsTurns
        self.speakerDistances = speakerDistances
        self.chirpSpec = chirpSpec
        self.policy = policy
        self.duration = duration
        self.countdown = countdown
        self.reserveBytes = reserveBytes
        self.ingests = ingests
        self.timing = timing
    }

    /// What one host is told at `arm`.
    package func plan(for host: HostID) -> TakePlan {
        TakePlan(
            take: take, session: session, episode: episode, task: task, participant: participant,
            role: host == leader ? .leader : .follower, leader: leader, chirp: chirp, chirpSpec: chirpSpec,
            playsTurn: playsTurns == true && host != leader ? true : nil, countdown: countdown > 0 ? countdown : nil,
            policy: policy,
            reserveBytes: reserveBytes, startTimeout: timing.startTimeout, armTimeout: timing.armTimeout)
    }
}

extension TakeSettings {
    /// The start chirp; nil when the take has none.
    package var startSpec: ChirpSpec? { chirp == .custom ? chirpSpec : chirp.startSpec }
}

/// The lengths of time that a take is governed by.
package struct TakeTiming: Codable, Sendable, Hashable {
    /// From the commit to T0 at least; a countdown makes it longer.
    package var lead = Interval.milliseconds(1500)
    /// Acknowledgements of the commit must be here this long before T0, so that an abort still comes before it.
    package var commitMargin = Interval.milliseconds(300)
    /// How long a stream may take to open.
    package var startTimeout = Interval.seconds(20)
    /// An armed agent that hears no commit for this long disarms itself.
    package var armTimeout = Interval.seconds(60)
    /// How long the clocks may take to come within their limit, once all hosts are armed.
    package var clockTimeout = Interval.seconds(5)
    /// The largest bound of a host's clock that a take is begun with.
    package var clockLimit = Interval.milliseconds(5)
    /// How long after T0 the start chirp waits for all streams.
    package var streamingTimeout = Interval.seconds(3)
    /// From the last stream's first sample to the start chirp, and from the stop's wish to the stop chirp: ≥ 200 ms.
    package var chirpLead = Interval.milliseconds(400)
    /// From the end of the stop chirp to T1.
    package var tail = Interval.milliseconds(800)
    /// How long a take without a duration can last at most.
    package var limit = Interval.seconds(4 * 3600)
    /// What the agents add to the take's length before they stop by themselves.
    package var limitMargin = Interval.seconds(30)
    /// How long after T1 a reachable host may take to close its files.
    package var finishTimeout = Interval.seconds(60)
    /// How long a host that was lost is waited for at the end of a take.
    package var lostGrace = Interval.seconds(10)
    /// How long an abort is repeated.
    package var abortTimeout = Interval.seconds(10)
    /// Between two tries of a stop or an abort.
    package var repetition = Interval.milliseconds(500)

    package init() {}
}
