package import Protocol
package import Timing

/// One entry of a manifest's `streams`.
package struct ManifestStream: Codable, Sendable, Hashable {
    package enum Status: String, Codable, Sendable, CaseIterable {
        case recording
        case completed
        /// It ended before the take did; `truncatedAt` says when.
        case truncated
        /// It has samples, and it lost some or failed in the end.
        case partial
        /// It has no samples, or they can't be used.
        case failed
        /// The program died; the file holds what was on the disk.
        case recovered
        /// The samples are still on the device that took them.
        case pending
    }

    /// A time without samples.
    package struct Gap: Codable, Sendable, Hashable {
        package var from: Timestamp<HostTime>
        package var to: Timestamp<HostTime>
        package var cause: String
        /// How many samples are missing; nil when it isn't known.
        package var count: Int64?
        /// The first and the last of them by the driver's or the device's counter; nil when there's none.
        package var firstSequence: Int64?
        package var lastSequence: Int64?

        package init(
            from: Timestamp<HostTime>, to: Timestamp<HostTime>, cause: String, count: Int64? = nil,
            firstSequence: Int64? = nil, lastSequence: Int64? = nil
        ) {
            self.from = from
            self.to = to
            self.cause = cause
            self.count = count
            self.firstSequence = firstSequence
            self.lastSequence = lastSequence
        }

        private enum CodingKeys: String, CodingKey {
            case from = "from_ns"
            case to = "to_ns"
            case cause, count
            case firstSequence = "first_sequence"
            case lastSequence = "last_sequence"
        }
    }

    /// How many gaps are kept; beyond them only their number and their length together.
    package static let gapLimit = 1_000

    package var id: StreamID
    package var kind: StreamKind
    package var capabilities: StreamCapabilities
    /// Relative to the episode's folder.
    package var filePath: String
    /// Frames of video, sample frames of audio, rows of a sensor.
    package var frameCount: Int64
    package var status: Status
    /// The stamp of the last sample, when the status is `truncated`.
    package var truncatedAt: Timestamp<HostTime>?
    package var syncGroup: String?

    package var timestampsPath: String?
    package var description: StreamDescription?
    /// Samples that the device, the driver or our queues lost.
    package var dropped: Int64
    package var gaps: [Gap]
    /// All gaps, also those beyond `gapLimit`.
    package var gapCount: Int64
    package var gapLength: Interval
    /// Samples a second between the first and the last.
    package var rate: Double?
    package var bytes: Int64
    package var first: Timestamp<HostTime>?
    package var last: Timestamp<HostTime>?
    package var timestampSource: String?
    /// Frames whose stamp in the container had to be moved on, since it wasn't later than the one before.
    package var adjustedStamps: Int64?
    /// Of a camera that records by itself: when the acknowledgement of its start was read, and half the round trip.
    package var acknowledgedStart: Timestamp<HostTime>?
    package var acknowledgedUncertainty: Interval?
    /// The sound that is in a video beside its frames.
    package var sound: SoundRecord?
    /// What was measured of the device's own clock over the take.
    package var deviceClock: DeviceClockReport?
    /// Sentences for the operator.
    package var errors: [String]

    package init(
        id: StreamID, kind: StreamKind, capabilities: StreamCapabilities, filePath: String, status: Status
    ) {
        self.id = id
        self.kind = kind
        self.capabilities = capabilities
        self.filePath = filePath
        self.status = status
        frameCount = 0
        dropped = 0
        gaps = []
        gapCount = 0
        gapLength = .zero
        bytes = 0
        errors = []
    }

    /// The entry of a stream at the start of a take.
    package init(_ description: StreamDescription, status: Status = .recording) {
        self.init(
            id: description.id, kind: description.kind, capabilities: description.capabilities,
            filePath: EpisodeLayout.samples(description.id, description.kind), status: status)
        if description.kind != .sensor { timestampsPath = EpisodeLayout.timestamps(description.id) }
        self.description = description
        timestampSource = description.timestampSource
    }

    package mutating func add(_ gap: Gap) {
        gapCount += 1
        gapLength = gapLength + (gap.to - gap.from)
        if gaps.count < Self.gapLimit { gaps.append(gap) }
    }

    private enum CodingKeys: String, CodingKey {
        case id = "stream_id"
        case kind, capabilities
        case filePath = "file_path"
        case frameCount = "frame_count"
        case status
        case truncatedAt = "truncated_at_ns"
        case syncGroup = "sync_group_id"
        case timestampsPath = "timestamps_path"
        case description, dropped, gaps
        case gapCount = "gap_count"
        case gapLength = "gap_length_ns"
        case rate, bytes
        case first = "first_capture_ns"
        case last = "last_capture_ns"
        case timestampSource = "timestamp_source"
        case adjustedStamps = "adjusted_stamps"
        case acknowledgedStart = "acknowledged_start_ns"
        case acknowledgedUncertainty = "acknowledged_uncertainty_ns"
        case sound = "audio_track"
        case deviceClock = "device_clock"
        case errors
    }
}
