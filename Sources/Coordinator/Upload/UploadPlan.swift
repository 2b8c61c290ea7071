internal import Glibc
internal import Platform
internal import Protocol
internal import Transport

/// What is sent for one episode, and how a server can be sure that it has it.
struct UploadPlan: Sendable {
    struct File: Sendable, Hashable {
        /// The part of the form.
        let part: String
        let name: String
        let path: String
        let size: Int64
        let sha256: String
    }

    struct Broken: Error, Sendable, CustomStringConvertible { let description: String }

    let episode: SealedEpisode
    let files: [File]
    /// Names exactly these bytes.
    let key: String
    private let fields: [FormPart]

    /// Reads the request and the folders, and hashes what nobody has hashed before.
    ///
    /// Blocking. A hash that the aggregated manifest has is of the bytes at their source, so it is taken: the server then
    /// proves the whole way from the capture PC.
    init(_ episode: SealedEpisode) throws {
        self.episode = episode
        let request = try UploadPlan.json("\(episode.folder)/sync_request.json")
        let streams = try UploadPlan.streams(request, episode.episode)
        let known = UploadPlan.knownHashes(episode.folder)
        var files: [File] = []
        func add(_ part: String, _ path: String, as name: String) throws {
            guard let size = Files.size(path) else { return }
            let known = Inode(path).flatMap { known[$0] }.flatMap { $0.size == size ? $0.sha256 : nil }
            files.append(
                File(part: part, name: name, path: path, size: size, sha256: try known ?? SHA256.ofFile(path)))
        }
        for (folder, part) in [("data", "files"), ("timestamps", "timestamp_files")] {
            let base = "\(episode.folder)/\(folder)"
            for name in Files.isFolder(base) ? try Files.list(base) : [] where !name.hasPrefix(".") {
                let isRows = name.hasSuffix(".jsonl")
                if isRows == (folder == "timestamps") { try add(part, "\(base)/\(name)", as: name) }
            }
        }
        try add("manifest", "\(episode.folder)/manifest.json", as: "manifest.json")
        if !files.contains(where: { $0.name == "clock_sync.jsonl" }) {
            try add("clock_sync", "\(episode.folder)/clock_sync.jsonl", as: "clock_sync.jsonl")
        }
        let hosts = "\(episode.folder)/hosts"
        for host in Files.isFolder(hosts) ? try Files.list(hosts) : [] {
            try add("sync_points", "\(hosts)/\(host)/sync_point.json", as: "\(host).sync_point.json")
        }
        self.files = files
        let hashes = JSONValue.object(Dictionary(files.map { ($0.name, .string($0.sha256)) }) { a, _ in a })
        let texts =
            [String(decoding: try JSONText.encode(request), as: UTF8.self)]
            + files.map { "\($0.part)/\($0.name) \($0.sha256)" }
        key = SHA256.of(Array(texts.joined(separator: "\n").utf8))
        fields = [
            .field(name: "stream_ids", value: streams.map(\.id).joined(separator: ",")),
            .field(name: "host_ids", value: streams.map(\.host).joined(separator: ",")),
            .field(name: "primary_id", value: streams.first(where: \.isPrimary)?.id ?? ""),
            .field(name: "sync_request", value: texts[0]), .field(name: "episode", value: episode.episode),
            .field(name: "upload_key", value: key),
            .field(name: "sha256", value: String(decoding: try JSONText.encode(hashes), as: UTF8.self)),
        ]
    }

    /// The fields first, so that a server can refuse before the bytes come.
    var parts: [FormPart] { fields + files.map { .file(name: $0.part, fileName: $0.name, path: $0.path) } }

    /// Whether a job's answer shows that the server has each file with our hash.
    func isConfirmed(by answer: JSONValue) -> Bool {
        guard let reported = answer["files"]?.array else { return false }
        let has = Set(reported.map { "\($0["name"]?.string ?? "") \($0["sha256"]?.string ?? "")" })
        return files.allSatisfy { has.contains("\($0.name) \($0.sha256)") }
    }

    private static func json(_ path: String) throws -> JSONValue {
        do { return try JSONText.decode(JSONValue.self, from: try Files.read(path, limit: 256 << 20)) } catch {
            throw Broken(description: "\(path) can't be read: \(error); run 'downbeat merge' on the episode")
        }
    }

    private static func streams(_ request: JSONValue, _ episode: String) throws(Broken) -> [(
        id: String, host: String, isPrimary: Bool
    )] {
        var streams: [(id: String, host: String, isPrimary: Bool)] = []
        for host in request["hosts"]?.array ?? [] {
            for stream in host["streams"]?.array ?? [] {
                guard let id = stream["stream_id"]?.string, let name = host["host_id"]?.string else { continue }
                streams.append((id, name, stream["is_primary"]?.bool ?? false))
            }
        }
        guard !streams.isEmpty else {
            throw Broken(description: "\(episode): sync_request.json names no stream; run 'downbeat merge \(episode)'")
        }
        return streams
    }

    /// The hashes of the hosts' files, which have second names in `data/` and `timestamps/`.
    ///
    /// A file there that isn't the same one, such as an orderly copy of rows, isn't found here by its inode.
    private static func knownHashes(_ folder: String) -> [Inode: (size: Int64, sha256: String)] {
        guard let manifest = try? json("\(folder)/aggregated_manifest.json") else { return [:] }
        var hashes: [Inode: (size: Int64, sha256: String)] = [:]
        for host in manifest["hosts"]?.array ?? [] where host["status"]?.string == "ok" {
            guard let id = host["host_id"]?.string else { continue }
            for file in host["files"]?.array ?? [] {
                guard let name = file["path"]?.string, let size = file["size"]?.integer,
                    let hash = file["sha256"]?.string, hash.utf8.count == 64, FilePath.staysInside("\(id)/\(name)"),
                    let inode = Inode("\(folder)/hosts/\(id)/\(name)")
                else { continue }
                hashes[inode] = (size, hash)
            }
        }
        return hashes
    }
}

/// Which file a name stands for.
private struct Inode: Hashable {
    private let device: UInt
    private let number: UInt

    init?(_ path: String) {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        device = UInt(facts.st_dev)
        number = UInt(facts.st_ino)
    }
}
