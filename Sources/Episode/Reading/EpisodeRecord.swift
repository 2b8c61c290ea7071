package import Protocol
package import Timing

/// Something about an episode that a person should know; never a reason to stop reading.
package struct EpisodeNote: Sendable, Hashable, Codable, CustomStringConvertible {
    package enum Weight: String, Sendable, Hashable, Codable, CaseIterable {
        /// Good to know.
        case information
        /// A part can't be used, or not fully.
        case warning
    }

    package var weight: Weight
    /// Nil when it is of the whole episode.
    package var stream: String?
    package var text: String

    package init(_ weight: Weight, _ text: String, stream: String? = nil) {
        self.weight = weight
        self.text = text
        self.stream = stream
    }

    package var description: String { stream.map { "\($0): \(text)" } ?? text }

    private enum CodingKeys: String, CodingKey {
        case weight, text
        case stream = "stream_id"
    }
}

/// Which program's way of writing an episode it is; found by its keys, never by a version.
package enum EpisodeDialect: String, Sendable, Hashable, Codable, CaseIterable {
    case downbeat
    /// SyncField Swift from 0.5 on.
    case swift
    /// SyncField Swift up to 0.4: other keys in the rows.
    case swiftOld = "swift_0.4"
    case kotlin
    case python
    /// SyncField Python 0.1.
    case pythonOld = "python_0.1"
    /// No manifest: only what the files say.
    case bare
}

/// One host's episode as it was found, whoever wrote it.
package struct EpisodeRecord: Sendable, Hashable {
    package enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case finished
        /// It was repaired after its program died.
        case recovered
        /// It has an anchor or a log, and no manifest of an end: its program died in the take, or the take was aborted.
        case crashed
    }

    /// The anchor of the host's clock, of any dialect.
    package struct Anchor: Sendable, Hashable {
        package var monotonic: Int64
        package var wall: Int64?
    }

    /// A chirp as the episode tells of it.
    package struct Chirp: Sendable, Hashable {
        package var moment: ChirpMoment
        /// Host time; nil when only the source is told.
        package var emitted: Timestamp<HostTime>?
        /// Nil in old files.
        package var source: ChirpSource?
        package var spec: ChirpSpec?
        /// It can be looked for in the sound.
        package var isCredible: Bool
    }

    package var folder: String
    package var dialect: EpisodeDialect
    /// From the manifest, else the sync point, else the folder's name.
    package var host: String
    package var role: String?
    package var session: String?
    package var leader: String?
    package var task: String?
    package var sdkVersion: String?
    package var state: State
    package var anchor: Anchor?
    package var chirps: [Chirp]
    package var streams: [StreamRecord]
    package var notes: [EpisodeNote]
    /// The manifest, when this program wrote it.
    package var manifest: HostManifest?
}

/// One stream of an episode as it was found.
package struct StreamRecord: Sendable, Hashable {
    /// As the manifest has it; it may be no legal name of ours.
    package var id: String
    package var kind: StreamKind
    package var capabilities: StreamCapabilities?
    /// Relative to the episode's folder; nil when there's no such file.
    package var media: String?
    package var mediaBytes: Int64
    /// The file with its stamps: of frames, or a sensor's own; relative; nil when there's no such file.
    package var stamps: String?
    package var rows: RowReport?
    /// What the manifest says.
    package var declaredFrames: Int64?
    package var declaredPath: String?
    package var status: String?
    package var truncatedAt: Timestamp<HostTime>?
    package var nominalRate: Double?
    package var sound: WAVFile?
    /// The clip is still on the camera.
    package var isPending: Bool
    /// When the camera acknowledged its start, host time: the only anchor of a pending clip.
    package var acknowledgedStart: Timestamp<HostTime>?
    /// Half the round trip of that; nil when nobody wrote it down.
    package var acknowledgedUncertainty: Interval?
    /// Pieces of one clip, in order, when the camera cut it.
    package var segments: [String]
    /// It isn't in the manifest.
    package var isUndeclared: Bool
    /// Its entry, when this program wrote the manifest.
    package var entry: ManifestStream?

    package init(id: String, kind: StreamKind) {
        self.id = id
        self.kind = kind
        mediaBytes = 0
        isPending = false
        segments = []
        isUndeclared = false
    }

    /// A clip of a camera that recorded by itself: it has no stamps, and its sound aligns it.
    package var isClip: Bool {
        kind == .video && stamps == nil
            && (capabilities?.requiresIngest == true || acknowledgedStart != nil || !segments.isEmpty)
    }

    /// Samples that have a stamp or are there by count.
    package var samples: Int64 {
        switch kind {
        case .audio: sound?.frames ?? rows?.lastFrame ?? 0
        case .video, .sensor: rows?.rows ?? declaredFrames ?? 0
        }
    }
}

extension StreamRecord {
    /// The clock that its stamps are of when that isn't its host's.
    ///
    /// SyncField's files of one host have its name as domain, `local_host`, or none; a headset's has its own.
    package func foreignDomain(host: String) -> String? {
        guard let domains = rows?.clockDomains else { return nil }
        return domains.first { $0.hasPrefix("remote_") }
            ?? (domains.count > 1 ? domains.first { $0 != host && $0 != "local_host" } : nil)
    }
}
