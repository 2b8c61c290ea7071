internal import Platform
package import Protocol
package import Timing

/// `manifest.json` of a merged episode: all streams of all hosts, with what was lost and how well time is known.
///
/// Its top keys and those of a stream are SyncField's, so its tools can read it as an episode of one host too.
package struct MergedManifest: Codable, Sendable, Hashable {
    /// One host's part.
    package struct Host: Codable, Sendable, Hashable {
        package var host: String
        package var role: String?
        package var dialect: EpisodeDialect
        package var state: EpisodeRecord.State
        package var sdkVersion: String?
        /// Its clock against rig time; nil when it isn't known.
        package var clock: ClockMapping<HostTime, RigTime>?
        /// The limit of the error of its clock at the middle of its samples.
        package var clockBound: Interval?
        /// When it really acted on T0 minus T0, both of its own clock: the latency of its scheduling.
        package var gateLatency: Interval?
        /// When it really acted on T0.
        package var gateOpenedRig: Timestamp<RigTime>?
        package var hasRealtimePriority: Bool?
        /// What its own daemons said of its clock at the start.
        package var clockClaim: ClockClaim?
        /// Its wall clock minus the coordinator's at T0, and what that can be wrong by.
        package var wallDifference: Interval?
        package var wallBound: Interval?
        package var events: [HostManifest.Event]
        package var errors: [String]

        private enum CodingKeys: String, CodingKey {
            case host = "host_id"
            case role, dialect, state
            case sdkVersion = "sdk_version"
            case clock
            case clockBound = "clock_bound_ns"
            case gateLatency = "gate_latency_ns"
            case gateOpenedRig = "gate_opened_rig_ns"
            case hasRealtimePriority = "realtime_priority"
            case clockClaim = "clock_discipline"
            case wallDifference = "wall_minus_coordinator_ns"
            case wallBound = "wall_bound_ns"
            case events, errors
        }
    }

    package var host: String
    package var role: String
    package var sdkVersion: String
    package var streams: [MergedStream]

    package var session: String
    package var episode: String
    package var leader: String?
    package var task: String?
    package var participant: String?
    /// T0 and T1.
    package var start: Timestamp<RigTime>?
    package var stop: Timestamp<RigTime>?
    /// What the coordinator's own daemons said of its clock.
    package var clockClaim: ClockClaim?
    package var hosts: [Host]
    package var notes: [EpisodeNote]

    package func write(to path: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(self), to: path)
    }

    package static func read(_ path: String) throws -> MergedManifest {
        do {
            return try JSONText.decode(MergedManifest.self, from: try Files.read(path, limit: 256 << 20))
        } catch let error as JSONText.Malformed {
            throw EpisodeError(path, "no merged manifest: \(error)")
        }
    }

    private enum CodingKeys: String, CodingKey {
        case host = "host_id"
        case role
        case sdkVersion = "sdk_version"
        case streams
        case session = "session_id"
        case episode
        case leader = "leader_host_id"
        case task, participant
        case start = "start_rig_ns"
        case stop = "stop_rig_ns"
        case clockClaim = "clock_discipline"
        case hosts, notes
    }
}

/// One stream of a merged episode.
package struct MergedStream: Codable, Sendable, Hashable {
    /// `<host_id>.<stream_id>`, see `QualifiedNames`.
    package var id: String
    package var host: String
    /// Its id on its host.
    package var hostStream: String
    package var kind: StreamKind
    package var capabilities: StreamCapabilities
    /// Relative to the episode: `data/…`; nil for a sensor, and where the file is missing.
    package var filePath: String?
    /// Relative to the episode: `timestamps/…`.
    package var timestampsPath: String?
    /// Frames of video, sample frames of audio, rows of a sensor.
    package var frameCount: Int64
    package var rows: Int64
    package var status: String?
    package var isPending: Bool
    package var description: StreamDescription?

    package var nominalRate: Double?
    package var rate: Double?
    package var dropped: Int64
    package var gaps: [ManifestStream.Gap]
    package var gapCount: Int64
    /// The longest time between two rows, host time.
    package var largestGap: Interval

    package var first: Timestamp<HostTime>?
    package var last: Timestamp<HostTime>?
    /// Whether its time on the rig is known, and if not why.
    package var isAligned: Bool
    package var unalignedReason: String?
    package var firstRig: Timestamp<RigTime>?
    package var firstBound: Interval?
    package var lastRig: Timestamp<RigTime>?
    package var lastBound: Interval?
    package var timestampSource: String?
    /// The anchor of a clip: when its camera acknowledged the start, host and rig time, and how far that may be off; the
    /// first frame came after it, and how long after the camera doesn't say.
    package var acknowledgedStart: Timestamp<HostTime>?
    package var acknowledgedRig: Timestamp<RigTime>?
    package var acknowledgedUncertainty: Interval?
    package var errors: [String]

    /// A clip of a camera that recorded by itself: it has no stamps, and its sound aligns it.
    package var isClip: Bool { kind == .video && timestampsPath == nil && capabilities.requiresIngest }

    private enum CodingKeys: String, CodingKey {
        case id = "stream_id"
        case host = "host_id"
        case hostStream = "host_stream_id"
        case kind, capabilities
        case filePath = "file_path"
        case timestampsPath = "timestamps_path"
        case frameCount = "frame_count"
        case rows, status
        case isPending = "pending"
        case description
        case nominalRate = "nominal_rate"
        case rate, dropped, gaps
        case gapCount = "gap_count"
        case largestGap = "largest_gap_ns"
        case first = "first_capture_ns"
        case last = "last_capture_ns"
        case isAligned = "aligned"
        case unalignedReason = "unaligned_reason"
        case firstRig = "first_rig_ns"
        case firstBound = "first_bound_ns"
        case lastRig = "last_rig_ns"
        case lastBound = "last_bound_ns"
        case timestampSource = "timestamp_source"
        case acknowledgedStart = "acknowledged_start_ns"
        case acknowledgedRig = "acknowledged_start_rig_ns"
        case acknowledgedUncertainty = "acknowledged_uncertainty_ns"
        case errors
    }
}
