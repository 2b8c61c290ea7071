internal import Platform
package import Protocol
internal import Synchronization
internal import Timing
package import Transport

/// Brings the files of one host's episode home.
///
/// Each file comes in chunks, several of them on their way at once; what is home with the right hash, and what a part
/// holds from an earlier try, isn't sent again. Memory: `window` chunks.
package struct HostIngest: Sendable {
    package let host: HostID
    private let link: any AgentLink
    private let episode: EpisodeID
    private let folder: String
    private let parts: String
    private let ledger: SpaceLedger
    private let options: IngestOptions

    /// The files go to `<episodeFolder>/hosts/<host>/`.
    package init(
        host: HostID, link: any AgentLink, episode: EpisodeID, episodeFolder: String, ledger: SpaceLedger,
        options: IngestOptions = IngestOptions()
    ) {
        self.host = host
        self.link = link
        self.episode = episode
        folder = "\(episodeFolder)/hosts/\(host)"
        parts = "\(episodeFolder)/.parts/\(host)"
        self.ledger = ledger
        self.options = options
    }

    /// Returns the list whose files are all home, verified and durable; the agent knows it then too.
    ///
    /// - Throws: `IngestError`, `Refusal`, `LinkError`, `SystemError`, `CancellationError`.
    package func run(progress: @escaping @Sendable (IngestProgress) -> Void = { _ in }) async throws -> FileList {
        let answer = try await link.request(.ingest(IngestRequest(episode: episode)), timeout: options.listTimeout)
        guard case .fileList(let list) = answer else {
            throw IngestError.badList("the answer was '\(answer.kind.rawValue)'")
        }
        let plan = try IngestPlan(list, episode: episode)
        let writer = IngestWriter(folder: folder, parts: parts)
        let (missing, bytes) = try await writer.prepare(plan.files)
        let counter = Counter(total: plan.totalBytes, done: plan.totalBytes - missing.reduce(0) { $0 + $1.size })
        try await writer.makeSpace(bytes, ledger)
        defer { ledger.release(bytes) }
        for (index, entry) in missing.enumerated() {
            try await bring(entry, writer) { more in
                progress(counter.add(more, files: missing.count - index, file: entry.path))
            }
        }
        await writer.clean()
        try await writer.forgetClips(besides: plan.files)
        // A host that misses this keeps the word 'finished' in its list; nothing else hangs on it.
        _ = try? await link.request(.ingested(IngestRequest(episode: episode)), timeout: .seconds(5))
        return list
    }

    private func bring(_ entry: FileEntry, _ writer: IngestWriter, _ count: @escaping @Sendable (Int64) -> Void)
        async throws
    {
        for isSecond in [false, true] {
            let offset = try await writer.open(entry, fresh: isSecond)
            count(offset)
            do {
                try await transfer(entry, from: offset, writer, count)
            } catch {
                await writer.close()
                throw error
            }
            if try await writer.finish(entry) { return }
            count(-entry.size)
        }
        throw IngestError.mismatch(file: entry.path)
    }

    private func transfer(
        _ entry: FileEntry, from offset: Int64, _ writer: IngestWriter, _ count: @Sendable (Int64) -> Void
    ) async throws {
        let ahead = Int64(options.window) * Int64(options.chunk)
        try await withThrowingTaskGroup(of: (Int64, [UInt8]).self) { group in
            var next = offset
            var written = offset
            var early: [Int64: [UInt8]] = [:]
            while true {
                while next < entry.size && next - written < ahead {
                    let at = next
                    let length = Int(min(Int64(options.chunk), entry.size - at))
                    group.addTask { (at, try await fetch(entry, at, length)) }
                    next += Int64(length)
                }
                guard let (at, bytes) = try await group.next() else { break }
                early[at] = bytes
                while let bytes = early.removeValue(forKey: written) {
                    try await writer.append(bytes, entry)
                    written += Int64(bytes.count)
                    count(Int64(bytes.count))
                }
            }
        }
    }

    /// One chunk, asked for again while the host is away.
    private func fetch(_ entry: FileEntry, _ offset: Int64, _ length: Int) async throws -> [UInt8] {
        let request = ChunkRequest(episode: episode, path: entry.path, offset: offset, length: length)
        let end = HostClock.now + options.patience
        while true {
            do {
                let bytes = try await link.fetch(request, timeout: options.chunkTimeout)
                guard bytes.count == length else { throw IngestError.short(file: entry.path) }
                return bytes
            } catch let error as LinkError {
                guard case .timedOut = error, HostClock.now < end else {
                    throw IngestError.unreachable(file: entry.path, reason: error.description)
                }
            }
            try Task.checkCancellation()
        }
    }
}

/// Counts what is home of one host.
private final class Counter: Sendable {
    private let total: Int64
    private let done: Mutex<Int64>

    init(total: Int64, done: Int64) {
        self.total = total
        self.done = Mutex(done)
    }

    func add(_ bytes: Int64, files: Int, file: String) -> IngestProgress {
        let now = done.withLock { done in
            done += bytes
            return done
        }
        return IngestProgress(done: now, total: total, files: files, file: file)
    }
}
