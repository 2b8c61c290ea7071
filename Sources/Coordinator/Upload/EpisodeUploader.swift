internal import Glibc
internal import Platform
internal import Protocol
internal import Timing
internal import Transport

/// What an upload is doing, for the operator.
package enum UploadProgress: Sendable, Hashable {
    case hashing
    /// Bytes of the whole request.
    case sending(sent: Int64, total: Int64)
    /// What the server's job says: 0 to 1, and its phase.
    case processing(Double, phase: String)
    case fetching(String)
    case retrying(reason: String, seconds: Double)
}

/// How an upload ended.
package struct UploadOutcome: Sendable, Hashable {
    package let entry: UploadEntry
    /// Whether nothing had to be sent, since the server had confirmed these bytes before.
    package let wasThere: Bool

    package var isGood: Bool { entry.state == .complete || entry.state == .processing }
}

/// Uploads episodes to one server, one after the other; what it does is in the queue before it does it.
///
/// Concurrency: an actor on its own thread, which libcurl blocks.
package actor EpisodeUploader {
    private let loop = EventLoop(name: "upload")
    private let queue: UploadQueue
    private let server: String
    private let policy: UploadPolicy
    private let client = HTTPClient()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The server is "http://host:port", with or without a slash at its end.
    package init(queue: UploadQueue, server: String, policy: UploadPolicy = UploadPolicy()) {
        self.queue = queue
        self.server = EpisodeUploader.normalized(server)
        self.policy = policy
    }

    package static func normalized(_ server: String) -> String {
        var server = server
        while server.hasSuffix("/") { server.removeLast() }
        return server
    }

    /// Breaks off what is going on, now and later; the queue keeps where it was.
    package nonisolated func cancel() { client.cancel() }

    /// Brings one episode to the server, and with `waits` waits for the job and fetches its results.
    ///
    /// `report` is called on the uploader's thread. Thrown is what hinders the upload on this side: the episode's files,
    /// the queue, a cancellation; what the server and the network do is in the outcome.
    package func upload(
        _ episode: SealedEpisode, waits: Bool = true, report: @escaping @Sendable (UploadProgress) -> Void = { _ in }
    ) async throws -> UploadOutcome {
        report(.hashing)
        let plan = try UploadPlan(episode)
        let entry = try await queue.enqueue(session: episode.session, episode: episode.episode, server: server)
        var machine = UploadMachine(entry: entry, policy: policy)
        var action = machine.handle(.start(key: plan.key))
        if action == .end { return UploadOutcome(entry: machine.entry, wasThere: true) }
        while action != .end {
            try await queue.store(machine.entry)
            if !waits, machine.entry.state == .processing, case .poll = action {
                // One look, so that the queue knows whether the server has all of it.
                let event = look(machine.entry, plan, report)
                if case .running = event { _ = machine.handle(event) }
                if case .jobComplete = event { _ = machine.handle(event) }
                break
            }
            action = machine.handle(try await perform(action, machine.entry, plan, report))
        }
        try await queue.store(machine.entry)
        return UploadOutcome(entry: machine.entry, wasThere: false)
    }

    private func perform(
        _ action: UploadMachine.Action, _ entry: UploadEntry, _ plan: UploadPlan,
        _ report: @escaping @Sendable (UploadProgress) -> Void
    ) async throws -> UploadMachine.Event {
        let step: UploadMachine.Step
        switch action {
        case .ask, .end: step = .ask
        case .post: step = .post
        case .fetch: step = .fetch
        case .poll(let delay):
            try await loop.sleep(for: delay)
            step = .poll
        case .retry(let again, let delay):
            report(.retrying(reason: entry.lastError ?? "", seconds: delay.seconds))
            try await loop.sleep(for: delay)
            step = again
        }
        do throws(TransferError) {
            switch step {
            case .ask: return try ask(plan)
            case .post: return try post(plan, report)
            case .poll: return try poll(entry, plan, report)
            case .fetch: return try fetch(entry, into: "\(plan.episode.folder)/synced", report)
            }
        } catch {
            if error.isCancelled { throw CancellationError() }
            return .failed(error.description, isRetriable: error.isRetriable)
        }
    }

    // MARK: Steps; each blocks this actor's thread

    private func ask(_ plan: UploadPlan) throws(TransferError) -> UploadMachine.Event {
        let answer = try client.get("\(server)/api/v1/jobs?upload_key=\(plan.key)")
        // Other servers don't know the question, so only a clear yes counts.
        guard answer.status == 200, let json = EpisodeUploader.object(answer), json["status"]?.string != "failed",
            json["upload_key"]?.string == plan.key, let job = json["job_id"]?.string, plan.isConfirmed(by: json)
        else { return .notKnown }
        return .known(job: job)
    }

    private func post(_ plan: UploadPlan, _ report: @escaping (UploadProgress) -> Void) throws(TransferError)
        -> UploadMachine.Event
    {
        var last: Int64 = -1
        let answer = try client.post("\(server)/api/v1/sync/upload", plan.parts) { sent, total in
            if sent != last && total > 0 { report(.sending(sent: sent, total: total)) }
            last = sent
        }
        guard (200..<300).contains(answer.status), let job = EpisodeUploader.object(answer)?["job_id"]?.string else {
            return EpisodeUploader.failure(answer, "the upload")
        }
        return .posted(job: job)
    }

    private func look(_ entry: UploadEntry, _ plan: UploadPlan, _ report: @escaping (UploadProgress) -> Void)
        -> UploadMachine.Event
    {
        do throws(TransferError) { return try poll(entry, plan, report) } catch {
            return .failed(error.description, isRetriable: error.isRetriable)
        }
    }

    private func poll(_ entry: UploadEntry, _ plan: UploadPlan, _ report: (UploadProgress) -> Void)
        throws(TransferError) -> UploadMachine.Event
    {
        let answer = try client.get("\(server)/api/v1/jobs/\(try escaped(entry.job ?? ""))")
        if answer.status == 404 { return .jobLost }
        guard answer.status == 200, let json = EpisodeUploader.object(answer) else {
            return EpisodeUploader.failure(answer, "asking for the job")
        }
        let isConfirmed = plan.isConfirmed(by: json)
        switch json["status"]?.string {
        case "complete": return .jobComplete(confirmed: isConfirmed)
        case "failed":
            let reason = json["error"]?.string ?? json["detail"]?.string ?? "it gave no reason"
            return .jobFailed("the server's job \(entry.job ?? "") failed: \(reason)")
        default:
            report(.processing(json["progress"]?.double ?? 0, phase: json["phase"]?.string ?? ""))
            return .running(confirmed: isConfirmed)
        }
    }

    /// Stores the results under `synced/`.
    private func fetch(_ entry: UploadEntry, into folder: String, _ report: (UploadProgress) -> Void)
        throws(TransferError) -> UploadMachine.Event
    {
        let job = try escaped(entry.job ?? "")
        let answer = try client.get("\(server)/api/v1/jobs/\(job)")
        guard answer.status == 200, let result = EpisodeUploader.object(answer)?["result"] else {
            return EpisodeUploader.failure(answer, "asking for the results")
        }
        do throws(SystemError) { try Files.makeFolder(folder) } catch {
            return .failed("\(error)", isRetriable: false)
        }
        // One server's documentation has the report itself where another has a path to it.
        if let report = result["sync_report"], case .object = report, let text = try? JSONText.encodePretty(report) {
            do throws(SystemError) { try AtomicFile.write(text, to: "\(folder)/sync_report.json") } catch {
                return .failed("\(error)", isRetriable: false)
            }
        }
        let videos = (result["synced_videos"]?.array ?? []).compactMap(\.string)
        for path in [result["sync_report"]?.string, result["frame_map"]?.string].compactMap({ $0 }) + videos {
            let name = FilePath.name(of: path)
            guard FilePath.staysInside(name) else {
                return .failed(
                    "the server names a result '\(path.prefix(80))', which is no file name", isRetriable: false)
            }
            report(.fetching(name))
            var components: [String] = []
            for part in path.split(separator: "/") { components.append(try escaped(String(part))) }
            let url = "\(server)/api/v1/jobs/\(job)/download/\(components.joined(separator: "/"))"
            let answer = try client.download(url, to: "\(folder)/\(name)", limit: 1 << 40)
            guard answer.status == 200 else { return EpisodeUploader.failure(answer, "fetching \(name)") }
        }
        return .resultsStored
    }

    private static func object(_ answer: HTTPAnswer) -> JSONValue? {
        guard let json = try? JSONText.decode(JSONValue.self, from: answer.body), case .object = json else {
            return nil
        }
        return json
    }

    /// 4xx is the server's last word, but for the two that ask for patience.
    private static func failure(_ answer: HTTPAnswer, _ what: String) -> UploadMachine.Event {
        let json = object(answer)
        let reason = json?["detail"]?.string ?? json?["error"]?.string ?? "status \(answer.status)"
        let isFinal = (400..<500).contains(answer.status) && answer.status != 408 && answer.status != 429
        return .failed("\(what) was refused with status \(answer.status): \(reason)", isRetriable: !isFinal)
    }

    /// A component of a URL's path.
    private func escaped(_ text: String) throws(TransferError) -> String {
        guard FilePath.staysInside(text), !text.contains("/") else {
            throw TransferError(description: "the server sent '\(text.prefix(80))' as a name", isRetriable: false)
        }
        return text.utf8.map { byte in
            let isPlain =
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                || [45, 46, 95, 126].contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + Hex.encode([byte]).uppercased()
        }.joined()
    }
}
