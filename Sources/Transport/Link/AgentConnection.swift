internal import Platform
package import Protocol
package import Timing

/// The coordinator's end: one agent, by whichever of its addresses answers first.
///
/// A request is repeated until it is answered; a broken connection is made again without end, and then says hello by
/// itself, so that events come on. The bulk socket follows the port that the agent's `welcome` names.
///
/// Concurrency: an actor on the event loop of its `LinkRuntime`, which owns the sockets.
package actor AgentConnection: AgentLink {
    /// How often an unanswered command is sent again.
    private static let repetition = Interval.milliseconds(500)
    /// How long the bulk socket may be silent before a request is sent again: a chunk may take long on a slow network.
    private static let bulkRepetition = Interval.seconds(5)
    /// Chunk requests that are on their way at once; more wait here.
    private static let bulkWindow = 8
    private static let commandHighWater: Int32 = 256
    private static let bulkHighWater: Int32 = 16
    private static let maximumAddresses = 16

    package nonisolated let host: HostID

    nonisolated let runtime: LinkRuntime
    private nonisolated let queue = LinkEventQueue()
    private let security: ZMQSecurity
    private let expected: CurveKey?
    private let ours: CurveKey?
    private let log = Log("link")

    // Commands
    private let addresses: [NetworkAddress]
    private let commandPort: UInt16
    private var machine: LinkMachine
    private var paths: [Int: LinkPath] = [:]
    private var wrongKey: (text: String, at: Timestamp<HostTime>)?
    /// In words, for time-outs.
    private var condition = "no connection yet"
    private var hello: Hello?
    private var isClosed = false

    // Bulk
    private var bulkPort: UInt16?
    private var bulk: LinkPath?
    private var bulkWaiting: [UniqueID] = []
    private var bulkInFlight: Set<UniqueID> = []
    private var bulkHeard = HostClock.now

    private var pending: [UniqueID: PendingRequest] = [:]
    private var limiter = NoticeLimiter()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { runtime.loop.asUnownedSerialExecutor() }

    /// Bounded to 256; one task reads it.
    package nonisolated var events: AsyncStream<LinkEvent> { queue.stream }

    /// Starts to connect.
    ///
    /// - Parameters:
    ///   - host: for what is told to people; whether it is the one that answers is for the caller to check in `welcome`.
    ///   - addresses: all are tried at once, at most 16.
    ///   - commandPort: of the agent.
    ///   - serverKey: the agent's public key, as it is known from pairing.
    ///   - keys: the coordinator's.
    ///   - plain: without encryption; legal only when all addresses are loopback.
    ///   - runtime: the thread and context that it shares with other connections.
    /// - Throws: `LinkSetupError`, `ZMQError`.
    package init(
        host: HostID, addresses: [NetworkAddress], commandPort: UInt16, serverKey: CurveKey, keys: CurveKeyPair,
        plain: Bool = false, runtime: LinkRuntime = .shared
    ) async throws {
        guard !addresses.isEmpty else { throw LinkSetupError.noAddress(host) }
        if plain, let far = addresses.first(where: { !PeerAddress.isLoopback($0.text) }) {
            throw LinkSetupError.plainBeyondLoopback(far.text)
        }
        self.host = host
        self.runtime = runtime
        self.addresses = Array(addresses.prefix(Self.maximumAddresses))
        self.commandPort = commandPort
        security = plain ? .plain : .curveClient(server: serverKey, keys: keys)
        expected = plain ? nil : serverKey
        ours = plain ? nil : keys.publicKey
        machine = LinkMachine(addresses: self.addresses.count)
        perform(machine.handle(.start))
    }

    // MARK: AgentLink

    package func request(_ message: Message, timeout: Interval) async throws -> Message {
        if case .hello(let hello) = message { self.hello = hello }
        let answer = try await ask(message, timeout: timeout, isBulk: false)
        return answer.message
    }

    package func fetch(_ request: ChunkRequest, timeout: Interval) async throws -> [UInt8] {
        guard request.length <= MessageCodec.maximumAttachment else {
            throw ProtocolError.tooLarge(
                part: "a chunk", bytes: request.length, limit: MessageCodec.maximumAttachment)
        }
        let answer = try await ask(.chunk(request), timeout: timeout, isBulk: true)
        guard case .chunkData(let header) = answer.message, header.path == request.path,
            header.offset == request.offset, answer.attachments.count == 1,
            answer.attachments[0].count <= request.length
        else {
            throw Refusal(.malformed, "host \(host): the answer to a chunk of '\(request.path)' is for other bytes")
        }
        return answer.attachments[0]
    }

    package func close() async {
        guard !isClosed else { return }
        isClosed = true
        for id in Array(pending.keys) { end(id, .failure(LinkError.closed)) }
        for path in paths.values { path.close() }
        paths = [:]
        bulk?.close()
        bulk = nil
        queue.finish()
    }

    // MARK: Requests

    private func ask(_ message: Message, timeout: Interval, isBulk: Bool) async throws -> Envelope {
        guard !isClosed else { throw LinkError.closed }
        if let text = currentWrongKey { throw LinkError.wrongKey(text) }
        let envelope = Envelope(message: message)
        let frames = try MessageCodec.encode(envelope)
        let id = envelope.command
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                begin(
                    PendingRequest(
                        frames: frames, kind: message.kind, timeout: timeout, isBulk: isBulk, continuation: continuation
                    ), id)
            }
        } onCancel: {
            runtime.loop.perform { [weak self] in
                self?.assumeIsolated { $0.end(id, .failure(CancellationError())) }
            }
        }
    }

    private func begin(_ request: PendingRequest, _ id: UniqueID) {
        var request = request
        request.deadline = after(request.timeout) { $0.expire(id) }
        pending[id] = request
        if request.isBulk {
            bulkWaiting.append(id)
            fillBulkWindow()
        } else {
            transmit(id)
        }
    }

    /// Sends a request, if there is a connection, and sees to its repetition.
    private func transmit(_ id: UniqueID) {
        guard let request = pending[id] else { return }
        let path = request.isBulk ? bulk : machine.chosen.flatMap { paths[$0] }
        if let path, path.isEstablished {
            // What can't be sent now is sent by the repetition.
            try? path.socket.send(request.frames)
            drainSoon(path)
        }
        if let timer = request.repetition { runtime.loop.cancel(timer) }
        pending[id]?.repetition = after(request.isBulk ? Self.bulkRepetition : Self.repetition) { $0.repeatRequest(id) }
    }

    private func repeatRequest(_ id: UniqueID) {
        guard let request = pending[id] else { return }
        guard request.isBulk else { return transmit(id) }
        let isSilent = HostClock.now - bulkHeard >= Self.bulkRepetition
        // While other chunks arrive, this one is in the queue behind them.
        guard isSilent else {
            pending[id]?.repetition = after(Self.bulkRepetition) { $0.repeatRequest(id) }
            return
        }
        if bulk?.isEstablished != true { openBulk() }
        transmit(id)
    }

    private func expire(_ id: UniqueID) {
        guard let request = pending[id] else { return }
        let doing = "\(request.kind.rawValue) on host \(host)\(machine.chosen == nil ? " (\(condition))" : "")"
        end(id, .failure(LinkError.timedOut(after: request.timeout, doing: doing)))
    }

    private func end(_ id: UniqueID, _ result: Result<Envelope, any Error>) {
        guard let request = pending.removeValue(forKey: id) else { return }
        for timer in [request.deadline, request.repetition].compactMap({ $0 }) { runtime.loop.cancel(timer) }
        if request.isBulk {
            bulkInFlight.remove(id)
            bulkWaiting.removeAll { $0 == id }
            if !isClosed { fillBulkWindow() }
        }
        request.continuation?.resume(with: result)
    }

    private func endAll(_ error: any Error) {
        for id in Array(pending.keys) { end(id, .failure(error)) }
    }

    private func fillBulkWindow() {
        guard bulk?.isEstablished == true else { return }
        while bulkInFlight.count < Self.bulkWindow, let id = bulkWaiting.first {
            bulkWaiting.removeFirst()
            bulkInFlight.insert(id)
            transmit(id)
        }
    }

    // MARK: Answers

    private func drain(_ path: LinkPath) {
        for _ in 0..<256 {
            guard let message = (try? path.socket.receive()) ?? nil else { return }
            if path.isBulk { bulkHeard = HostClock.now }
            take(message)
        }
        drainSoon(path)
    }

    private func take(_ message: ZMQMessage) {
        do throws(ProtocolError) {
            let envelope = try MessageCodec.decode(message.frames)
            if case .event(let event) = envelope.message { return queue.push(.event(event)) }
            answered(envelope)
        } catch .wrongVersion(let version) {
            let error = ProtocolError.wrongVersion(version)
            warn("host \(host): \(error)", subject: "version")
            endAll(Refusal(.wrongVersion, "host \(host): \(error)"))
        } catch {
            warn("host \(host) sent what can't be read: \(error)", subject: "malformed")
            guard let header = try? MessageCodec.header(of: message.frames) else { return }
            end(header.0, .failure(Refusal(.malformed, "host \(host): \(error)")))
        }
    }

    private func answered(_ envelope: Envelope) {
        // An answer to a repetition may come when the first was answered already.
        guard let request = pending[envelope.command] else { return }
        if case .refused(let refusal) = envelope.message { return end(envelope.command, .failure(refusal)) }
        guard envelope.message.kind == request.kind.answer else {
            let text = "host \(host) answered '\(request.kind.rawValue)' with '\(envelope.message.kind.rawValue)'"
            return end(envelope.command, .failure(Refusal(.malformed, text)))
        }
        if case .welcome(let welcome) = envelope.message, bulkPort != welcome.bulkPort || bulk == nil {
            bulkPort = welcome.bulkPort
            openBulk()
        }
        end(envelope.command, .success(envelope))
    }

    // MARK: Connections

    private func perform(_ actions: [LinkMachine.Action]) {
        for action in actions where !isClosed {
            switch action {
            case .open(let index): open(index)
            case .close(let index): closePath(index)
            case .retry(let index, let wait): _ = after(wait) { $0.perform($0.machine.handle(.retryDue(index))) }
            case .waitGrace(let wait): _ = after(wait) { $0.perform($0.machine.handle(.graceOver)) }
            case .connected(let index): connected(index)
            case .disconnected(let reason):
                condition = reason
                bulk?.close()
                bulk = nil
                queue.push(.disconnected(reason))
            case .wrongKey(let finding, let index): tell(finding, index)
            }
        }
    }

    private func open(_ index: Int) {
        closePath(index)
        do {
            paths[index] = try path(index: index, port: commandPort, highWater: Self.commandHighWater)
        } catch {
            // An address that can't be one, or no descriptors left.
            condition = "host \(host): \(error)"
            warn(condition, subject: "open")
            _ = after(.seconds(1)) { $0.perform($0.machine.handle(.retryDue(index))) }
        }
    }

    private func path(index: Int?, port: UInt16, highWater: Int32) throws -> LinkPath {
        let chosen = index ?? machine.chosen ?? 0
        let endpoint = "tcp://\(addresses[chosen].zeroMQ):\(port)"
        let path = try LinkPath(
            runtime.context, endpoint: endpoint, index: index, highWater: highWater, security: security)
        let id = ObjectIdentifier(path)
        try path.watch(
            on: runtime.loop,
            messages: { [weak self] in self?.assumeIsolated { $0.withPath(id) { $0.drain($1) } } },
            events: { [weak self] in self?.assumeIsolated { $0.withPath(id) { $0.drainEvents($1) } } })
        try path.connect()
        return path
    }

    /// Handlers name their path: it may be closed and replaced by the time that they run.
    private func withPath(_ id: ObjectIdentifier, _ body: (isolated AgentConnection, LinkPath) -> Void) {
        if let bulk, ObjectIdentifier(bulk) == id { return body(self, bulk) }
        if let path = paths.values.first(where: { ObjectIdentifier($0) == id }) { body(self, path) }
    }

    private func closePath(_ index: Int) { paths.removeValue(forKey: index)?.close() }

    private func drainEvents(_ path: LinkPath) {
        while let event = path.monitor.next() {
            switch event {
            case .connected: path.connectedAt = HostClock.now
            case .handshakeSucceeded: established(path)
            case .handshakeFailed(let failure): failed(path, failure)
            case .disconnected:
                guard path.isEstablished else { break }
                path.isEstablished = false
                // Answers may have come in before the connection broke.
                drain(path)
                if let index = path.index {
                    perform(machine.handle(.lost(index, "host \(host): the connection to \(path.endpoint) broke")))
                }
            case .accepted, .acceptFailed: break
            }
        }
    }

    private func established(_ path: LinkPath) {
        path.isEstablished = true
        if let index = path.index {
            perform(machine.handle(.established(index)))
        } else {
            bulkHeard = HostClock.now
            for id in bulkInFlight { transmit(id) }
            fillBulkWindow()
        }
    }

    private func connected(_ index: Int) {
        wrongKey = nil
        queue.push(.connected)
        sayHelloAgain()
        for (id, request) in pending where !request.isBulk { transmit(id) }
        if bulkPort != nil { openBulk() }
    }

    /// Tells the agent who is there, on a new connection; the answer brings the bulk port of an agent that restarted.
    private func sayHelloAgain() {
        guard let hello else { return }
        let envelope = Envelope(message: .hello(hello))
        guard let frames = try? MessageCodec.encode(envelope) else { return }
        begin(
            PendingRequest(frames: frames, kind: .hello, timeout: .seconds(10), isBulk: false, continuation: nil),
            envelope.command)
    }

    private func openBulk() {
        bulk?.close()
        bulk = nil
        guard let bulkPort, machine.chosen != nil else { return }
        do {
            bulk = try path(index: nil, port: bulkPort, highWater: Self.bulkHighWater)
        } catch {
            warn("host \(host): \(error)", subject: "bulk")
        }
    }

    private func failed(_ path: LinkPath, _ failure: ZMQMonitor.Failure) {
        let isQuick = path.connectedAt.map { HostClock.now - $0 < .seconds(1) } ?? false
        guard let index = path.index else {
            // libzmq may not try again; the next repetition makes a new socket.
            path.isEstablished = false
            return
        }
        condition = "host \(host): the handshake with \(path.endpoint) failed"
        let meaning: LinkMachine.Failure =
            switch failure {
            case .refused: .refused
            case .mechanismMismatch, .malformed: .mismatch
            case .cryptographic, .cut: .cut(quickly: isQuick)
            }
        if wrongKey != nil { wrongKey?.at = HostClock.now }
        perform(machine.handle(.failed(index, meaning)))
    }

    // MARK: Wrong keys

    /// Nil when the last proof of it is older than a few tries take: the agent may be gone or mended by now.
    private var currentWrongKey: String? {
        guard let wrongKey, HostClock.now - wrongKey.at < .seconds(3) else { return nil }
        return wrongKey.text
    }

    private func tell(_ finding: LinkMachine.Finding, _ index: Int) {
        let place = "\(addresses[index].zeroMQ):\(commandPort)"
        let pairing = "run 'downbeat invite' here and 'downbeat-agent join TOKEN' there"
        let text: String
        switch finding {
        case .refusedOurs:
            let key = ours.map { " (\($0.fingerprint))" } ?? ""
            text =
                "host \(host): wrong key: the agent at \(place) doesn't trust the key of this coordinator\(key); \(pairing)"
        case .otherKey:
            let key = expected.map { " \($0.fingerprint)" } ?? ""
            text =
                "host \(host): wrong key: what answers at \(place) doesn't hold the key\(key) that this host is known "
                + "by; when it was installed anew, \(pairing)"
        case .notEncrypted:
            text =
                "host \(host): wrong key: what answers at \(place) doesn't speak Downbeat's encrypted protocol; is "
                + "another program on that port, or the agent started without encryption?"
        }
        wrongKey = (text, HostClock.now)
        condition = text
        log.warning(text)
        queue.push(.wrongKey(text))
        endAll(LinkError.wrongKey(text))
    }

    // MARK: The loop

    @discardableResult
    private func after(_ wait: Interval, _ action: @escaping @Sendable (isolated AgentConnection) -> Void)
        -> EventLoop.TimerID
    {
        runtime.loop.schedule(at: HostClock.now + wait) { [weak self] in
            self?.assumeIsolated { me in if !me.isClosed { action(me) } }
        }
    }

    private func drainSoon(_ path: LinkPath) {
        let id = ObjectIdentifier(path)
        runtime.loop.perform { [weak self] in self?.assumeIsolated { $0.withPath(id) { $0.drain($1) } } }
    }

    private func warn(_ text: String, subject: String) {
        if let line = limiter.admit(text, subject: subject, at: HostClock.now) { log.warning(line) }
    }
}
