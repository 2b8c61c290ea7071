internal import Platform
package import Protocol
package import Timing

/// `manifest.json` of one host: what streams its part of the take has.
///
/// The keys are SyncField Swift's, `streams` is an array; ours stand beside them. It is written at the start and again
/// at the end, so a crash leaves one too.
package struct HostManifest: Codable, Sendable, Hashable {
    package enum Status: String, Codable, Sendable, CaseIterable {
        /// The take runs, or the program died in it.
        case recording
        /// All files are closed.
        case finished
        /// The program died in the take; the manifest was made anew from the files.
        case recovered
    }

    /// Something that happened in the take, for the verdict: a clock step, a suspend, a full disk.
    package struct Event: Codable, Sendable, Hashable {
        package var at: Timestamp<HostTime>
        package var kind: String
        package var message: String
        package var stream: StreamID?

        package init(at: Timestamp<HostTime>, kind: String, message: String, stream: StreamID? = nil) {
            self.at = at
            self.kind = kind
            self.message = message
            self.stream = stream
        }

        private enum CodingKeys: String, CodingKey {
            case kind, message
            case at = "at_ns"
            case stream = "stream_id"
        }
    }

    package var host: HostID
    package var role: HostRole
    package var sdkVersion: String
    package var streams: [ManifestStream]

    package var session: SessionID?
    package var leader: HostID?
    package var task: String?

    package var status: Status
    package var hostUUID: UniqueID?
    package var episode: EpisodeID?
    package var take: UniqueID?
    package var participant: String?
    /// T0 and T1 as this host was told them.
    package var start: Timestamp<HostTime>?
    package var stop: Timestamp<HostTime>?
    /// The limit of the error of `start` against rig time.
    package var startBound: Interval?
    /// When this host really acted on T0; minus `start` it is the latency of its scheduling.
    package var gateOpened: Timestamp<HostTime>?
    /// Whether the thread that did so had real-time priority.
    package var hasRealtimePriority: Bool?
    /// What the host's own daemons said of its clock at the start.
    package var clockClaim: ClockClaim?
    package var stopReason: String?
    package var events: [Event]
    /// What this host played, and when its first sample left.
    package var chirps: [ChirpReport]?
    /// Sentences for the operator.
    package var errors: [String]

    package init(
        host: HostID, role: HostRole, streams: [ManifestStream], status: Status,
        sdkVersion: String = ProductVersion.current
    ) {
        self.host = host
        self.role = role
        self.streams = streams
        self.status = status
        self.sdkVersion = sdkVersion
        events = []
        errors = []
    }

    /// From what the coordinator planned.
    package init(host: HostID, plan: TakePlan, streams: [ManifestStream], status: Status) {
        self.init(host: host, role: plan.role, streams: streams, status: status)
        session = plan.session
        leader = plan.leader
        task = plan.task
        participant = plan.participant
        episode = plan.episode
        take = plan.take
    }

    /// Writes the file whole or not at all.
    package func write(to path: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(self), to: path)
    }

    /// Reads a manifest that this program wrote; other dialects are `EpisodeReader`'s.
    package static func read(_ path: String) throws -> HostManifest {
        do {
            return try JSONText.decode(HostManifest.self, from: try Files.read(path, limit: 16 << 20))
        } catch let error as JSONText.Malformed {
            throw EpisodeError(path, "no manifest: \(error)")
        }
    }

    private enum CodingKeys: String, CodingKey {
        case host = "host_id"
        case role
        case sdkVersion = "sdk_version"
        case streams
        case session = "session_id"
        case leader = "leader_host_id"
        case task
        case status
        case hostUUID = "host_uuid"
        case episode, take, participant
        case start = "start_ns"
        case stop = "stop_ns"
        case startBound = "start_bound_ns"
        case gateOpened = "gate_opened_ns"
        case hasRealtimePriority = "realtime_priority"
        case clockClaim = "clock_discipline"
        case stopReason = "stop_reason"
        case events, chirps, errors
    }
}
