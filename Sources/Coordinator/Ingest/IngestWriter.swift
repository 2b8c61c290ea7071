internal import Glibc
internal import Platform
internal import Protocol

/// Writes the files of one host at home: first as a part, and under its name only when its hash is right.
///
/// Concurrency: an actor on its own thread, where the disk may block and the bytes are hashed.
actor IngestWriter {
    private let loop = EventLoop(name: "ingest")
    private let folder: String
    private let parts: String
    private var file: FileDescriptor?
    private var hash: SHA256?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The files go below `folder`; their parts below `parts`, on the same file system.
    init(folder: String, parts: String) {
        self.folder = folder
        self.parts = parts
    }

    /// Makes the folders, and says how many bytes of the list aren't home yet.
    func prepare(_ files: [FileEntry]) throws -> (missing: [FileEntry], bytes: Int64) {
        try Files.makeFolder(folder)
        try Files.makeFolder(parts)
        var missing: [FileEntry] = []
        var bytes: Int64 = 0
        for entry in files where try !isHome(entry) {
            missing.append(entry)
            bytes += max(0, entry.size - min(entry.size, Files.size(part(entry)) ?? 0))
        }
        return (missing, bytes)
    }

    /// A clip that has come since isn't waited for any more.
    func forgetClips(besides files: [FileEntry]) throws {
        let listed = Set(files.map(\.path))
        for name in try Files.list(folder) where name.contains(".pending.") && name.hasSuffix(".json") {
            if !listed.contains(name) { try Files.remove("\(folder)/\(name)") }
        }
    }

    func makeSpace(_ bytes: Int64, _ ledger: SpaceLedger) throws { try ledger.promise(bytes, at: folder) }

    /// Whether the file is here with the right content; what is here with another content is removed.
    private func isHome(_ entry: FileEntry) throws -> Bool {
        let path = "\(folder)/\(entry.path)"
        guard let size = Files.size(path) else { return false }
        if size == entry.size, try SHA256.ofFile(path) == entry.sha256 { return true }
        try Files.remove(path)
        return false
    }

    /// Opens the part of a file.
    ///
    /// - Returns: how many bytes it has already; they are hashed and needn't be sent again.
    func open(_ entry: FileEntry, fresh: Bool) throws -> Int64 {
        let path = part(entry)
        try Files.makeFolder(FilePath.parent(of: path))
        if fresh || (Files.size(path) ?? 0) > entry.size { try Files.remove(path) }
        let file = try FileDescriptor(path: path, flags: O_RDWR | O_CREAT)
        var hash = SHA256()
        var count: Int64 = 0
        do {
            while true {
                let bytes = try file.read(upTo: 1 << 20)
                if bytes.isEmpty { break }
                hash.update(bytes)
                count += Int64(bytes.count)
            }
        } catch {
            throw SystemError(error, "reading \(path)")
        }
        self.file = consume file
        self.hash = consume hash
        return count
    }

    func append(_ bytes: [UInt8], _ entry: FileEntry) throws {
        do { try file?.writeAll(bytes) } catch { throw SystemError(error, "writing \(part(entry))") }
        hash?.update(bytes)
    }

    /// Compares the hash, and gives the file its name; false when the content is wrong.
    func finish(_ entry: FileEntry) throws -> Bool {
        guard let hash = self.hash.take() else { return false }
        let isRight = hash.finish() == entry.sha256
        if isRight {
            do { try file?.synchronize() } catch { throw SystemError(error, "fsync of \(part(entry))") }
        }
        file = nil
        guard isRight else { return false }
        let path = "\(folder)/\(entry.path)"
        try Files.makeFolder(FilePath.parent(of: path))
        try Files.rename(part(entry), to: path)
        try AtomicFile.synchronizeFolder(of: path)
        return true
    }

    /// Lets go of the open part; its bytes stay for the next time.
    func close() {
        file = nil
        hash = nil
    }

    /// Removes what is left of the parts' folders.
    func clean() { try? Files.removeTree(parts) }

    private func part(_ entry: FileEntry) -> String { "\(parts)/\(entry.path).part" }
}
