internal import Alignment
internal import Platform

/// What a job works on, in whichever shape the request came.
struct SyncJob: Codable, Sendable, Hashable {
    typealias Stream = AlignmentStream

    /// Paths are absolute, or relative to the job's folder.
    var streams: [Stream]
    /// `clock_sync.jsonl`: the clock series of the hosts.
    var clockSeries: String?
    /// The merged `manifest.json`, with a clock mapping for each host.
    var manifest: String?
    var syncPoints: [String] = []
    var confidenceThreshold: Double = 0.4

    /// Hosts in the order in which the request names them.
    var hosts: [String] {
        var seen: Set<String> = []
        return streams.map(\.host).filter { seen.insert($0).inserted }
    }

    var primary: Stream? { streams.first(where: \.isPrimary) }

    static func resolve(_ path: String, in folder: String) -> String {
        path.hasPrefix("/") ? path : "\(folder)/\(path)"
    }

    /// Refuses what no aligner could work with; the files aren't looked at.
    func checkShape() throws(RequestProblem) {
        var seen: Set<String> = []
        for stream in streams {
            guard SyncJob.isLegalName(stream.id) else {
                throw .invalid(
                    "stream id '\(stream.id.prefix(80))' can't be a file name; use 1 to 200 bytes without '/'")
            }
            guard !stream.host.isEmpty else {
                throw .invalid("stream '\(stream.id)' has an empty host_id; name the host that recorded it")
            }
            guard seen.insert(stream.id).inserted else {
                throw .invalid(
                    "stream id '\(stream.id)' is there twice; files are matched by stream id alone, so call them "
                        + "<host_id>.<stream_id>")
            }
        }
        guard streams.count >= 2 else {
            throw .invalid(
                "\(streams.count == 1 ? "only 1 stream" : "no stream") was sent; synchronizing needs at least 2")
        }
        let primaries = streams.filter(\.isPrimary)
        guard primaries.count == 1 else {
            throw .invalid(
                primaries.isEmpty
                    ? "no stream is the primary one; set is_primary on exactly one"
                    : "\(primaries.count) streams are primary (\(primaries.map(\.id).joined(separator: ", "))); "
                        + "set is_primary on exactly one")
        }
    }

    /// The job for the aligner, with absolute paths; the sound of each video may be listened to.
    func alignment(in folder: String) -> AlignmentJob {
        var job = AlignmentJob(
            streams: streams.map { stream in
                var stream = stream
                stream.media = stream.media.map { SyncJob.resolve($0, in: folder) }
                stream.rows = SyncJob.resolve(stream.rows, in: folder)
                return stream
            })
        job.sounds = job.streams.compactMap { stream in
            stream.media.map {
                SoundSource(id: stream.id, host: stream.host, path: $0, timing: .frames(rows: stream.rows))
            }
        }
        job.clockSeries = clockSeries.map { SyncJob.resolve($0, in: folder) }
        job.manifest = manifest.map { SyncJob.resolve($0, in: folder) }
        job.syncPoints = syncPoints.map { SyncJob.resolve($0, in: folder) }
        return job
    }

    /// Reads every row once, so that the client hears at once what can't be worked with.
    func checkFiles(in folder: String) throws(RequestProblem) {
        for stream in streams {
            if let media = stream.media, Files.size(SyncJob.resolve(media, in: folder)) == nil {
                throw .invalid(
                    "stream '\(stream.id)': there is no file '\(FilePath.name(of: media))'; send it or correct the path"
                )
            }
            do throws(SampleRows.LoadError) {
                _ = try SampleRows.load(SyncJob.resolve(stream.rows, in: folder), stream: stream)
            } catch {
                throw .invalid(error.description)
            }
        }
    }

    /// One component of a path, so that it never leaves its folder, with room for our endings.
    static func isLegalName(_ name: String) -> Bool {
        name.utf8.count <= 200 && FilePath.staysInside(name) && !name.utf8.contains(UInt8(ascii: "/"))
            && name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
    }
}
