internal import Alignment
internal import Platform
internal import Protocol

/// Turns the fields and file names of an upload into a job; both published shapes and our additional parts.
///
/// SyncField's README sends sensor rows as `timestamp_files`, its viewer sends them as `files`: a file's ending decides,
/// not the name of its part.
struct UploadForm {
    /// Fields that a client may send; others are ignored.
    static let fields = [
        "stream_ids", "host_ids", "primary_id", "confidence_threshold", "reencode", "aggregation", "sync_request",
        "sha256", "upload_key", "episode",
    ]
    /// The part of each group of files, and the folder it goes to.
    static let folders = [
        "files": "data", "timestamp_files": "timestamps", "manifest": "manifest", "clock_sync": "clock",
        "sync_points": "sync_points",
    ]

    var values: [String: String]
    /// Names by folder.
    var files: [String: [String]]

    func job() throws(RequestProblem) -> SyncJob {
        if let aggregation = values["aggregation"], aggregation != "nearest" {
            throw .invalid("aggregation '\(aggregation.prefix(40))' isn't known here; legal is 'nearest'")
        }
        var job = SyncJob(streams: [])
        if let text = values["confidence_threshold"] {
            guard let threshold = Double(text), (0...1).contains(threshold) else {
                throw .invalid("confidence_threshold '\(text.prefix(40))' isn't a number from 0 to 1")
            }
            job.confidenceThreshold = threshold
        }
        let rows = Set(files["timestamps"] ?? [])
        let media = files["data"] ?? []
        for entry in try entries() {
            let names = ["\(entry.id).timestamps.jsonl", "\(entry.id).jsonl"]
            let own = media.first { $0 == entry.id || UploadForm.stem($0) == entry.id }
            job.streams.append(
                SyncJob.Stream(
                    id: entry.id, host: entry.host, media: own.map { "input/data/\($0)" },
                    rows: names.first(where: rows.contains).map { "input/timestamps/\($0)" } ?? "",
                    isPrimary: entry.isPrimary, isSensor: own == nil))
        }
        try job.checkShape()
        for stream in job.streams where stream.rows.isEmpty {
            throw .invalid(
                "stream '\(stream.id)' of host '\(stream.host)' has no time stamps: send \(stream.id).timestamps.jsonl "
                    + "(or \(stream.id).jsonl for a sensor) under timestamp_files")
        }
        job.clockSeries = files["clock"]?.first.map { "input/clock/\($0)" }
        job.manifest = files["manifest"]?.first.map { "input/manifest/\($0)" }
        job.syncPoints = (files["sync_points"] ?? []).map { "input/sync_points/\($0)" }
        return job
    }

    private func entries() throws(RequestProblem) -> [SyncRequestBody.Entry] {
        if let text = values["sync_request"] {
            // The exact form: ids with commas are legal in it.
            let body: JSONValue
            do { body = try JSONText.decode(JSONValue.self, from: Array(text.utf8)) } catch {
                throw RequestProblem(400, "the part sync_request isn't JSON: \(error)")
            }
            return try SyncRequestBody.entries(body)
        }
        guard let list = values["stream_ids"], !list.isEmpty else {
            throw .invalid("stream_ids is missing; send the ids of the streams, with commas between them")
        }
        let ids = UploadForm.list(list)
        var hosts = [String](repeating: "local_host", count: ids.count)
        if let names = values["host_ids"] {
            hosts = UploadForm.list(names)
            guard hosts.count == ids.count else {
                throw .invalid(
                    "stream_ids has \(ids.count) entries and host_ids \(hosts.count); send one host for each stream, in "
                        + "the same order")
            }
        }
        guard let primary = values["primary_id"] else {
            throw .invalid("primary_id is missing; name the stream that the others are aligned to")
        }
        guard ids.contains(primary) else {
            throw .invalid(
                "primary_id '\(primary.prefix(80))' isn't one of stream_ids (\(list.prefix(400))); name one of them")
        }
        return zip(ids, hosts).map { id, host in
            SyncRequestBody.Entry(id: id, host: host, path: nil, isPrimary: id == primary, isSensor: false)
        }
    }

    private static func list(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { item in
            var item = item
            while item.first == " " { item.removeFirst() }
            while item.last == " " { item.removeLast() }
            return String(item)
        }
    }

    /// The folder that a file goes to: rows by their ending, wherever they were sent.
    static func folder(part: String, name: String) -> String? {
        guard let folder = folders[part] else { return nil }
        guard folder == "data" || folder == "timestamps" else { return folder }
        return name.hasSuffix(".jsonl") ? "timestamps" : "data"
    }

    /// A name without its last ending.
    private static func stem(_ name: String) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return name }
        return String(name[..<dot])
    }
}
