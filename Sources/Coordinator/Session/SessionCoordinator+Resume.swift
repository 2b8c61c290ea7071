internal import Platform
package import Protocol
internal import Timing

/// Why a take can't be gone on with.
package enum ResumeError: Error, Sendable, Hashable, CustomStringConvertible {
    case unknown(EpisodeID)
    case stillRecording(EpisodeID, on: [HostID])
    case notRunning(EpisodeID)
    case sealed(EpisodeID)
    case aborted(EpisodeID)

    package var description: String {
        switch self {
        case .unknown(let episode):
            "\(episode): no journal here and no host that is there knows it; 'downbeat episodes' lists what is known"
        case .stillRecording(let episode, let hosts):
            "\(episode): it is still being recorded on \(hosts.map(\.rawValue).joined(separator: ", ")); end it with "
                + "'downbeat stop'"
        case .notRunning(let episode): "\(episode): no host that is there records it now"
        case .sealed(let episode): "\(episode): it is home and sealed already"
        case .aborted(let episode): "\(episode): it was called off, and nothing of it was kept"
        }
    }
}

// Taking over what another process began.
extension SessionCoordinator {
    /// The take of an episode: the journal's record, or what the hosts that are there say.
    package func takeRecord(of episode: EpisodeID) async throws -> TakeRecord {
        let journal = journal
        if let record = try await store.run({ journal.record(of: episode) }) { return record }
        guard let record = TakeRecord(adopting: episode, from: snapshots()) else { throw ResumeError.unknown(episode) }
        return record
    }

    /// Brings the files of a finished take home and seals it.
    ///
    /// - Throws: `ResumeError`.
    package func ingest(_ episode: EpisodeID) async throws -> TakeReport {
        var record = try await takeRecord(of: episode)
        let running = running(record)
        guard running.isEmpty else { throw ResumeError.stillRecording(episode, on: running) }
        if record.phase == .aborted { throw ResumeError.aborted(episode) }
        if record.phase == .sealed {
            // A sealed take is ingested again only for the clips that were still on cameras.
            let hosts = ClipsAtHome.waiting(in: folder(record.settings))
            guard !hosts.isEmpty else { throw ResumeError.sealed(episode) }
            record.phase = .ingesting
            for index in record.hosts.indices where hosts.contains(record.hosts[index].host) {
                record.hosts[index].phase = .finished
            }
        }
        let resumed = record
        let machine = TakeMachine(resuming: resumed, ingests: true, now: HostClock.rigNow)
        return await perform(machine) { coordinator in
            coordinator.feedSnapshots(resumed)
            // Nothing is running, so nobody has to be waited for.
            coordinator.beginIngestOfWhatIsThere()
        }
    }

    /// Ends a take that runs on hosts that are there.
    ///
    /// - Throws: `ResumeError`.
    package func stop(_ episode: EpisodeID, ingests: Bool) async throws -> TakeReport {
        let record = try await takeRecord(of: episode)
        guard !running(record).isEmpty else { throw ResumeError.notRunning(episode) }
        let machine = TakeMachine(resuming: record, ingests: ingests, now: HostClock.rigNow)
        return await perform(machine) { coordinator in
            coordinator.feedSnapshots(record)
            coordinator.feed(.stopRequested("operator"))
        }
    }

    /// The episodes that hosts record now, or have promised to begin.
    package func runningEpisodes() -> [EpisodeID] {
        Set(snapshots().values.compactMap { $0.takeUnderWay == nil ? nil : $0.status.episode }).sorted()
    }

    private func running(_ record: TakeRecord) -> [HostID] {
        snapshots().filter { $0.value.takeUnderWay == record.settings.take }.map(\.key).sorted()
    }

    private func feedSnapshots(_ record: TakeRecord) {
        for (host, snapshot) in snapshots().sorted(by: { $0.key < $1.key }) where record[host] != nil {
            feed(.returned(host, snapshot))
        }
    }

    private func beginIngestOfWhatIsThere() {
        guard var machine else { return }
        let actions = machine.resumeIngest(now: HostClock.rigNow)
        self.machine = machine
        enqueue(actions)
    }
}

extension TakeRecord {
    /// A take of which there is no journal: what the hosts know of an episode is taken for true.
    ///
    /// Nil when no host knows it.
    package init?(adopting episode: EpisodeID, from snapshots: [HostID: HostSnapshot]) {
        let known = snapshots.compactMap { host, snapshot in
            snapshot.episodes.first { $0.episode == episode }.map { (host, $0, snapshot) }
        }.sorted { $0.0 < $1.0 }
        guard let (first, summary, _) = known.first else { return nil }
        let plan = known.lazy.compactMap { $0.2.plan }.first { $0.episode == episode }
        self.init(
            settings: TakeSettings(
                take: summary.take, session: summary.session, episode: episode, task: plan?.task ?? "",
                participant: plan?.participant ?? "", hosts: known.map(\.0), leader: plan?.leader ?? first,
                chirp: plan?.chirp ?? .off, chirpSpec: plan?.chirpSpec, policy: plan?.policy ?? .warn))
        phase = .recording
        for index in hosts.indices {
            hosts[index].hasCommitted = true
            hosts[index].phase = .committed
        }
    }
}
