internal import Episode
internal import Platform
internal import Protocol
internal import Timing
internal import Transport

/// What a take came to.
package struct TakeReport: Sendable {
    package var outcome: TakeOutcome
    package var record: TakeRecord
    /// Nil when the episode wasn't sealed.
    package var seal: SealResult?
    package var folder: String
}

// One take, from the machine's decisions to what is really done.
extension SessionCoordinator {
    /// Makes a take with the hosts that are ready; returns when it is over.
    package func record(_ settings: TakeSettings) async -> TakeReport {
        precondition(machine == nil, "one take at a time")
        return await perform(TakeMachine(settings: settings)) {
            // What is known of the clocks first: all may be armed at once.
            for host in settings.hosts { $0.feedClock(host) }
            $0.feed(.begin(present: settings.hosts.filter { self.isReady($0) }))
        }
    }

    /// Performs a take from a machine's state, until it is over.
    func perform(_ start: TakeMachine, _ begin: @escaping (isolated SessionCoordinator) -> Void) async -> TakeReport {
        machine = start
        sealResult = nil
        clocks.rewind()
        ingestProgress = [:]
        ledger = SpaceLedger(reserveBytes: options.ingest.reserveBytes)
        for (uuid, entry) in registry.entries where settingsHave(entry.host) { registry.isInTake.insert(uuid) }
        let outcome = await withCheckedContinuation { continuation in
            takeEnd = continuation
            begin(self)
        }
        if let takeTimer { loop.cancel(takeTimer) }
        registry.isInTake = []
        let record = machine?.record ?? start.record
        machine = nil
        return TakeReport(outcome: outcome, record: record, seal: sealResult, folder: folder(record.settings))
    }

    private func settingsHave(_ host: HostID) -> Bool { machine?.record.settings.hosts.contains(host) ?? false }

    /// Ctrl-C.
    package func interrupt() { feed(.interrupted) }

    nonisolated func folder(_ settings: TakeSettings) -> String {
        "\(options.home)/sessions/\(settings.session)/\(settings.episode)"
    }

    /// Gives an event to the take, if there is one.
    func feed(_ event: TakeEvent) {
        guard machine != nil else { return }
        enqueue(machine?.handle(event, now: HostClock.rigNow) ?? [])
    }

    func enqueue(_ actions: [TakeAction]) {
        pendingActions += actions
        schedule()
        changed()
        guard !isPerforming, !pendingActions.isEmpty else { return }
        isPerforming = true
        // Unstructured, since events come from anywhere; the actions are done in order, one after the other.
        Task { await self.performPending() }
    }

    private func schedule() {
        if let takeTimer { loop.cancel(takeTimer) }
        takeTimer = machine?.nextDeadline.map { deadline in
            // Rig time is this machine's own monotonic clock.
            loop.schedule(at: Timestamp(nanoseconds: deadline.nanoseconds)) { [weak self] in
                self?.assumeIsolated { $0.feed(.tick) }
            }
        }
    }

    private func performPending() async {
        while !pendingActions.isEmpty {
            let action = pendingActions.removeFirst()
            await perform(action)
        }
        isPerforming = false
    }

    private func perform(_ action: TakeAction) async {
        guard let record = machine?.record else { return }
        let settings = record.settings
        switch action {
        case .arm(let host):
            ask(host, .arm, .arm(settings.plan(for: host)), timeout: settings.timing.startTimeout + .seconds(4))
        case .checkSound(let hosts):
            // Unstructured: the take may be called off meanwhile.
            Task {
                let presets = [settings.chirp]
                self.feed(.soundChecked(await self.checkSound(settings, hosts: hosts, presets: presets)))
            }
        case .journal: await writeJournal()
        case .commit(let host, let start, let limit): commit(host, start, limit, settings)
        case .chirp(let host, let moment, let at): chirp(host, moment, at, settings)
        case .stop(let host, let at, let reason):
            guard let mapping = clocks.mapping(of: host, at: at) else {
                return fail(host, .stop, "its clock is unknown", settings.take)
            }
            let stop = StopCommand(take: settings.take, stop: mapping.map(at), reason: reason)
            ask(host, .stop, .stop(stop), timeout: .seconds(2))
        case .abort(let host, let take, let reason):
            ask(host, .abort, .abort(TakeReference(take: take, reason: reason)), take: take, timeout: .seconds(2))
        case .ingest(let host): ingest(host, settings)
        case .cancelIngest:
            for task in ingests.values { task.cancel() }
        case .seal: await seal()
        case .note(let note): tell(note)
        case .end(let outcome):
            for task in ingests.values { task.cancel() }
            ingests = [:]
            pendingActions = []
            takeEnd?.resume(returning: outcome)
            takeEnd = nil
        }
    }

    private func commit(
        _ host: HostID, _ start: Timestamp<RigTime>, _ limit: Timestamp<RigTime>, _ settings: TakeSettings
    ) {
        guard let mapping = clocks.mapping(of: host, at: start) else {
            return fail(host, .commit, "its clock is unknown", settings.take)
        }
        let body = Commit(
            take: settings.take, start: mapping.map(start), bound: mapping.bound(at: start), limit: mapping.map(limit))
        let timeout = max(.milliseconds(50), start - HostClock.rigNow - settings.timing.commitMargin)
        ask(host, .commit, .commit(body), timeout: timeout)
    }

