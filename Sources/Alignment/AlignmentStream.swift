package import Episode
internal import Protocol
internal import Timing

/// A stream that is to be aligned.
package struct AlignmentStream: Codable, Sendable, Hashable {
    package var id: String
    package var host: String
    /// The media file; nil for a sensor.
    package var media: String?
    /// The file with a row for each sample; empty for a clip of a camera that wrote none, which only its sound can align.
    package var rows: String
    package var isPrimary: Bool
    package var isSensor: Bool

    package init(
        id: String, host: String, media: String? = nil, rows: String, isPrimary: Bool = false, isSensor: Bool = false
    ) {
        (self.id, self.host, self.media) = (id, host, media)
        (self.rows, self.isPrimary, self.isSensor) = (rows, isPrimary, isSensor)
    }

    /// The clock that its stamps are of: its host's, or that of its own file.
    package var clock: ClockID { rows.isEmpty ? .clip(of: id, host: host) : .host(host) }
}

/// A clock that stamps are of.
package enum ClockID: Sendable, Hashable, Comparable, CustomStringConvertible {
    case host(String)
    /// The time line of a file without stamps: nanoseconds since its begin.
    case clip(of: String, host: String)

    package var host: String {
        switch self {
        case .host(let host), .clip(_, let host): host
        }
    }

    package var description: String {
        switch self {
        case .host(let host): "host '\(host)'"
        case .clip(let stream, _): "clip '\(stream)'"
        }
    }

    private var order: [String] {
        switch self {
        case .host(let host): [host]
        case .clip(let stream, let host): [host, stream]
        }
    }

    package static func < (a: Self, b: Self) -> Bool { a.order.lexicographicallyPrecedes(b.order) }
}

/// A file whose sound can be listened to.
package struct SoundSource: Codable, Sendable, Hashable {
    /// How its samples get their times.
    package enum Timing: Codable, Sendable, Hashable {
        /// Rows of the sound itself: the number of sample frames before an instant, and the instant.
        case samples(rows: String)
        /// Rows of the video in the same file, whose presentation times are those of the sound too.
        case frames(rows: String)
        /// None: the file's own time line.
        case none
    }

    /// The stream that it is of.
    package var id: String
    package var host: String
    package var path: String
    package var timing: Timing

    package init(id: String, host: String, path: String, timing: Timing) {
        (self.id, self.host, self.path, self.timing) = (id, host, path, timing)
    }

    /// The microphones of a host's episode whose samples have stamps; where there's none, the sound of its videos.
    package static func microphones(of record: EpisodeRecord) -> [SoundSource] {
        func sources(_ kind: StreamKind) -> [SoundSource] {
            record.streams.filter { $0.kind == kind }.compactMap { stream in
                guard let media = stream.media, let stamps = stream.stamps, (stream.rows?.rows ?? 0) > 0 else {
                    return nil
                }
                let rows = "\(record.folder)/\(stamps)"
                return SoundSource(
                    id: stream.id, host: record.host, path: "\(record.folder)/\(media)",
                    timing: kind == .audio ? .samples(rows: rows) : .frames(rows: rows))
            }
        }
        let microphones = sources(.audio)
        return microphones.isEmpty ? sources(.video) : microphones
    }

    package var clock: ClockID { timing == .none ? .clip(of: id, host: host) : .host(host) }
}

/// What is to be aligned, and what may be looked at for it; paths are absolute.
package struct AlignmentJob: Sendable {
    package var streams: [AlignmentStream]
    package var sounds: [SoundSource] = []
    /// The clock series of the hosts, `clock_sync.jsonl`.
    package var clockSeries: String?
    /// The merged manifest.
    package var manifest: String?
    /// The hosts' `sync_point.json` files.
    package var syncPoints: [String] = []
    /// What was left out on the way here, a sentence each.
    package var leftOut: [String] = []
    /// Whether rows of every dialect that exists are taken; else only those that the interface asks for.
    package var isForgiving = false

    package init(streams: [AlignmentStream]) { self.streams = streams }
}

/// How it is to be aligned.
package struct AlignmentSettings: Sendable, Hashable {
    package enum Method: String, Sendable, Hashable, CaseIterable {
        /// The network's clock series where there is one, sound for the rest.
        case automatic = "auto"
        case sound, clock
    }

    package var method = Method.automatic
    /// Whether the hosts' wall clocks may be believed where nothing else is known.
    package var usesWallClock = false
    /// Whether hosts that can't be aligned are left out; else nothing is aligned then.
    package var allowsPart = false
    /// Metres between the hosts, where it is known.
    package var distance: Double?
    /// No two hosts are farther apart, metres; sound that went one way leaves the clock open by this / 343 m/s.
    package var farthest = 8.0
    /// Chirps that were heard with less aren't used, 0…1.
    package var leastConfidence = 0.0
    /// Metres a second; 343.2 at 20 °C.
    package var soundSpeed = 343.2

    package init() {}
}
