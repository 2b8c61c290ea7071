package import Timing

/// The figures of one stream, as the live table shows them.
package struct StreamStatus: Codable, Sendable, Hashable {
    package var id: StreamID
    package var kind: StreamKind
    package var state: StreamState
    /// Samples written in this take (audio: sample frames).
    package var samples: Int64
    /// Samples a second, over the last second or so.
    package var rate: Double
    package var nominalRate: Double?
    /// Samples that the device or our queues lost in this take.
    package var dropped: Int64
    /// Bytes written in this take.
    package var bytes: Int64
    package var first: Timestamp<HostTime>?
    package var last: Timestamp<HostTime>?
    package var error: String?

    package init(
        id: StreamID, kind: StreamKind, state: StreamState, samples: Int64 = 0, rate: Double = 0,
        nominalRate: Double? = nil, dropped: Int64 = 0, bytes: Int64 = 0, first: Timestamp<HostTime>? = nil,
        last: Timestamp<HostTime>? = nil, error: String? = nil
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.samples = samples
        self.rate = rate
        self.nominalRate = nominalRate
        self.dropped = dropped
        self.bytes = bytes
        self.first = first
        self.last = last
        self.error = error
    }

    private enum CodingKeys: String, CodingKey {
        case id, kind, state, samples, rate, dropped, bytes, error
        case nominalRate = "nominal_rate"
        case first = "first_ns"
        case last = "last_ns"
    }
}

/// `status`: the answer to a heartbeat.
package struct HostStatus: Codable, Sendable, Hashable {
    package var state: AgentState
    package var take: UniqueID?
    package var episode: EpisodeID?
    package var streams: [StreamStatus]
    package var freeBytes: Int64
    /// The agent's clock when the answer was made.
    package var now: Timestamp<HostTime>

    package init(
        state: AgentState, take: UniqueID?, episode: EpisodeID?, streams: [StreamStatus], freeBytes: Int64,
        now: Timestamp<HostTime>
    ) {
        self.state = state
        self.take = take
        self.episode = episode
        self.streams = streams
        self.freeBytes = freeBytes
        self.now = now
    }

    private enum CodingKeys: String, CodingKey {
        case state, take, episode, streams
        case freeBytes = "free_bytes"
        case now = "now_ns"
    }
}

/// How far an episode on an agent's disk has come.
package enum EpisodeProgress: String, Codable, Sendable, CaseIterable {
    /// The take runs.
    case recording
    /// It ended and its manifest is whole.
    case finished
    /// The agent died in it; its files were repaired as far as possible.
    case recovered
    /// All files are verified at the coordinator.
    case ingested
}

/// One episode on an agent's disk.
package struct EpisodeSummary: Codable, Sendable, Hashable {
    package var episode: EpisodeID
    package var session: SessionID
    package var take: UniqueID
    package var progress: EpisodeProgress
    package var bytes: Int64

    package init(episode: EpisodeID, session: SessionID, take: UniqueID, progress: EpisodeProgress, bytes: Int64) {
        self.episode = episode
        self.session = session
        self.take = take
        self.progress = progress
        self.bytes = bytes
    }
}

/// `snapshot`: what a coordinator that arrives late or again must know first.
package struct HostSnapshot: Codable, Sendable, Hashable {
    package var status: HostStatus
    /// The take that runs or is armed.
    package var plan: TakePlan?
    package var commit: Commit?
    package var chirps: [ChirpReport]
    package var episodes: [EpisodeSummary]

    package init(
        status: HostStatus, plan: TakePlan?, commit: Commit?, chirps: [ChirpReport], episodes: [EpisodeSummary]
    ) {
        self.status = status
        self.plan = plan
        self.commit = commit
        self.chirps = chirps
        self.episodes = episodes
    }
}

/// Something that happened on a host and that the coordinator should know at once.
package struct HostEvent: Codable, Sendable, Hashable {
    package enum Kind: String, Codable, Sendable, CaseIterable {
        case stateChanged = "state_changed"
        /// All streams have delivered their first sample of this take.
        case allStreaming = "all_streaming"
        case streamFailed = "stream_failed"
        case streamStalled = "stream_stalled"
        case streamRecovered = "stream_recovered"
        case samplesDropped = "samples_dropped"
        case diskLow = "disk_low"
        /// The files of the take are closed; `stop` holds the report.
        case takeFinished = "take_finished"
        case disarmed
        case clockStep = "clock_step"
        case suspended
        case warning
    }

    package var kind: Kind
    package var at: Timestamp<HostTime>
    package var take: UniqueID?
    package var stream: StreamID?
    package var message: String
    package var stop: StopReport?

    package init(
        kind: Kind, at: Timestamp<HostTime>, take: UniqueID? = nil, stream: StreamID? = nil, message: String = "",
        stop: StopReport? = nil
    ) {
        self.kind = kind
        self.at = at
        self.take = take
        self.stream = stream
        self.message = message
        self.stop = stop
    }

    private enum CodingKeys: String, CodingKey {
        case kind, take, stream, message, stop
        case at = "at_ns"
    }
}

/// What the agent made of a take.
package struct StopReport: Codable, Sendable, Hashable {
    package var take: UniqueID
    package var episode: EpisodeID
    package var streams: [StreamStatus]
    /// In words, as the stop said it, or "limit", "disk", "signal".
    package var reason: String
    /// Sentences for the operator.
    package var errors: [String]

    package init(take: UniqueID, episode: EpisodeID, streams: [StreamStatus], reason: String, errors: [String]) {
        self.take = take
        self.episode = episode
        self.streams = streams
        self.reason = reason
        self.errors = errors
    }
}
