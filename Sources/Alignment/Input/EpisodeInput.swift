package import Episode
internal import Platform
internal import Protocol

/// Turns folders into a job: an episode at home, one host's episode of any dialect, several of them, or a session of
/// SyncField's Python with its hosts' folders or its collected files.
package struct EpisodeInput {
    /// Why folders are no episode: one sentence.
    package struct Unusable: Error, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    /// Each host's part.
    package let records: [EpisodeRecord]
    package private(set) var job: AlignmentJob

    /// Reads what is there; `scratch` is an empty folder for names of our own.
    ///
    /// `primary` is the stream that the others are mapped to: an id of the job, or of one host's stream.
    ///
    /// - Throws: `Unusable`, and `SystemError` when a folder can't be read.
    package init(_ folders: [String], primary: String? = nil, scratch: String) throws {
        var hosts: [String] = []
        for folder in folders { hosts += try HostFolders.find(folder, scratch: scratch) }
        guard !hosts.isEmpty else { throw Unusable("no episode was named") }
        var records = try hosts.map { try EpisodeReader.read($0) }
        let isMerged = folders.count == 1 && Files.isFolder("\(folders[0])/hosts")
        if isMerged { for index in records.indices { records[index].host = FilePath.name(of: hosts[index]) } }
        for (index, record) in records.enumerated() where records[..<index].contains(where: { $0.host == record.host })
        {
            throw Unusable(
                "two of the episodes are of host '\(record.host)'; name one take, with each host once")
        }
        self.records = records
        job = AlignmentJob(streams: [])
        job.isForgiving = true
        job.syncPoints = hosts.map { "\($0)/\(EpisodeLayout.syncPoint)" }.filter { Files.size($0) != nil }
        for folder in folders {
            let series = "\(folder)/clock_sync.jsonl"
            if job.clockSeries == nil, Files.size(series) != nil { job.clockSeries = series }
            let manifest = "\(folder)/\(EpisodeLayout.manifest)"
            if isMerged, Files.size(manifest) != nil { job.manifest = manifest }
        }
        addStreams()
        guard !job.streams.isEmpty else {
            throw Unusable("there is nothing to be aligned: \(job.leftOut.first ?? "no stream was found")")
        }
        try choosePrimary(primary, isMerged ? folders[0] : nil)
    }

    private mutating func addStreams() {
        let names = QualifiedNames(
            records.flatMap { record in
                record.streams.map { QualifiedNames.Source(host: record.host, stream: $0.id) }
            })
        for record in records {
            let hasEar = record.streams.contains { $0.kind == .audio && $0.media != nil && $0.stamps != nil }
            for stream in record.streams {
                let name =
                    records.count == 1
                    ? stream.id : names[.init(host: record.host, stream: stream.id)] ?? stream.id
                add(stream, of: record, as: name, hasEar: hasEar)
            }
        }
    }

    private mutating func add(_ stream: StreamRecord, of record: EpisodeRecord, as name: String, hasEar: Bool) {
        let media = stream.media.map { "\(record.folder)/\($0)" }
        let rows = (stream.rows?.rows ?? 0) > 0 ? stream.stamps.map { "\(record.folder)/\($0)" } : nil
        if stream.kind == .audio {
            guard let media else { return leave(name, "its sound is missing") }
            guard let rows else { return leave(name, "its sound has no time stamps") }
            job.sounds.append(SoundSource(id: name, host: record.host, path: media, timing: .samples(rows: rows)))
            return
        }
        if stream.isPending { return leave(name, "its clip is still on the camera") }
        if !stream.segments.isEmpty, stream.media == nil {
            return leave(name, "its clip is in \(stream.segments.count) pieces")
        }
        if let foreign = stream.foreignDomain(host: record.host) {
            return leave(name, "its stamps are of the clock '\(foreign)', which nothing relates to its host's")
        }
        if stream.kind == .sensor {
            guard let rows else { return leave(name, "it has no rows") }
            job.streams.append(AlignmentStream(id: name, host: record.host, rows: rows, isSensor: true))
            return
        }
        guard let media else { return leave(name, "its video is missing") }
        job.streams.append(AlignmentStream(id: name, host: record.host, media: media, rows: rows ?? ""))
        if rows == nil || !hasEar {
            job.sounds.append(
                SoundSource(
                    id: name, host: record.host, path: media, timing: rows.map { .frames(rows: $0) } ?? .none))
        }
    }

    private mutating func leave(_ name: String, _ why: String) { job.leftOut.append("stream '\(name)': \(why)") }

    // MARK: The primary stream

    private mutating func choosePrimary(_ wanted: String?, _ merged: String?) throws {
        var index: Int?
        if let wanted {
            index =
                job.streams.firstIndex { $0.id == wanted } ?? job.streams.firstIndex { $0.id.hasSuffix(".\(wanted)") }
            guard index != nil else {
                let names = job.streams.map(\.id).joined(separator: ", ")
                throw Unusable("there is no stream '\(wanted)' to be the primary one; there are \(names)")
            }
        } else if let merged, let request = Self.request(merged) {
            index = job.streams.firstIndex { $0.id == request }
        }
        let leader = records.first { $0.role == HostRole.leader.rawValue }?.host ?? records.compactMap(\.leader).first
        let isVideo = { (stream: AlignmentStream) in !stream.isSensor && !stream.rows.isEmpty }
        let chosen =
            index ?? job.streams.firstIndex { isVideo($0) && $0.host == leader }
            ?? job.streams.firstIndex(where: isVideo) ?? job.streams.firstIndex { !$0.rows.isEmpty } ?? 0
        job.streams[chosen].isPrimary = true
    }

    /// The primary stream of a merged episode's request.
    private static func request(_ folder: String) -> String? {
        guard let bytes = try? Files.read("\(folder)/sync_request.json", limit: 64 << 20),
            let request = try? JSONText.decode(SyncRequest.self, from: bytes)
        else { return nil }
        return request.hosts.flatMap(\.streams).first { $0.isPrimary == true }?.id
    }
}
