internal import Episode
internal import Platform
package import Protocol
internal import Timing

/// All takes of this host: their records in memory and on the disk, and the repair of those that a dead program left.
///
/// Concurrency: an actor on an event loop of its own, which may block on the disk.
package actor TakeStore {
    /// A snapshot names no more episodes than this; the newest ones.
    private static let mostSummaries = 2_000

    private let home: AgentHome
    private let host: HostID
    private let loop = EventLoop(name: "takes")
    private var records: [UniqueID: TakeRecord] = [:]
    private static let log = Log("takes")

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(home: AgentHome, host: HostID) {
        self.home = home
        self.host = host
    }

    /// Reads the records; one that can't be read is set aside and named.
    package func load() throws {
        try home.make()
        for name in try Files.list(home.takes) where name.hasSuffix(".json") {
            let path = "\(home.takes)/\(name)"
            do {
                let record = try JSONText.decode(TakeRecord.self, from: try Files.read(path, limit: 4 << 20))
                records[record.plan.take] = record
            } catch {
                Self.log.error("\(path) can't be read and is set aside as .broken: \(error)")
                try Files.rename(path, to: "\(path).broken")
            }
        }
    }

    package func record(_ take: UniqueID) -> TakeRecord? { records[take] }

    package func record(_ episode: EpisodeID) -> TakeRecord? {
        records.values.first { $0.plan.episode == episode && $0.progress != .aborted }
    }

    /// Keeps a record and brings it to the disk.
    package func save(_ record: TakeRecord) throws {
        records[record.plan.take] = record
        try AtomicFile.write(try JSONText.encodePretty(record), to: path(record.plan.take))
    }

    /// Changes a record that is there; nothing happens when it isn't.
    package func update(_ take: UniqueID, _ change: @Sendable (inout TakeRecord) -> Void) throws {
        guard var record = records[take] else { return }
        change(&record)
        try save(record)
    }

    /// A take that left nothing needs no record.
    package func remove(_ take: UniqueID) throws {
        records[take] = nil
        try Files.remove(path(take))
    }

    /// The newest episodes first.
    package var summaries: [EpisodeSummary] {
        Array(records.values.compactMap(\.summary).sorted { $0.episode > $1.episode }.prefix(Self.mostSummaries))
    }

    private func path(_ take: UniqueID) -> String { "\(home.takes)/\(take).json" }

    // MARK: Recovery

    /// Repairs what a program that died left: episodes in the middle of a take, with and without a record.
    ///
    /// - Returns: one sentence for each episode that was touched.
    package func recover() throws -> [String] {
        var sentences: [String] = []
        for record in records.values.sorted(by: { $0.plan.episode < $1.plan.episode }) {
            switch record.progress {
            case .committed, .recording: sentences.append(try recover(record))
            case .finished, .recovered, .ingested, .aborted: continue
            }
        }
        for name in try Files.list(home.episodes) {
            guard let episode = EpisodeID(rawValue: name), self.record(episode) == nil else { continue }
            sentences += try adopt(episode)
        }
        return sentences
    }

    private func recover(_ record: TakeRecord) throws -> String {
        var record = record
        let episode = record.plan.episode
        let folder = home.episode(episode)
        guard Files.exists("\(folder)/\(EpisodeLayout.syncPoint)") else {
            // T0 had not come: what is there was never a take.
            try Files.removeTree(folder)
            try remove(record.plan.take)
            return "\(episode): the program died before it began; nothing was recorded"
        }
        let report = try EpisodeRecovery.recover(folder: folder, host: host)
        record.progress = .recovered
        record.bytes = Self.bytes(in: folder)
        // The manifest is whole when the program died right behind it.
        let manifest = try report?.manifest ?? HostManifest.read("\(folder)/\(EpisodeLayout.manifest)")
        if manifest.status == .finished { record.progress = .finished }
        record.report = Self.report(of: manifest, record)
        try save(record)
        return Self.sentence(episode, report)
    }

    /// An episode whose record is lost gets one from its manifest.
    private func adopt(_ episode: EpisodeID) throws -> [String] {
        let folder = home.episode(episode)
        guard Files.isFolder(folder) else { return [] }
        let report = try EpisodeRecovery.recover(folder: folder, host: host)
        let manifest = try report?.manifest ?? HostManifest.read("\(folder)/\(EpisodeLayout.manifest)")
        let plan = TakePlan(
            take: manifest.take ?? .random(), session: manifest.session ?? SessionID(unchecked: "recovered"),
            episode: episode, task: manifest.task ?? "", participant: manifest.participant ?? "", role: manifest.role,
            leader: manifest.leader ?? manifest.host, chirp: .off, policy: .warn, reserveBytes: 0,
            startTimeout: .zero, armTimeout: .zero)
        var record = TakeRecord(
            plan: plan, commit: nil, progress: manifest.status == .finished ? .finished : .recovered)
        record.bytes = Self.bytes(in: folder)
        record.report = Self.report(of: manifest, record)
        try save(record)
        return [Self.sentence(episode, report)]
    }

    private static func sentence(_ episode: EpisodeID, _ report: EpisodeRecovery.Report?) -> String {
        guard let report else { return "\(episode): it was whole" }
        let details = report.sentences.isEmpty ? "nothing was torn" : report.sentences.joined(separator: "; ")
        return "\(episode): repaired: \(details)"
    }

    private static func report(of manifest: HostManifest, _ record: TakeRecord) -> StopReport {
        StopReport(
            take: record.plan.take, episode: record.plan.episode,
            streams: manifest.streams.map { StreamStatus($0, hasEnded: true) },
            reason: manifest.stopReason ?? "recovered", errors: Array(manifest.errors.prefix(100)))
    }

    /// All bytes of the files in a folder.
    static func bytes(in folder: String) -> Int64 {
        ((try? Files.list(folder)) ?? []).reduce(0) { $0 + (Files.size("\(folder)/\($1)") ?? 0) }
    }
}

extension StreamStatus {
    /// From what the manifest says of a stream.
    init(_ entry: ManifestStream, hasEnded: Bool) {
        self.init(
            id: entry.id, kind: entry.kind,
            state: entry.status == .failed ? .failed : hasEnded ? .stopped : .streaming, samples: entry.frameCount,
            rate: entry.rate ?? 0, nominalRate: entry.description?.nominalRate, dropped: entry.dropped,
            bytes: entry.bytes, first: entry.first, last: entry.last, error: entry.errors.first)
    }
}
