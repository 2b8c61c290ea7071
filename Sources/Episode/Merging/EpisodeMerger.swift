internal import Platform
package import Protocol
package import Timing

/// What the coordinator knows of a take beside the files.
package struct MergePlan: Sendable {
    package var session: String
    package var episode: String
    package var leader: HostID?
    package var task: String?
    package var participant: String?
    package var start: Timestamp<RigTime>?
    package var stop: Timestamp<RigTime>?
    /// The coordinator's wall clock at the start, and what its own daemons said of it.
    package var startWall: Timestamp<WallTime>?
    package var clockClaim: ClockClaim?
    /// What was noticed of the hosts' clocks from here.
    package var clockEvents: [HostID: [HostManifest.Event]] = [:]
    /// The clocks of the hosts; those without one are unaligned.
    package var clocks: [HostID: ClockSeries]
    /// Files that were verified when they came; others are hashed now.
    package var files: [HostID: [FileEntry]]
    /// Hosts of the take that didn't hand over everything, and why.
    package var failures: [HostID: (status: AggregatedManifest.Status, error: String)]

    package init(session: String, episode: String) {
        self.session = session
        self.episode = episode
        clocks = [:]
        files = [:]
        failures = [:]
    }
}

/// What a merge made.
package struct MergeResult: Sendable {
    package var manifest: MergedManifest
    package var aggregated: AggregatedManifest
    /// Nil when nothing can be aligned.
    package var request: SyncRequest?
    package var records: [EpisodeRecord]
}

