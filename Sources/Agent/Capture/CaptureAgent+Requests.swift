internal import Episode
internal import FoundationEssentials
internal import Platform
package import Protocol
internal import Timing

/// Each request and its answer.
extension CaptureAgent {
    /// Answers a request of the command socket.
    package func answer(_ envelope: Envelope, from caller: Caller) async -> Envelope {
        do {
            return envelope.answer(try await answer(envelope.message, from: caller))
        } catch let refusal as Refusal {
            return envelope.answer(.refused(refusal))
        } catch let error as SessionError {
            return envelope.answer(.refused(error.refusal(host: host)))
        } catch {
            Self.log.error("\(envelope.message.kind.rawValue): \(error)")
            return envelope.answer(.refused(Refusal(.internalError, "host \(host): \(error)")))
        }
    }

    private func answer(_ message: Message, from caller: Caller) async throws -> Message {
        let now = HostClock.now
        switch message {
        case .hello(let hello): return .welcome(try welcome(hello))
        case .lease(let request): return try lease(request, from: caller)
        case .heartbeat:
            lease.heard(from: caller.identity, at: now)
            return .status(status)
        case .snapshotRequest: return .snapshot(await snapshot())
        case .devices: return .deviceList(try await deviceList())
        case .ingest(let request): return .fileList(try await fileList(request))
        case .arm, .commit, .abort, .chirp, .stop, .ingested, .soundCheck:
            try lease.check(caller.identity, doing: message.kind, at: now)
            lease.heard(from: caller.identity, at: now)
            if case .soundCheck(let command) = message { return .soundChecked(try await soundCheck(command)) }
            return try await command(message)
        case .chunk: throw Refusal(.malformed, "host \(host): 'chunk' belongs on the bulk port")
        default: throw Refusal(.malformed, "host \(host): '\(message.kind.rawValue)' is no request")
        }
    }

    /// Answers a request of the bulk socket.
    package nonisolated func bulk(_ envelope: Envelope) async -> Envelope {
        guard case .chunk(let request) = envelope.message else {
            return envelope.answer(
                .refused(Refusal(.malformed, "host \(host): the bulk port answers only 'chunk'")))
        }
        do {
            let bytes = try await archive.chunk(request)
            return envelope.answer(
                .chunkData(ChunkHeader(path: request.path, offset: request.offset)), attachments: [bytes])
        } catch let refusal as Refusal {
            return envelope.answer(.refused(refusal))
        } catch {
            return envelope.answer(.refused(Refusal(.internalError, "host \(host): \(error)")))
        }
    }

    // MARK: Before a take

    private func welcome(_ hello: Hello) throws -> Welcome {
        guard let ports else { throw Refusal(.internalError, "host \(host) is still starting; try again") }
        let key = clockKeys[hello.coordinator] ?? SecureRandom.bytes(32)
        // A rig has one coordinator, and now and then a new one.
        if clockKeys[hello.coordinator] == nil && clockKeys.count >= 64 { clockKeys = [:] }
        clockKeys[hello.coordinator] = key
        ports.authorizeClock(hello.coordinator, key)
        return Welcome(
            hostUUID: hostUUID, host: host, version: ProductVersion.current, clockPort: ports.clock,
            bulkPort: ports.bulk, clockKey: Data(key).base64EncodedString())
    }

    private func lease(_ request: LeaseRequest, from caller: Caller) throws -> Message {
        let now = HostClock.now
        let isNew = lease.holder(at: now) == nil
        let lease = try lease.request(request, identity: caller.identity, at: now)
        if request.length <= .zero {
            if !isNew { released("coordinator '\(request.name)' gave its lease back") }
        } else if isNew {
            tell("coordinator '\(request.name)' commands this host")
        }
        return .leased(lease)
    }

    /// Nobody commands this host any more: what isn't running is let go of.
    func released(_ words: String) {
        tell(words)
        switch machine.phase {
        case .arming, .armed: handle(.halt(reason: words))
        // T0 was promised to the other hosts too; the take begins and ends by itself.
        case .committed, .recording, .stopping: return
        case .none, .finished: break
        }
        rest()
    }

    /// From wherever the last take has left the session, back to idle, with the devices closed.
    func rest() {
        settle()
        guard session.state == .connected else { return }
        transition(.disconnect)
        enqueue { await self.closeDevices() }
    }

