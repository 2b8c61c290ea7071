internal import Alignment
package import Episode
internal import Platform
internal import Protocol
internal import Timing

/// What sealing made.
package struct SealResult: Sendable {
    package var verdict: EpisodeVerdict
    /// Whether there is something that a sync server could align.
    package var hasRequest: Bool
    package var bytes: Int64
    package var files: Int
}

/// Makes a whole episode of what came home: clock series, merge, check, verdict; the seal is the last thing written.
///
/// Its operation blocks: call it on an event loop's thread.
package struct EpisodeSealer: Sendable {
    /// The value of `state` in the merged manifest of a sealed episode; only such a one is uploaded.
    package static let sealedState = "sealed"

    private let folder: String
    private let record: TakeRecord
    private let journal: TakeJournal

    package init(folder: String, record: TakeRecord, journal: TakeJournal) {
        self.folder = folder
        self.record = record
        self.journal = journal
    }

    /// - Throws: `SystemError`, `EpisodeError`.
    package func seal() throws -> SealResult {
        let clock = "\(folder)/clock_sync.jsonl"
        let measured = journal.clockPath(record.settings.take)
        if let size = Files.size(measured), size > 0 {
            // The measurements as they are, and the clocks computed of them from both sides of each instant.
            try AtomicFile.write(try Files.read(measured, limit: 1 << 30), to: "\(folder)/\(ClockExchangeLog.name)")
            let rows = ClockSeriesMaker.rows(
                try ClockExchangeLog.read(measured), start: record.start, stop: record.stop)
            try AtomicFile.write(try rows.flatMap { try JSONText.encode($0) + [0x0A] }, to: clock)
        }
        let sealed = try EpisodeSealer.seal(
            folder, plan(), primary: record.settings.primary, spec: record.settings.startSpec,
            speakerDistances: record.settings.speakerDistances ?? [:]
        ) { figures in
            figures.policy = record.settings.policy
            figures.chirp = record.settings.chirp
            for index in figures.hosts.indices {
                guard let host = HostID(rawValue: figures.hosts[index].id) else { continue }
                figures.hosts[index].startBound = record[host]?.bound
            }
        }
        try? Files.remove(measured)
        return sealed
    }

    private static func seal(
        _ folder: String, _ plan: MergePlan, primary: String?, spec: ChirpSpec?,
        speakerDistances: [HostID: Double], _ complete: (inout VerdictFigures) -> Void
    ) throws -> SealResult {
        // What is being made anew isn't sealed meanwhile.
        try Files.remove("\(folder)/verdict.json")
        let result = try EpisodeMerger.merge(folder: folder, plan: plan)
        if let primary { try choose(primary, result.request, folder) }
        let report = try EpisodeVerifier.verify(folder: folder)
        var figures = VerdictFigures(result.manifest, aggregated: result.aggregated, check: report)
        complete(&figures)
        let witness = TakeWitness(
            records: result.records, clocks: plan.clocks, spec: spec ?? self.spec(result.records),
            speakerDistances: speakerDistances)
        // A take isn't lost for what couldn't be listened to.
        do { figures.add(try witness.testify()) } catch {
            Log("seal").warning("\(folder) wasn't listened to: \(error)")
        }
        let verdict = VerdictRules().judge(figures)
        try VerdictReport.write(verdict, to: "\(folder)/report.html")
        try verdict.write(to: "\(folder)/verdict.json")
        try markSealed(folder)
        return SealResult(
            verdict: verdict, hasRequest: result.request != nil, bytes: report.bytes, files: report.files)
    }

    /// The start chirp that the hosts say was played.
    private static func spec(_ records: [EpisodeRecord]) -> ChirpSpec? {
        records.flatMap(\.chirps).first { $0.moment == .start && $0.emitted != nil }?.spec
    }

    /// Makes the configured stream the primary one, if it is in the request.
    private static func choose(_ primary: String, _ request: SyncRequest?, _ folder: String) throws {
        guard var request, request.hosts.contains(where: { $0.streams.contains { $0.id == primary } }) else { return }
        for host in request.hosts.indices {
            for stream in request.hosts[host].streams.indices {
                let isPrimary = request.hosts[host].streams[stream].id == primary
                request.hosts[host].streams[stream].isPrimary = isPrimary ? true : nil
            }
        }
        try request.write(to: "\(folder)/sync_request.json")
    }

    private func plan() throws -> MergePlan {
        var plan = EpisodeSealer.plan(
            session: record.settings.session.rawValue, episode: record.settings.episode.rawValue, folder: folder)
        plan.leader = record.settings.leader
        plan.task = record.settings.task.isEmpty ? nil : record.settings.task
        plan.participant = record.settings.participant.isEmpty ? nil : record.settings.participant
        plan.start = record.start
        plan.stop = record.stop ?? Self.endOfHosts(plan.clocks, folder)
        plan.startWall = record.startWall
        plan.clockClaim = ClockClaim.now
        for host in record.hosts {
            if let files = host.files { plan.files[host.host] = files.files }
            switch host.phase {
            case .ingested, .armed, .arming, .aborting, .aborted, .committing: break
            case .absent: plan.failures[host.host] = (.missing, host.error ?? "it was absent")
            case .left:
                let status: AggregatedManifest.Status = host.hasCommitted ? .unreachable : .missing
                plan.failures[host.host] = (status, host.error ?? "it left the take")
            case .committed, .stopping, .finished, .ingesting:
                plan.failures[host.host] = (.unreachable, host.error ?? "its files aren't home")
            }
        }
        return plan
    }

    /// T1 of a take that nobody stopped: the latest of the ends that the hosts wrote down, on rig time.
    ///
    /// Each host ended by itself, at the limit that it was given with its commit; one that ended before the others shows
    /// it by the latest. Nil when no end is known, or no clock that maps it.
    static func endOfHosts(_ clocks: [HostID: ClockSeries], _ folder: String) -> Timestamp<RigTime>? {
        clocks.compactMap { host, clock in
            (try? HostManifest.read("\(folder)/hosts/\(host)/manifest.json"))?.stop.flatMap { clock.rig($0)?.time }
        }.max()
    }

    /// A plan of what is known from the folder alone.
    static func plan(session: String, episode: String, folder: String) -> MergePlan {
        var plan = MergePlan(session: session, episode: episode)
        let clock = "\(folder)/clock_sync.jsonl"
        if Files.size(clock) != nil, let series = try? ClockSyncLog.read(clock) {
            for (name, one) in series { if let host = HostID(rawValue: name) { plan.clocks[host] = one } }
        }
        let exchanges = "\(folder)/\(ClockExchangeLog.name)"
        if Files.size(exchanges) != nil, let events = try? ClockExchangeLog.events(exchanges) {
            for (name, all) in events { if let host = HostID(rawValue: name) { plan.clockEvents[host] = all } }
        }
        return plan
    }

    /// Merges and judges again what is at home, without the hosts.
    package static func mergeAgain(folder: String, record: TakeRecord?, journal: TakeJournal) throws -> SealResult {
        if let record { return try EpisodeSealer(folder: folder, record: record, journal: journal).seal() }
        var plan = plan(
            session: FilePath.name(of: FilePath.parent(of: folder)), episode: FilePath.name(of: folder), folder: folder)
        if let old = try? MergedManifest.read("\(folder)/manifest.json") {
            (plan.start, plan.stop) = (old.start, old.stop)
            plan.task = old.task
            plan.participant = old.participant
            plan.leader = old.leader.flatMap { HostID(rawValue: $0) }
        }
        return try seal(folder, plan, primary: nil, spec: nil, speakerDistances: [:]) { _ in }
    }

    /// The last write: where it is, all the rest is whole and on the disk.
    private static func markSealed(_ folder: String) throws {
        let path = "\(folder)/manifest.json"
        var manifest = try JSONText.decode([String: JSONValue].self, from: try Files.read(path, limit: 256 << 20))
        manifest["state"] = .string(sealedState)
        try AtomicFile.write(JSONText.encodePretty(manifest), to: path)
    }
}
