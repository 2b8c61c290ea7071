internal import CLinux
internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization

/// The finished episodes of this host, as a coordinator fetches them: lists with hashes, and pieces of files.
///
/// A path from the network never leaves its episode's folder, and no symbolic link is followed.
///
/// Concurrency: hashing and reading have a thread each, so that a large hash doesn't hold up the pieces.
final class EpisodeArchive: Sendable {
    private struct Known: Sendable {
        let size: Int64
        let modified: Int64
        let sha256: String
    }

    /// Hashes that are kept; a thousand episodes have fewer files.
    private static let mostKnown = 16_384
    private static let depth = 8

    private let home: AgentHome
    private let host: HostID
    private let hashing = EventLoop(name: "hash")
    private let reading = EventLoop(name: "bulk")
    private let known = Mutex<[String: Known]>([:])

    init(home: AgentHome, host: HostID) {
        self.home = home
        self.host = host
    }

    /// Each regular file of an episode with its hash, sorted by path.
    func list(_ episode: EpisodeID) async throws -> [FileEntry] {
        try await hashing.run { [self] in
            let folder = home.episode(episode)
            guard Files.isFolder(folder) else { throw notFound(episode) }
            return try Self.files(in: folder, below: "", depth: Self.depth).map { path in
                try entry(path, folder: folder)
            }
        }
    }

    private static func files(in folder: String, below prefix: String, depth: Int) throws -> [String] {
        var paths: [String] = []
        for name in try Files.list(folder) where !name.hasSuffix(".part") {
            var status = stat()
            let path = "\(folder)/\(name)"
            guard lstat(path, &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG: paths.append("\(prefix)\(name)")
            case S_IFDIR where depth > 0:
                paths += try files(in: path, below: "\(prefix)\(name)/", depth: depth - 1)
            default: continue
            }
        }
        return paths.sorted()
    }

    /// A file is hashed again only when its size or its time have changed.
    private func entry(_ path: String, folder: String) throws -> FileEntry {
        let whole = "\(folder)/\(path)"
        guard let size = Files.size(whole), let modified = Files.modificationTime(whole) else {
            throw Refusal(.notFound, "host \(host): \(path) is gone")
        }
        if let known = known.withLock({ $0[whole] }), known.size == size, known.modified == modified {
            return FileEntry(path: path, size: size, sha256: known.sha256, mtimeNanoseconds: modified)
        }
        let hash = try SHA256.ofFile(whole)
        known.withLock { known in
            if known.count >= Self.mostKnown { known = [:] }
            known[whole] = Known(size: size, modified: modified, sha256: hash)
        }
        return FileEntry(path: path, size: size, sha256: hash, mtimeNanoseconds: modified)
    }

    /// Bytes of one file; fewer than asked for only at its end.
    func chunk(_ request: ChunkRequest) async throws -> [UInt8] {
        guard FilePath.staysInside(request.path) else {
            throw Refusal(.malformed, "host \(host): '\(request.path.prefix(80))' is no path inside an episode")
        }
        guard request.offset >= 0, (1...MessageCodec.maximumAttachment).contains(request.length) else {
            throw Refusal(
                .malformed,
                "host \(host): \(request.length) bytes at \(request.offset) can't be sent; legal are 1 to "
                    + "\(MessageCodec.maximumAttachment) bytes at 0 or more")
        }
        return try await reading.run { [self] in try read(request) }
    }

    private func read(_ request: ChunkRequest) throws -> [UInt8] {
        let folder = home.episode(request.episode)
        guard Files.isFolder(folder) else { throw notFound(request.episode) }
        let descriptor: Int32
        do { descriptor = try Self.open(request.path, in: folder) } catch {
            throw Refusal(.notFound, "host \(host): \(request.episode)/\(request.path): \(error)")
        }
        let file = FileDescriptor(owning: descriptor)
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Refusal(.notFound, "host \(host): \(request.episode)/\(request.path) is no file")
        }
        let rest = Int64(status.st_size) - request.offset
        guard rest > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: Int(min(rest, Int64(request.length))))
        var done = 0
        while done < bytes.count {
            let start = done
            let got = try throwingErrno {
                bytes.withUnsafeMutableBytes { buffer in
                    pread(
                        file.rawValue, buffer.baseAddress?.advanced(by: start), buffer.count - start,
                        off_t(request.offset) + off_t(start))
                }
            }
            if got == 0 { break }
            done += got
        }
        return Array(bytes.prefix(done))
    }

    /// Opens component by component, so that no symbolic link leads out at any of them; the caller closes it.
    ///
    /// The corresponding C function is `openat` with `O_NOFOLLOW`.
    private static func open(_ path: String, in folder: String) throws(Errno) -> Int32 {
        let components = path.split(separator: "/").map(String.init)
        var current = try throwingErrno { Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        for (index, component) in components.enumerated() {
            let isLast = index == components.count - 1
            let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (isLast ? 0 : O_DIRECTORY)
            let parent = current
            defer { close(parent) }
            current = try throwingErrno { openat(parent, component, flags) }
        }
        return current
    }

    private func notFound(_ episode: EpisodeID) -> Refusal {
        Refusal(.notFound, "host \(host) has no episode \(episode)")
    }
}
