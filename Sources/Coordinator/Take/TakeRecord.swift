package import Protocol
package import Timing

/// How far a take has come.
package enum TakePhase: String, Codable, Sendable, CaseIterable {
    case idle, arming, armed, starting, recording, stopping, ingesting, sealed, aborted

    /// Whether nothing more will happen to it.
    package var isFinal: Bool { self == .sealed || self == .aborted }
}

/// How far one host has come in a take.
package enum TakeHostPhase: String, Codable, Sendable, CaseIterable {
    /// Expected, and not there when the take began.
    case absent
    case arming
    case armed
    /// The commit is on its way.
    case committing
    /// It has promised to begin at T0, and records from then on.
    case committed
    /// It has confirmed the stop.
    case stopping
    /// Its files are closed and lie on it.
    case finished
    case ingesting
    /// Its files are verified at home.
    case ingested
    /// It takes no part any more: refused, or lost and not come back; `error` says why.
    case left
    case aborting
    case aborted

    /// Whether it has a part of the recording.
    package var hasRecorded: Bool {
        switch self {
        case .committed, .stopping, .finished, .ingesting, .ingested: true
        default: false
        }
    }
}

/// Something that the operator should read.
package struct TakeNote: Codable, Sendable, Hashable, CustomStringConvertible {
    package enum Level: String, Codable, Sendable, CaseIterable { case info, warning, error }

    package var level: Level
    package var host: HostID?
    package var text: String

    package init(_ level: Level, host: HostID? = nil, _ text: String) {
        self.level = level
        self.host = host
        self.text = text
    }

    package var description: String { host.map { "host \($0): \(text)" } ?? text }
}

/// One host's part of a take.
package struct TakeHost: Codable, Sendable, Hashable {
    package var host: HostID
    package var uuid: UniqueID?
    package var phase: TakeHostPhase
    /// Whether it ever promised to begin.
    package var hasCommitted = false
    /// Whether all its streams have delivered since T0.
    package var isStreaming = false
    package var arm: ArmReport?
    /// The bound of its clock at the commit.
    package var bound: Interval?
    package var stop: StopReport?
    package var files: FileList?
    /// Why it left, or why its files aren't home.
    package var error: String?

    package init(host: HostID, phase: TakeHostPhase = .absent) {
        self.host = host
        self.phase = phase
    }

    private enum CodingKeys: String, CodingKey {
        case host, uuid, phase, arm, stop, files, error
        case hasCommitted = "has_committed"
        case isStreaming = "is_streaming"
        case bound = "bound_ns"
    }
}

/// All that is known of a take: what the journal keeps on the disk, and what a restarted coordinator goes on from.
package struct TakeRecord: Codable, Sendable, Hashable {
    package var settings: TakeSettings
    package var phase: TakePhase
    package var hosts: [TakeHost]
    /// T0.
    package var start: Timestamp<RigTime>?
    /// T0 by the coordinator's wall clock, for people.
    package var startWall: Timestamp<WallTime>?
    package var startChirp: Timestamp<RigTime>?
    package var stopChirp: Timestamp<RigTime>?
    /// T1.
    package var stop: Timestamp<RigTime>?
    package var stopReason: String?
    /// The leader's.
    package var chirps: [ChirpReport]
    /// Those of the others; nil in journals from before.
    package var turns: [TakeTurn]?
    package var notes: [TakeNote]

    package init(settings: TakeSettings) {
        self.settings = settings
        phase = .idle
        hosts = settings.hosts.map { TakeHost(host: $0) }
        chirps = []
        notes = []
    }

    package subscript(host: HostID) -> TakeHost? { hosts.first { $0.host == host } }

    /// The hosts that may have files which aren't home; one whose answer to the commit isn't in the journal may too.
    package var hostsWithFilesElsewhere: [HostID] {
        hosts.filter { ($0.hasCommitted || $0.phase == .committing) && $0.phase != .ingested }.map(\.host)
    }

    private enum CodingKeys: String, CodingKey {
        case settings, phase, hosts, chirps, turns, notes
        case start = "start_ns"
        case startWall = "start_wall_ns"
        case startChirp = "start_chirp_ns"
        case stopChirp = "stop_chirp_ns"
        case stop = "stop_ns"
        case stopReason = "stop_reason"
    }
}

/// How a take ended for the one who waited for it.
package enum TakeOutcome: Sendable, Hashable {
    case sealed
    /// Recorded whole; the files stay on the agents until `downbeat ingest`.
    case notIngested
    /// Recorded, but the files of these hosts aren't home.
    case incomplete([HostID])
    /// Nothing was recorded, or what was is thrown away; `isRefusal` when a policy forbade to begin.
    case aborted(String, isRefusal: Bool)
    /// The files are home, and merging them failed.
    case sealFailed(String)
}
