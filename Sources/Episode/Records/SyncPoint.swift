internal import Platform
package import Protocol
package import Timing

/// `sync_point.json`: the instant at which a host's part of the take began, on all its clocks, and the chirps.
///
/// SyncField's keys come first; `role`, `session_id` and `timestamp_ms` are of its Python dialect; `boottime_ns`,
/// `tai_ns` and those after them are ours. It is written at the start, and again after each chirp.
package struct SyncPoint: Codable, Sendable, Hashable {
    package var sdkVersion: String
    /// CLOCK_MONOTONIC, the host time of all streams.
    package var monotonic: Timestamp<HostTime>
    /// CLOCK_REALTIME, read right beside it.
    package var wall: Timestamp<WallTime>
    package var host: String
    package var isoDateTime: String
    package var timestampMilliseconds: Int64?

    package var role: HostRole?
    package var session: String?

    package var chirpStart: Timestamp<HostTime>?
    package var chirpStop: Timestamp<HostTime>?
    package var chirpStartSource: ChirpSource?
    package var chirpStopSource: ChirpSource?
    /// The two sweeps of a host that isn't the leader: ours.
    package var chirpTurn: Timestamp<HostTime>?
    package var chirpTurnSource: ChirpSource?
    /// The start chirp; the stop chirp is its reverse.
    package var chirpSpec: ChirpSpec?

    package var boottimeNanoseconds: Int64?
    package var taiNanoseconds: Int64?
    /// How long the reading of the clocks took: they belong together to within this.
    package var clockReading: Interval?
    package var episode: String?
    package var take: UniqueID?
    /// T0 as this host was told it.
    package var start: Timestamp<HostTime>?
    /// The limit of the error of `start` against rig time.
    package var startBound: Interval?

    package init(
        sdkVersion: String = ProductVersion.current, host: String, monotonic: Timestamp<HostTime>,
        wall: Timestamp<WallTime>
    ) {
        self.sdkVersion = sdkVersion
        self.host = host
        self.monotonic = monotonic
        self.wall = wall
        // Without a fraction: the default parser of the Swift SDK refuses one.
        isoDateTime = UTC(wall).iso
        timestampMilliseconds = wall.nanoseconds / 1_000_000
    }

    /// Reads all clocks now.
    ///
    /// CLOCK_MONOTONIC is read before and after the others; `monotonic` is the middle.
    package static func now(host: HostID) -> SyncPoint {
        let before = HostClock.now
        let wall = HostClock.wall
        let boottime = HostClock.boottimeNanoseconds
        let tai = HostClock.taiNanoseconds
        let span = HostClock.now - before
        var point = SyncPoint(host: host.rawValue, monotonic: before + span / 2, wall: wall)
        point.boottimeNanoseconds = boottime
        point.taiNanoseconds = tai
        point.clockReading = span
        return point
    }

    /// Takes in what became of a chirp; a silent one leaves its source, and no time that looks like a sound.
    package mutating func note(_ report: ChirpReport, spec: ChirpSpec?) {
        let emitted = report.source == .silent ? nil : report.emitted
        switch report.moment {
        case .start:
            (chirpStart, chirpStartSource) = (emitted, report.source)
            chirpSpec = spec ?? chirpSpec
        case .stop:
            (chirpStop, chirpStopSource) = (emitted, report.source)
            // The file has one spec only, that of the start chirp; without one the stop chirp's reverse is the same.
            chirpSpec = chirpSpec ?? spec?.reversed
        case .turn:
            (chirpTurn, chirpTurnSource) = (emitted, report.source)
            chirpSpec = chirpSpec ?? spec
        }
    }

    /// Writes the file whole or not at all.
    package func write(to path: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(self), to: path)
    }

    private enum CodingKeys: String, CodingKey {
        case sdkVersion = "sdk_version"
        case monotonic = "monotonic_ns"
        case wall = "wall_clock_ns"
        case host = "host_id"
        case isoDateTime = "iso_datetime"
        case timestampMilliseconds = "timestamp_ms"
        case role
        case session = "session_id"
        case chirpStart = "chirp_start_ns"
        case chirpStop = "chirp_stop_ns"
        case chirpStartSource = "chirp_start_source"
        case chirpStopSource = "chirp_stop_source"
        case chirpTurn = "chirp_turn_ns"
        case chirpTurnSource = "chirp_turn_source"
        case chirpSpec = "chirp_spec"
        case boottimeNanoseconds = "boottime_ns"
        case taiNanoseconds = "tai_ns"
        case clockReading = "clock_reading_ns"
        case episode
        case take
        case start = "start_ns"
        case startBound = "start_bound_ns"
    }
}
