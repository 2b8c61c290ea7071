internal import Alignment
internal import Platform
internal import Protocol

/// The folders that stand for /data and /timestamps of the original's container.
struct MountedFolders: Sendable {
    let data: String
    let timestamps: String

    /// The place on this machine of a path in the container.
    ///
    /// Legal are `/data/…`, a path relative to it, and a path that lies in the configured folder itself.
    func resolve(_ path: String, mount: String, what: String) throws(RequestProblem) -> String {
        let root = mount == "/data" ? data : timestamps
        var rest = path
        for prefix in [root, mount] where path == prefix || path.hasPrefix(prefix + "/") {
            rest = String(path.dropFirst(prefix.count))
            break
        }
        if rest.hasPrefix("/") && rest != path { rest.removeFirst() }
        while rest.hasSuffix("/") { rest.removeLast() }
        if rest.isEmpty && !path.isEmpty && path != "/" { return root }
        guard FilePath.staysInside(rest) else {
            throw .invalid(
                "\(what) '\(path.prefix(200))' doesn't lie in \(mount); give a path that begins with \(mount)/")
        }
        return "\(root)/\(rest)"
    }
}

/// Reads the JSON body of `POST /api/v1/sync`, today's shape and the first one.
struct SyncRequestBody {
    let folders: MountedFolders

    func job(_ bytes: [UInt8]) throws(RequestProblem) -> SyncJob {
        let body: JSONValue
        do { body = try JSONText.decode(JSONValue.self, from: bytes) } catch {
            throw RequestProblem(400, "the body isn't JSON: \(error)")
        }
        guard case .object = body else { throw RequestProblem(400, "the body is \(body.kindName); send an object") }
        let named = body["timestamps_dir"]?.string ?? "/timestamps"
        let folder = try folders.resolve(named, mount: "/timestamps", what: "timestamps_dir")
        guard Files.isFolder(folder) else {
            throw .invalid("timestamps_dir '\(named)' isn't there; mount it or correct the path")
        }
        var job = SyncJob(streams: [])
        for entry in try SyncRequestBody.entries(body) {
            let media: String?
            if let path = entry.path {
                media = try folders.resolve(path, mount: "/data", what: "the path of stream '\(entry.id)':")
            } else {
                media = nil
            }
            job.streams.append(
                SyncJob.Stream(
                    id: entry.id, host: entry.host, media: media, rows: "", isPrimary: entry.isPrimary,
                    isSensor: entry.isSensor || media == nil))
        }
        try job.checkShape()
        for place in job.streams.indices {
            job.streams[place].rows = try SyncRequestBody.rows(of: job.streams[place], in: folder, named: named)
        }
        job.clockSeries = try companion("clock_sync", "clock_sync.jsonl", body, folder)
        job.manifest = try companion("manifest", "manifest.json", body, folder)
        job.syncPoints = syncPoints(folder)
        try job.checkFiles(in: "/")
        return job
    }

    /// A stream as a request names it.
    struct Entry {
        var id: String
        var host: String
        var path: String?
        var isPrimary: Bool
        var isSensor: Bool
    }

    /// The streams of a body; also of the `sync_request` part of an upload.
    static func entries(_ body: JSONValue) throws(RequestProblem) -> [Entry] {
        guard let hosts = body["hosts"]?.array else {
            // The first published shape: streams at the top, one host, the first stream leads.
            guard let streams = body["streams"]?.array else {
                throw .invalid("'hosts' is missing; send hosts: [{host_id, streams: [{stream_id, path, is_primary}]}]")
            }
            var entries = try streams.enumerated().map { (pair) throws(RequestProblem) -> Entry in
                try entry(pair.element, host: "local_host", place: "streams[\(pair.offset)]")
            }
            if !entries.isEmpty && !entries.contains(where: \.isPrimary) { entries[0].isPrimary = true }
            return entries
        }
        var entries: [Entry] = []
        for (place, host) in hosts.enumerated() {
            guard let id = host["host_id"]?.string, !id.isEmpty else {
                throw .invalid("hosts[\(place)] has no host_id; name the host")
            }
            guard let streams = host["streams"]?.array else {
                throw .invalid("host '\(id)' has no list of streams; send streams: [{stream_id, …}]")
            }
            for (index, stream) in streams.enumerated() {
                entries.append(try entry(stream, host: id, place: "hosts[\(place)].streams[\(index)]"))
            }
        }
        return entries
    }

    private static func entry(_ value: JSONValue, host: String, place: String) throws(RequestProblem) -> Entry {
        guard let id = value["stream_id"]?.string, !id.isEmpty else {
            throw .invalid("\(place) has no stream_id; name the stream")
        }
        return Entry(
            id: id, host: host, path: value["path"]?.string, isPrimary: value["is_primary"]?.bool ?? false,
            isSensor: value["stream_type"]?.string == "sensor")
    }

    private static func rows(of stream: SyncJob.Stream, in folder: String, named: String) throws(RequestProblem)
        -> String
    {
        let names = ["\(stream.id).timestamps.jsonl", "\(stream.id).jsonl"]
        guard let name = names.first(where: { Files.size("\(folder)/\($0)") != nil }) else {
            throw .invalid(
                "stream '\(stream.id)' of host '\(stream.host)' has no time stamps: neither \(names[0]) nor \(names[1]) "
                    + "is in \(named); put one there")
        }
        return "\(folder)/\(name)"
    }

    /// The hosts' anchors and chirps: `sync_point.json`, and `<host>.sync_point.json` of an episode of several hosts.
    private func syncPoints(_ folder: String) -> [String] {
        let names = (try? Files.list(folder)) ?? []
        return names.filter { $0 == "sync_point.json" || $0.hasSuffix(".sync_point.json") }.map { "\(folder)/\($0)" }
    }

    /// A file that belongs to the take as a whole: named in the body, else beside the time stamps, else above them.
    ///
    /// Above them is still inside of the configured folder, or both configured folders are those of one episode.
    private func companion(_ key: String, _ name: String, _ body: JSONValue, _ folder: String) throws(RequestProblem)
        -> String?
    {
        if let path = body[key]?.string {
            let place = try folders.resolve(path, mount: "/timestamps", what: key)
            guard Files.size(place) != nil else {
                throw .invalid("\(key) '\(path)' isn't there; correct the path or leave the key out")
            }
            return place
        }
        var places = ["\(folder)/\(name)"]
        let above = FilePath.parent(of: folder)
        if folder != folders.timestamps || above == FilePath.parent(of: folders.data) {
            places.append("\(above)/\(name)")
        }
        return places.first { Files.size($0) != nil }
    }
}
