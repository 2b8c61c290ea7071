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
    static let commandHighWater: Int32 = 256
    static let bulkHighWater: Int32 = 16
    private static let maximumAddresses = 16

    package nonisolated let host: HostID

    nonisolated let runtime: LinkRuntime
    nonisolated let queue = LinkEventQueue()
    let security: ZMQSecurity
    let expected: CurveKey?
    let ours: CurveKey?
    let log = Log("link")

    // Commands
    var addresses: [NetworkAddress]
    var commandPort: UInt16
    /// For when the connection in use is lost.
    var nextPlace: (addresses: [NetworkAddress], commandPort: UInt16)?
    var machine: LinkMachine
    /// Counts the machines: a timer of an earlier one means nothing.
    var generation = 0
    var paths: [Int: LinkPath] = [:]
    var wrongKey: (text: String, at: Timestamp<HostTime>)?
    /// In words, for time-outs.
    var condition = "no connection yet"
    var hello: Hello?
    var isClosed = false

    // Bulk
    var bulkPort: UInt16?
    var bulk: LinkPath?
    var bulkWaiting: [UniqueID] = []
    var bulkInFlight: Set<UniqueID> = []
    var bulkHeard = HostClock.now

    var pending: [UniqueID: PendingRequest] = [:]
    var limiter = NoticeLimiter()

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
        if plain, let far = addresses.first(where: { !$0.isLoopback }) {
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

    /// Goes to other addresses or another port, as the host is found there now.
    ///
    /// A connection that works is used until it is lost.
    package func move(to addresses: [NetworkAddress], commandPort: UInt16) {
        let addresses = Array(addresses.prefix(Self.maximumAddresses))
        guard !isClosed, !addresses.isEmpty else { return }
        guard addresses != self.addresses || commandPort != self.commandPort else { return nextPlace = nil }
        if case .plain = security, !addresses.allSatisfy(\.isLoopback) { return }
        nextPlace = (addresses, commandPort)
        if machine.chosen == nil { takeNextPlace() }
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

    func begin(_ request: PendingRequest, _ id: UniqueID) {
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
    func transmit(_ id: UniqueID) {
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
        let doing = "\(request.kind.rawValue) on host \(host)"
        let why = obstacle(to: request).map { " (\($0))" } ?? ""
        end(id, .failure(LinkError.timedOut(after: request.timeout, doing: doing + why)))
    }

    func end(_ id: UniqueID, _ result: Result<Envelope, any Error>) {
        guard let request = pending.removeValue(forKey: id) else { return }
        for timer in [request.deadline, request.repetition].compactMap({ $0 }) { runtime.loop.cancel(timer) }
        if request.isBulk {
            bulkInFlight.remove(id)
            bulkWaiting.removeAll { $0 == id }
            if !isClosed { fillBulkWindow() }
        }
        request.continuation?.resume(with: result)
    }

    func endAll(_ error: any Error) {
        for id in Array(pending.keys) { end(id, .failure(error)) }
    }

    func fillBulkWindow() {
        guard bulk?.isEstablished == true else { return }
        while bulkInFlight.count < Self.bulkWindow, let id = bulkWaiting.first {
            bulkWaiting.removeFirst()
            bulkInFlight.insert(id)
            transmit(id)
        }
    }

    // MARK: Answers

    func drain(_ path: LinkPath) {
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

    // MARK: The loop

    @discardableResult
    func after(_ wait: Interval, _ action: @escaping @Sendable (isolated AgentConnection) -> Void)
        -> EventLoop.TimerID
    {
        runtime.loop.schedule(at: HostClock.now + wait) { [weak self] in
            self?.assumeIsolated { me in if !me.isClosed { action(me) } }
        }
    }

    func drainSoon(_ path: LinkPath) {
        let id = ObjectIdentifier(path)
        runtime.loop.perform { [weak self] in self?.assumeIsolated { $0.withPath(id) { $0.drain($1) } } }
    }

    func warn(_ text: String, subject: String) {
        if let line = limiter.admit(text, subject: subject, at: HostClock.now) { log.warning(line) }
    }
}