/// Makes one episode of what several hosts made, in a folder whose `hosts/<host_id>/` have come home.
///
/// `data/` and `timestamps/` are filled, and `aggregated_manifest.json`, `manifest.json` and `sync_request.json` written,
/// each whole or not at all; `hosts/` is never touched. A file of rows that a strict reader would refuse gets an
/// orderly copy in `timestamps/` instead of a second name. Merging again gives the same bytes.
package struct EpisodeMerger {
    private let folder: String
    private let plan: MergePlan
    private var notes: [EpisodeNote] = []
    private var records: [EpisodeRecord] = []

    /// Merges; a single bad file becomes a note.
    ///
    /// - Throws: `SystemError` when the folder can't be read or written.
    package static func merge(folder: String, plan: MergePlan) throws -> MergeResult {
        var merger = EpisodeMerger(folder: folder, plan: plan)
        return try merger.merge()
    }

    private init(folder: String, plan: MergePlan) {
        self.folder = folder
        self.plan = plan
    }

    private mutating func merge() throws -> MergeResult {
        try readHosts()
        let names = QualifiedNames(
            records.flatMap { record in
                record.streams.map { QualifiedNames.Source(host: record.host, stream: $0.id) }
            }, reserved: records.map { "\(QualifiedNames.safe($0.host)).sync_point" })
        let streams = try fill(names)
        let aggregated = try aggregate()
        var manifest = describe(streams)
        let (request, leftOut) = SyncRequest.make(manifest)
        manifest.notes += leftOut
        if request == nil { manifest.notes.append(EpisodeNote(.warning, "nothing of it can be aligned")) }

        try aggregated.write(to: "\(folder)/aggregated_manifest.json")
        if let request {
            try request.write(to: "\(folder)/sync_request.json")
        } else {
            try Files.remove("\(folder)/sync_request.json")
        }
        // The last one: where it is, all that it names is there.
        try manifest.write(to: "\(folder)/\(EpisodeLayout.manifest)")
        return MergeResult(manifest: manifest, aggregated: aggregated, request: request, records: records)
    }

    // MARK: Hosts

    private mutating func readHosts() throws {
        let hosts = "\(folder)/hosts"
        guard Files.isFolder(hosts) else { return }
        for name in try Files.list(hosts) where Files.isFolder("\(hosts)/\(name)") {
            var record = try EpisodeReader.read("\(hosts)/\(name)")
            if record.host != name {
                notes.append(
                    EpisodeNote(.information, "the episode in hosts/\(name) says that its host is '\(record.host)'"))
            }
            // The folder is what the coordinator named it: it is unique, what a file says needn't be.
            record.host = name
            notes += record.notes.map { note in
                EpisodeNote(note.weight, "\(name): \(note.text)", stream: note.stream)
            }
            records.append(record)
        }
        for host in plan.failures.keys.sorted() where !records.contains(where: { $0.host == host.rawValue }) {
            notes.append(EpisodeNote(.warning, "host \(host) is missing: \(plan.failures[host]?.error ?? "")"))
        }
    }

    private func clock(_ host: String) -> ClockSeries? {
        HostID(rawValue: host).flatMap { plan.clocks[$0] }.flatMap { $0.isEmpty ? nil : $0 }
    }

    // MARK: Folders

    private mutating func fill(_ names: QualifiedNames) throws -> [MergedStream] {
        var data = try LinkFolder("\(folder)/data")
        var timestamps = try LinkFolder("\(folder)/timestamps")
        var merged: [MergedStream] = []
        for record in records {
            for stream in record.streams {
                guard let name = names[.init(host: record.host, stream: stream.id)] else { continue }
                let (stamps, rows) = try placeStamps(of: stream, record, as: name, in: &timestamps)
                var found = stream
                found.rows = rows
                var entry = MergedStreamMaker.make(found, name: name, record: record, clock: clock(record.host))
                entry.timestampsPath = stamps.map { "timestamps/\($0)" }
                for media in [stream.media].compactMap({ $0 }) + stream.segments.filter({ $0 != stream.media }) {
                    let file = name + Self.suffix(media, of: stream)
                    try data.link("\(record.folder)/\(media)", as: file)
                    if media == stream.media { entry.filePath = "data/\(file)" }
                }
                merged.append(entry)
            }
            let point = "\(record.folder)/\(EpisodeLayout.syncPoint)"
            if Files.size(point) != nil {
                try timestamps.link(point, as: "\(QualifiedNames.safe(record.host)).\(EpisodeLayout.syncPoint)")
            }
        }
        try data.finish()
        try timestamps.finish()
        let copies = data.copies + timestamps.copies
        if copies > 0 { Log("merge").warning("\(folder) has no hard links: \(copies) files were copied") }
        return merged
    }

    /// Gives a stream's rows their place, as they are or as an orderly copy; the name, and what the place has in it.
    private mutating func placeStamps(
        of stream: StreamRecord, _ record: EpisodeRecord, as name: String, in timestamps: inout LinkFolder
    ) throws -> (name: String?, rows: RowReport?) {
        guard let stamps = stream.stamps, let rows = stream.rows else { return (nil, stream.rows) }
        let source = "\(record.folder)/\(stamps)"
        let file = name + (stream.kind == .sensor ? ".jsonl" : ".timestamps.jsonl")
        let surplus = Self.surplus(rows, of: stream, record)
        if surplus > 0 {
            let text = "its last \(surplus) stamps have no frame: the program died before the frames were on the disk"
            notes.append(EpisodeNote(.information, "\(record.host): \(text)", stream: stream.id))
        }
        guard surplus > 0 || !rows.isClean,
            let normal = try RowNormalizer.normalize(source, report: rows, limit: rows.rows - surplus)
        else {
            try timestamps.link(source, as: file)
            return (file, rows)
        }
        try timestamps.write(normal, as: file)
        guard surplus > 0 else { return (file, rows) }
        return (file, try RowFile.read("\(folder)/timestamps/\(file)"))
    }

    /// How many rows a killed program wrote for frames that never came to the disk.
    private static func surplus(_ rows: RowReport, of stream: StreamRecord, _ record: EpisodeRecord) -> Int64 {
        guard record.state == .recovered, stream.kind == .video, let frames = stream.entry?.frameCount, frames > 0,
            stream.media != nil
        else { return 0 }
        return max(0, rows.rows - frames)
    }

    /// `.mp4`, `.wav`, `_seg01.mp4`: what stands behind a stream's name.
    private static func suffix(_ media: String, of stream: StreamRecord) -> String {
        if stream.segments.contains(media), media != stream.media { return String(media.dropFirst(stream.id.count)) }
        guard let dot = media.lastIndex(of: "."), media[dot...].utf8.count <= 8 else { return ".bin" }
        return String(media[dot...])
    }

    // MARK: Descriptions

    private mutating func aggregate() throws -> AggregatedManifest {
        var hosts: [AggregatedManifest.Host] = []
        for record in records {
            let id = HostID(rawValue: record.host)
            let failure = id.flatMap { plan.failures[$0] }
            let files = try EpisodeFiles.list(record.folder, known: id.flatMap { plan.files[$0] } ?? [])
            hosts.append(
                AggregatedManifest.Host(
                    id: record.host, status: failure?.status ?? .ok, files: files, error: failure?.error))
        }
        for (id, failure) in plan.failures where !records.contains(where: { $0.host == id.rawValue }) {
            hosts.append(
                AggregatedManifest.Host(id: id.rawValue, status: failure.status, files: [], error: failure.error))
        }
        hosts.sort { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
        return AggregatedManifest(
            session: plan.session, leader: leader, leaderEpisode: plan.episode, hosts: hosts)
    }

    /// The plan's, else that one of whose files say so.
    private var leader: String? {
        plan.leader?.rawValue ?? records.first { $0.role == HostRole.leader.rawValue }?.host
            ?? records.compactMap(\.leader).first ?? (records.count == 1 ? records.first?.host : nil)
    }

    private func describe(_ streams: [MergedStream]) -> MergedManifest {
        let hosts = records.map { record in
            let middle = MergedStreamMaker.middle(record)
            let mapping = middle.flatMap { clock(record.host)?.mapping(at: $0) }
            let manifest = record.manifest
            let latency = manifest?.gateOpened.flatMap { opened in manifest?.start.map { opened - $0 } }
            let wall = wallDifference(record)
            let noticed = HostID(rawValue: record.host).flatMap { plan.clockEvents[$0] } ?? []
            return MergedManifest.Host(
                host: record.host, role: record.role, dialect: record.dialect, state: record.state,
                sdkVersion: record.sdkVersion, clock: mapping,
                clockBound: middle.flatMap { mapping?.bound(at: $0) }, gateLatency: latency,
                gateOpenedRig: manifest?.gateOpened.flatMap { clock(record.host)?.rig($0)?.time },
                hasRealtimePriority: manifest?.hasRealtimePriority, clockClaim: manifest?.clockClaim,
                wallDifference: wall?.difference, wallBound: wall?.bound,
                events: (manifest?.events ?? []) + noticed, errors: manifest?.errors ?? [])
        }
        return MergedManifest(
            host: leader ?? plan.episode, role: HostRole.leader.rawValue, sdkVersion: ProductVersion.current,
            streams: streams, session: plan.session, episode: plan.episode, leader: leader,
            task: plan.task ?? records.compactMap(\.task).first,
            participant: plan.participant ?? records.compactMap(\.manifest?.participant).first, start: plan.start,
            stop: plan.stop, clockClaim: plan.clockClaim, hosts: hosts, notes: notes)
    }

    /// A host's wall clock minus the coordinator's, at the host's anchor.
    private func wallDifference(_ record: EpisodeRecord) -> (difference: Interval, bound: Interval)? {
        guard let start = plan.start, let ours = plan.startWall, let anchor = record.anchor, let wall = anchor.wall,
            let (instant, bound) = clock(record.host)?.rig(Timestamp(nanoseconds: anchor.monotonic))
        else { return nil }
        let expected = ours + (instant - start)
        // 1 ms: the two readings of the wall clocks, each beside a monotonic one, and what the daemons did since.
        return (Timestamp<WallTime>(nanoseconds: wall) - expected, bound + .milliseconds(1))
    }
}