    /// Ends what is left of the last take, so that a new one can begin; its files can still be fetched.
    func settle() {
        switch session.state {
        case .stopping: transition(.finishRecording)
        case .ingesting: session.ingestCompleted()
        default: return
        }
    }

    // MARK: The take

    private func command(_ message: Message) async throws -> Message {
        if let take = message.take, machine.plan?.take != take, let record = await store.record(take) {
            if let answer = try past(record, message) { return answer }
        }
        let answer: TakeMachine.Answer
        switch message {
        case .arm(let plan):
            guard !session.streams.isEmpty else { throw SessionError.noStreamsRegistered }
            answer = handle(.arm(plan))
        case .commit(let commit): answer = handle(.commit(commit))
        case .abort(let reference): answer = handle(.abort(reference))
        case .chirp(let command): answer = handle(.chirp(command))
        case .stop(let command):
            answer = handle(.stop(command))
            repeatReport(command.take)
        case .ingested(let request): return try await ingested(request)
        default: throw Refusal(.malformed, "host \(host): '\(message.kind.rawValue)' is no command")
        }
        switch answer {
        case .message(let message): return message
        case .whenArmed: return await withCheckedContinuation { armWaiters.append($0) }
        case .whenCommitted: return await withCheckedContinuation { commitWaiters.append($0) }
        case .whenChirped(let moment):
            if let report = chirpReports[moment] { return .chirped(report) }
            return await withCheckedContinuation { chirpWaiters[moment, default: []].append($0) }
        case .none: throw Refusal(.internalError, "host \(host): no answer to '\(message.kind.rawValue)'")
        }
    }

    /// A command for a take that is over; nil when the take machine has to say.
    private func past(_ record: TakeRecord, _ message: Message) throws -> Message? {
        guard record.progress != .committed && record.progress != .aborted else { return nil }
        let take = record.plan.take
        switch message {
        case .commit(let commit) where record.commit == commit: return .committed(TakeReference(take: take))
        case .stop(let command):
            if let report = record.report { publish(.takeFinished, take: take, report.reason, stop: report) }
            return .stopping(TakeReference(take: take, reason: record.report?.reason ?? command.reason))
        case .arm, .commit, .abort, .chirp:
            throw Refusal(
                .invalidTransition,
                "host \(host): the take of \(record.plan.episode) is \(record.progress.rawValue); '\(message.kind.rawValue)' "
                    + "comes too late; plan a new take")
        default: return nil
        }
    }

    /// The report may have been lost on the way; who asks for the stop again gets it again.
    private func repeatReport(_ take: UniqueID) {
        guard case .finished(let plan, _, let report) = machine.phase, plan.take == take else { return }
        publish(.takeFinished, take: take, report.reason, stop: report)
    }

    // MARK: After a take

    private func fileList(_ request: IngestRequest) async throws -> FileList {
        guard let record = await store.record(request.episode), record.summary != nil else {
            throw Refusal(.notFound, "host \(host) has no episode \(request.episode)")
        }
        guard record.progress != .recording else {
            throw Refusal(
                .invalidTransition, "host \(host): \(request.episode) is still being written; stop the take first")
        }
        if isLast(request.episode), session.state == .stopping { transition(.ingest) }
        await bringClips(record)
        return FileList(episode: request.episode, files: try await archive.list(request.episode))
    }

    private func ingested(_ request: IngestRequest) async throws -> Message {
        guard let record = await store.record(request.episode), record.summary != nil else {
            throw Refusal(.notFound, "host \(host) has no episode \(request.episode)")
        }
        guard record.progress != .recording else {
            throw Refusal(.invalidTransition, "host \(host): \(request.episode) is still being written")
        }
        try await store.update(record.plan.take) { $0.progress = .ingested }
        if isLast(request.episode), session.state == .ingesting {
            session.ingestCompleted()
            publish(.stateChanged, "ingesting->connected")
        }
        if record.progress != .ingested { tell("\(request.episode) is home") }
        return .acknowledged(Empty())
    }

    private func isLast(_ episode: EpisodeID) -> Bool {
        guard case .finished(let plan, _, _) = machine.phase else { return false }
        return plan.episode == episode
    }
}

extension Message {
    /// The take that a command is about.
    fileprivate var take: UniqueID? {
        switch self {
        case .arm(let plan): plan.take
        case .commit(let commit): commit.take
        case .abort(let reference): reference.take
        case .chirp(let command): command.take
        case .stop(let command): command.take
        default: nil
        }
    }
}
