internal import Episode
internal import Platform
internal import Protocol
internal import Timing

/// The folder of the take that is under way, and the files in it that are not a stream's: anchor, manifest, log.
///
/// Concurrency: an actor on an event loop of its own, which may block on the disk.
actor EpisodeScribe {
    private static let mostEvents = 1_000

    private let host: HostID
    private let hostUUID: UniqueID
    private let loop = EventLoop(name: "scribe")
    private var folder: String?
    private var point: SyncPoint?
    private var manifest: HostManifest?
    private var log: SessionLog?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(host: HostID, hostUUID: UniqueID) {
        self.host = host
        self.hostUUID = hostUUID
    }

    /// Makes the folder, which must not exist yet.
    func make(_ folder: String) throws {
        guard !Files.exists(folder) else { throw SystemError(.exists, "making folder \(folder)") }
        try Files.makeFolder(folder)
        try AtomicFile.synchronizeFolder(of: folder)
        self.folder = folder
    }

    /// Takes the folder back, with all in it.
    func discard() {
        if let folder {
            do { try Files.removeTree(folder) } catch { Log("episode").error("\(error)") }
        }
        forget()
    }

    /// T0 has come: the anchor, a first manifest and the log's first line, at once.
    func begin(
        _ plan: TakePlan, _ commit: Commit, opened: Timestamp<HostTime>?, isRealtime: Bool,
        streams: [StreamDescription], errors: [String]
    ) throws {
        guard let folder else { return }
        var point = SyncPoint.atStart(commit.start, host: host)
        point.role = plan.role
        point.session = plan.session.rawValue
        point.episode = plan.episode.rawValue
        point.take = plan.take
        point.startBound = commit.bound
        self.point = point
        try point.write(to: "\(folder)/\(EpisodeLayout.syncPoint)")

        var manifest = HostManifest(
            host: host, plan: plan, streams: streams.map { ManifestStream($0) }, status: .recording)
        manifest.hostUUID = hostUUID
        manifest.start = commit.start
        manifest.startBound = commit.bound
        manifest.gateOpened = opened
        manifest.hasRealtimePriority = isRealtime
        manifest.clockClaim = ClockClaim.now
        manifest.errors = errors
        self.manifest = manifest
        try manifest.write(to: "\(folder)/\(EpisodeLayout.manifest)")

        log = try SessionLog(path: "\(folder)/\(EpisodeLayout.sessionLog)")
        try log?.append(kind: "state", detail: "connected->recording")
    }

    /// A chirp was played, or not.
    func note(_ report: ChirpReport, spec: ChirpSpec?) throws {
        guard let folder, var point else { return }
        point.note(report, spec: spec)
        // Read before the assignment: within it the optional is being changed already, and the runtime ends the program.
        let chirps = (manifest?.chirps ?? []) + [report]
        manifest?.chirps = chirps
        self.point = point
        try point.write(to: "\(folder)/\(EpisodeLayout.syncPoint)")
        let when = report.emitted.map { "at \($0.nanoseconds)" } ?? "not at all"
        let words = report.error.map { ": \($0)" } ?? ""
        try log?.append(
            kind: "chirp", detail: "\(report.moment.rawValue) \(when) (\(report.source.rawValue))\(words)")
    }

    /// Something happened that the verdict should know.
    func note(_ event: HostManifest.Event) throws {
        guard manifest != nil else { return }
        if (manifest?.events.count ?? 0) < Self.mostEvents { manifest?.events.append(event) }
        let stream = event.stream.map { "\($0): " } ?? ""
        try log?.append(kind: event.kind, detail: "\(stream)\(event.message)")
    }

    func stopping() throws { try log?.append(kind: "state", detail: "recording->stopping") }

    /// The streams are closed: the manifest, whatever became of them; nothing in the folder changes after this.
    func finish(streams: [ManifestStream], stop: Timestamp<HostTime>, reason: String, errors: [String]) throws
        -> Int64
    {
        guard let folder, var manifest else { return 0 }
        manifest.streams = streams
        manifest.stop = stop
        manifest.stopReason = reason
        manifest.status = .finished
        manifest.errors += errors.filter { !manifest.errors.contains($0) }
        try log?.append(kind: "take", detail: "files closed: \(reason)")
        try manifest.write(to: "\(folder)/\(EpisodeLayout.manifest)")
        try AtomicFile.synchronizeFolder(of: "\(folder)/\(EpisodeLayout.manifest)")
        forget()
        return TakeStore.bytes(in: folder)
    }

    private func forget() {
        (folder, point, manifest) = (nil, nil, nil)
        log = nil
    }
}

extension SyncPoint {
    /// The anchor of a take that begins at an instant, which was a moment ago.
    ///
    /// The gate opens at exactly that instant, so it is the anchor; the other clocks are read now and taken back by the
    /// time since.
    static func atStart(_ start: Timestamp<HostTime>, host: HostID) -> SyncPoint {
        let now = SyncPoint.now(host: host)
        let back = now.monotonic - start
        var point = SyncPoint(host: host.rawValue, monotonic: start, wall: now.wall - back)
        point.boottimeNanoseconds = now.boottimeNanoseconds.map {
            (Timestamp<WallTime>(nanoseconds: $0) - back).nanoseconds
        }
        point.taiNanoseconds = now.taiNanoseconds.map { (Timestamp<WallTime>(nanoseconds: $0) - back).nanoseconds }
        point.clockReading = now.clockReading
        point.start = start
        return point
    }
}
