internal import Platform
package import Protocol
package import Timing

/// The agent's end: a socket for commands and events and one for bulk, both encrypted, for trusted coordinators only.
///
/// Requests of different ids run at once; a repeated id is done once. What can't be read is refused or dropped and
/// counted; who isn't trusted is reported in words.
///
/// Concurrency: an actor on an event loop, which owns the sockets. The handlers run on the cooperative pool, as
/// children of `run`.
package actor CommandServer {
    package struct Options: Sendable {
        /// "*" for all interfaces of both families, or a numeric address.
        package var bindAddress: String
        /// 0 takes a free one.
        package var commandPort: UInt16
        package var bulkPort: UInt16
        package var keys: CurveKeyPair
        /// No encryption and no keys at all; legal only with a loopback `bindAddress`.
        package var allowPlainOnLoopback: Bool
        /// For the reports.
        package var host: HostID?
        /// Commands and events that wait for one peer, a few hundred bytes each; more are lost and counted.
        package var highWater: Int32 = 256
        /// A coordinator that is silent for this long is taken for disconnected.
        package var silence = Interval.seconds(3)

        package init(
            bindAddress: String = "*", commandPort: UInt16, bulkPort: UInt16 = 0, keys: CurveKeyPair,
            allowPlainOnLoopback: Bool = false, host: HostID? = nil
        ) {
            self.bindAddress = bindAddress
            self.commandPort = commandPort
            self.bulkPort = bulkPort
            self.keys = keys
            self.allowPlainOnLoopback = allowPlainOnLoopback
            self.host = host
        }
    }

    package typealias Handler = @Sendable (Envelope, PeerID) async -> Envelope

    /// Chunks that wait for one peer, up to 4 MiB each.
    private static let bulkHighWater: Int32 = 16

    package nonisolated let commandPort: UInt16
    package nonisolated let bulkPort: UInt16

    private nonisolated let loop: EventLoop
    private let context: ZMQContext
    private let gate: ZAPHandler?
    private let host: HostID?
    private let fingerprint: String
    private let commands: ServerSocket
    private let bulk: ServerSocket
    private let reporter: ServerReporter
    private var subscribers = EventSubscribers()
    private var jobs: AsyncStream<Job>.Continuation?
    private var isClosed = false
    private var figures = ServerStatistics()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Binds both sockets; requests wait until `run`.
    ///
    /// - Parameters:
    ///   - options: where, and with which keys.
    ///   - allows: the name of the coordinator that a key belongs to, or nil when it isn't trusted; called on a thread
    ///     of its own.
    ///   - report: takes each notice for the operator, rate-limited; the log takes it too.
    /// - Throws: `LinkSetupError`, `ZMQError`.
    package init(
        options: Options, allows: @escaping @Sendable (CurveKey) -> String?,
        report: (@Sendable (String) -> Void)? = nil
    ) async throws {
        let plain = options.allowPlainOnLoopback
        guard !plain || NetworkAddress(options.bindAddress)?.isLoopback == true else {
            throw LinkSetupError.plainBeyondLoopback(options.bindAddress)
        }
        loop = EventLoop(name: "zmq")
        context = ZMQContext()
        host = options.host
        fingerprint = options.keys.publicKey.fingerprint
        let reporter = ServerReporter(host: options.host, extra: report)
        self.reporter = reporter
        gate =
            plain
            ? nil : try await ZAPHandler(context, allows: allows) { reporter.denied(address: $0, key: $1) }
        let security = plain ? ZMQSecurity.plain : .curveServer(secret: options.keys.secretKey)
        var limits = ZMQSocket.Limits(highWater: options.highWater)
        limits.silence = options.silence
        var bulkLimits = limits
        bulkLimits.highWater = Self.bulkHighWater
        commands = try ServerSocket(
            context, at: options.bindAddress, port: options.commandPort, limits: limits,
            security: security, cache: AnswerCache.Limits())
        bulk = try ServerSocket(
            context, at: options.bindAddress, port: options.bulkPort, limits: bulkLimits,
            security: security, cache: AnswerCache.Limits(underWay: Int(Self.bulkHighWater)))
        commandPort = commands.port
        bulkPort = bulk.port
    }

    /// What went through, and what did not.
    package var statistics: ServerStatistics {
        var figures = figures
        figures.denied = reporter.deniedCount
        figures.subscribers = subscribers.count
        return figures
    }

    // MARK: Life

    /// Answers requests until the task is cancelled or `close` is called; then both ports are free again.
    ///
    /// A handler that is under way is cancelled and waited for.
    package func run(command: @escaping Handler, bulk bulkHandler: @escaping Handler) async throws {
        precondition(jobs == nil && !isClosed, "CommandServer.run is called once")
        // The caches bound what is under way for each coordinator; this bounds it for all of them.
        let (stream, continuation) = AsyncStream.makeStream(of: Job.self, bufferingPolicy: .bufferingOldest(1024))
        jobs = continuation
        try watch()
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                for await job in stream {
                    group.addTask { [weak self] in
                        let handler = job.isBulk ? bulkHandler : command
                        let answer = await handler(job.envelope, job.peer)
                        await self?.finish(job, answer)
                    }
                }
                group.cancelAll()
            }
        } onCancel: {
            continuation.finish()
        }
        await close()
    }

    /// Closes both sockets and waits until their ports are free; what was answered last is still sent.
    package func close() async {
        guard !isClosed else { return }
        isClosed = true
        jobs?.finish()
        commands.close()
        bulk.close()
        await gate?.close()
        await context.terminate()
    }

    private func watch() throws {
        for socket in [commands, bulk] {
            let isBulk = socket === bulk
            try socket.watch(
                on: loop,
                messages: { [weak self] in self?.assumeIsolated { $0.drain(isBulk: isBulk) } },
                events: { [weak self] in self?.assumeIsolated { $0.drainEvents(isBulk: isBulk) } })
        }
    }

    // MARK: Requests

    fileprivate struct Job: Sendable {
        let envelope: Envelope
        let peer: PeerID
        let isBulk: Bool
    }

    /// At most this many messages in one go, so that one peer can't keep the thread from its timers.
    private static let budget = 256

    private func drain(isBulk: Bool) {
        let socket = isBulk ? bulk : commands
        for _ in 0..<Self.budget {
            let message: ZMQMessage?
            do { message = try socket.receive() } catch {
                if !isClosed { reporter.notice("\(error)", subject: "receive") }
                return
            }
            guard let message else { return }
            take(message, isBulk: isBulk)
        }
        loop.perform { [weak self] in self?.assumeIsolated { $0.drain(isBulk: isBulk) } }
    }

    private func take(_ message: ZMQMessage, isBulk: Bool) {
        guard let connection = message.frames.first else { return }
        let peer = PeerID(
            connection: connection, coordinator: message.userID ?? "loopback", key: message.key,
            address: PeerAddress.plain(message.address ?? "unknown"))
        let frames = Array(message.frames.dropFirst())
        figures.received += 1
        do throws(ProtocolError) {
            guard message.discarded == 0 else {
                throw .tooLarge(
                    part: "the number of frames", bytes: frames.count + message.discarded,
                    limit: 2 + MessageCodec.maximumAttachments)
            }
            let envelope = try MessageCodec.decode(frames)
            receive(envelope, from: peer, isBulk: isBulk)
        } catch {
            figures.malformed += 1
            reporter.notice("\(peer) sent what can't be read: \(error)", subject: "malformed \(peer.address)")
            guard let command = Self.command(of: frames) else { return }
            send(Envelope(command: command, message: .refused(error.refusal)), to: peer, isBulk: isBulk)
        }
    }

    /// The command id of anything that begins as our messages of any version do.
    private static func command(of frames: [[UInt8]]) -> UniqueID? {
        guard let header = frames.first, header.count >= 20, header[0] == 0x44, header[1] == 0x42 else { return nil }
        return UniqueID(bytes: Array(header[4..<20]))
    }

    private func receive(_ envelope: Envelope, from peer: PeerID, isBulk: Bool) {
        let kind = envelope.message.kind
        guard kind.answer != nil, (kind == .chunk) == isBulk else {
            figures.malformed += 1
            let why =
                kind.answer == nil
                ? "is no request"
                : "belongs on the \(isBulk ? "command" : "bulk") port, \(isBulk ? commandPort : bulkPort)"
            refuse(envelope, Refusal(.malformed, "'\(kind.rawValue)' \(why)"), to: peer, isBulk: isBulk)
            return
        }
        let socket = isBulk ? bulk : commands
        let key = AnswerCache.Key(coordinator: peer.key, command: envelope.command)
        switch socket.cache.receive(key, from: peer) {
        case .underWay: figures.repeated += 1
        case .answered(let frames):
            figures.repeated += 1
            transmit(frames, to: peer, isBulk: isBulk)
        case .tooMany:
            refuse(
                envelope, Refusal(.internalError, "too many requests at once; wait for the answers of some"), to: peer,
                isBulk: isBulk)
        case .new:
            figures.done += 1
            let job = Job(envelope: envelope, peer: peer, isBulk: isBulk)
            if case .enqueued = jobs?.yield(job) { return }
            _ = socket.cache.finish(key, with: [], keep: false)
            refuse(
                envelope, Refusal(.internalError, "too many requests at once; try again in a second"), to: peer,
                isBulk: isBulk)
        }
    }

    private func refuse(_ envelope: Envelope, _ refusal: Refusal, to peer: PeerID, isBulk: Bool) {
        send(envelope.answer(.refused(refusal)), to: peer, isBulk: isBulk)
    }

    private func finish(_ job: Job, _ answer: Envelope) {
        guard !isClosed else { return }
        let reply = Envelope(command: job.envelope.command, message: answer.message, attachments: answer.attachments)
        let frames = encode(reply)
        let socket = job.isBulk ? bulk : commands
        let key = AnswerCache.Key(coordinator: job.peer.key, command: job.envelope.command)
        let peer = socket.cache.finish(key, with: frames, keep: !job.isBulk) ?? job.peer
        if case .welcome = answer.message, !job.isBulk { subscribers.add(peer) }
        transmit(frames, to: peer, isBulk: job.isBulk)
    }

    // MARK: Sending

    /// Sends an event to every coordinator that said hello and is connected; one that is too slow misses it, which is
    /// counted, logged, and told to it as soon as it takes messages again.
    package func publish(_ event: HostEvent) async {
        guard !isClosed else { return }
        let frames = encode(Envelope(message: .event(event)))
        for peer in subscribers.peers {
            let missed = subscribers.missed(by: peer)
            // While there is no room for the notice of the gap there is none for the event either.
            if missed > 0 {
                switch transmit(gap(missed, at: event), to: peer, isBulk: false) {
                case .sent: subscribers.caughtUp(peer)
                case .gone: subscribers.remove(peer)
                case .full: miss(peer)
                }
                guard subscribers.missed(by: peer) == 0 else { continue }
            }
            switch transmit(frames, to: peer, isBulk: false) {
            case .sent: break
            case .gone: subscribers.remove(peer)
            case .full: miss(peer)
            }
        }
    }

    private func gap(_ missed: Int, at event: HostEvent) -> [[UInt8]] {
        encode(
            Envelope(
                message: .event(
                    HostEvent(
                        kind: .warning, at: event.at,
                        message: "\(missed) events before this one were lost: the coordinator took them too slowly"))))
    }

    private func miss(_ peer: PeerID) {
        figures.eventsMissed += 1
        subscribers.miss(peer)
        reporter.notice("\(peer) takes events too slowly; some are lost", subject: "slow \(peer.address)")
    }

    private func encode(_ envelope: Envelope) -> [[UInt8]] {
        do { return try MessageCodec.encode(envelope) } catch {
            reporter.notice("an answer can't be sent: \(error)", subject: "encode")
            let refusal = Refusal(.internalError, "the answer can't be sent: \(error)")
            return (try? MessageCodec.encode(envelope.answer(.refused(refusal)))) ?? []
        }
    }

    private func send(_ envelope: Envelope, to peer: PeerID, isBulk: Bool) {
        transmit(encode(envelope), to: peer, isBulk: isBulk)
    }

    private enum Delivery { case sent, full, gone }

    @discardableResult
    private func transmit(_ frames: [[UInt8]], to peer: PeerID, isBulk: Bool) -> Delivery {
        let socket = isBulk ? bulk : commands
        // Sending may swallow the edge that says that something has come in.
        defer { loop.perform { [weak self] in self?.assumeIsolated { $0.drain(isBulk: isBulk) } } }
        do {
            try socket.send([peer.connection] + frames)
            return .sent
        } catch {
            // The coordinator repeats its request, and the answer is kept.
            figures.unsent += 1
            return error.isUnreachable ? .gone : .full
        }
    }

    // MARK: Connections

    private func drainEvents(isBulk: Bool) {
        let socket = isBulk ? bulk : commands
        while let failure = socket.nextFailure() {
            figures.failedHandshakes += 1
            reporter.failed(failure.failure, address: failure.address, fingerprint: fingerprint)
        }
    }
}

/// Counters of a `CommandServer` since it was made.
package struct ServerStatistics: Sendable, Hashable {
    /// Messages of admitted peers.
    package var received = 0
    /// Requests that were given to a handler.
    package var done = 0
    /// Requests that had been given to it before.
    package var repeated = 0
    package var malformed = 0
    /// Messages that a peer was too slow or gone for.
    package var unsent = 0
    package var eventsMissed = 0
    /// Peers whose key isn't trusted.
    package var denied = 0
    package var failedHandshakes = 0
    package var subscribers = 0
}

/// Why an end of a link can't be made.
package enum LinkSetupError: Error, Sendable, Hashable, CustomStringConvertible {
    case plainBeyondLoopback(String)
    case portInUse(UInt16)
    case noAddress(HostID)

    package var description: String {
        switch self {
        case .plainBeyondLoopback(let address):
            "connections without encryption are possible on 127.0.0.1 or ::1 only, not on \(address)"
        case .portInUse(let port):
            "port \(port) is in use by another program; stop it (is another agent running?) or choose another port"
        case .noAddress(let host): "host \(host): no address is known"
        }
    }
}