    private func chirp(
        _ host: HostID, _ moment: ChirpMoment, _ at: Timestamp<RigTime>, _ settings: TakeSettings
    ) {
        guard let mapping = clocks.mapping(of: host, at: at) else {
            return fail(host, .chirp, "its clock is unknown", settings.take)
        }
        let body = ChirpCommand(take: settings.take, moment: moment, at: mapping.map(at))
        ask(host, .chirp, .chirp(body), timeout: max(.zero, at - HostClock.rigNow) + .seconds(5))
    }

    private func fail(_ host: HostID, _ step: TakeStep, _ text: String, _ take: UniqueID) {
        // Not at once: the machine is in the middle of its actions.
        loop.perform { [weak self] in
            self?.assumeIsolated { $0.feed(.answered(host, take: take, .failed(step, TakeFailure(text)))) }
        }
    }

    private func ask(_ host: HostID, _ step: TakeStep, _ message: Message, take: UniqueID? = nil, timeout: Interval) {
        guard let take = take ?? machine?.record.settings.take else { return }
        guard let link = link(to: host) else { return fail(host, step, "there is no connection to it", take) }
        // Unstructured: an answer may come when the take is already somewhere else, and the machine knows what it's worth.
        Task {
            let answer: TakeAnswer
            do {
                answer = Self.answer(try await link.request(message, timeout: timeout), step)
            } catch let refusal as Refusal {
                answer = .failed(
                    step,
                    TakeFailure(
                        Self.withoutName(refusal.message, host), code: refusal.code, streams: refusal.streams ?? []))
            } catch {
                answer = .failed(step, TakeFailure(Self.withoutName("\(error)", host)))
            }
            self.feed(.answered(host, take: take, answer))
        }
    }

    private static func answer(_ message: Message, _ step: TakeStep) -> TakeAnswer {
        switch message {
        case .armed(let report): .armed(report)
        case .committed: .committed
        case .chirped(let report): .chirped(report)
        case .stopping: .stopping
        case .aborted: .aborted
        default: .failed(step, TakeFailure("it answered '\(message.kind.rawValue)'", code: .malformed))
        }
    }

    // MARK: The disk

    private func writeJournal() async {
        guard var record = machine?.record else { return }
        if record.startWall == nil, let start = record.start {
            let wall = HostClock.wall + (start - HostClock.rigNow)
            machine?.record.startWall = wall
            record.startWall = wall
        }
        for index in record.hosts.indices {
            record.hosts[index].uuid = registry.entry(of: record.hosts[index].host)?.uuid ?? record.hosts[index].uuid
            machine?.record.hosts[index].uuid = record.hosts[index].uuid
        }
        // What never came to a commit leaves nothing to be taken over.
        guard record.start != nil else { return }
        let (journal, complete) = (journal, record)
        do {
            try await store.run { try journal.write(complete) }
        } catch {
            tell(TakeNote(.error, "the journal can't be written: \(error)"))
            if machine?.phase == .starting { feed(.stopRequested("the journal can't be written")) }
        }
    }

    /// Once a second: what was measured of the clocks goes to the disk, so that it survives this program; from some time
    /// before the take until all is home, since the clocks are computed from both sides of each instant.
    func keepClocks() async {
        guard let record = machine?.record else { return }
        switch record.phase {
        case .idle, .sealed, .aborted: return
        case .arming, .armed, .starting, .recording, .stopping, .ingesting: break
        }
        guard record.start != nil else { return }
        var lines: [UInt8] = []
        for host in record.settings.hosts {
            let (exchanges, events) = clocks.takeUnwritten(of: host)
            lines += (try? ClockExchangeLog.lines(exchanges, events: events, of: host)) ?? []
        }
        guard !lines.isEmpty else { return }
        let (all, journal, take) = (lines, journal, record.settings.take)
        do {
            try await store.run { try journal.appendClock(all, take: take) }
        } catch {
            tell(TakeNote(.warning, "the clocks can't be kept: \(error)"))
        }
    }

    private func ingest(_ host: HostID, _ settings: TakeSettings) {
        guard let link = link(to: host) else {
            loop.perform { [weak self] in
                self?.assumeIsolated { $0.feed(.ingestFailed(host, "there is no connection to it")) }
            }
            return
        }
        let ingest = HostIngest(
            host: host, link: link, episode: settings.episode, episodeFolder: folder(settings), ledger: ledger,
            options: options.ingest)
        // Unstructured: it is cancelled by `.cancelIngest` and at the take's end.
        ingests[host] = Task {
            do {
                let files = try await ingest.run { [weak self] progress in
                    self?.loop.perform { [weak self] in self?.assumeIsolated { $0.ingestProgress[host] = progress } }
                }
                self.feed(.ingested(host, files))
            } catch is CancellationError {
                return
            } catch {
                self.feed(.ingestFailed(host, Self.withoutName("\(error)", host)))
            }
        }
    }

    private func seal() async {
        await keepClocks()
        guard let record = machine?.record else { return }
        let sealer = EpisodeSealer(folder: folder(record.settings), record: record, journal: journal)
        do {
            sealResult = try await store.run { try sealer.seal() }
            feed(.sealed)
        } catch {
            feed(.sealFailed("\(error)"))
        }
    }
}
