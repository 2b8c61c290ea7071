internal import Platform
internal import Protocol
internal import Synchronization
internal import Testing
internal import Timing

@testable internal import Transport

/// Values that arrive from any thread; a test waits for those that it expects.
final class Mailbox<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiters: [(test: @Sendable ([Value]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }
    private let state = Mutex(State())

    var values: [Value] { state.withLock { $0.values } }

    func put(_ value: Value) {
        let ready = state.withLock { state in
            state.values.append(value)
            let values = state.values
            let ready = state.waiters.filter { $0.test(values) }
            state.waiters.removeAll { $0.test(values) }
            return ready
        }
        ready.forEach { $0.continuation.resume() }
    }

    /// The test's own time limit ends a wait that is in vain.
    func wait(until test: @escaping @Sendable ([Value]) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if test(state.values) { return true }
                state.waiters.append((test, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
    }
}

/// A real `CommandServer` on loopback that counts what it is asked to do.
final class ServerFixture: Sendable {
    let server: CommandServer
    let keys: CurveKeyPair
    let notices = Mailbox<String>()
    let commands = Mailbox<(Message, PeerID)>()
    private let running: Mutex<Task<Void, any Error>?> = Mutex(nil)

    var commandPort: UInt16 { server.commandPort }

    /// `answer` is called with each command after it was counted; nil answers as an idle agent would.
    init(
        at address: String = "127.0.0.1", port: UInt16 = 0, bulkPort: UInt16 = 0, keys: CurveKeyPair = .generate(),
        trusting trusted: [CurveKey], plain: Bool = false,
        answer: @escaping @Sendable (Message) async -> Message? = { _ in nil },
        bulk: @escaping @Sendable (Envelope) async -> Envelope = ServerFixture.pattern,
        configure: (inout CommandServer.Options) -> Void = { _ in }
    ) async throws {
        self.keys = keys
        var options = CommandServer.Options(
            bindAddress: address, commandPort: port, bulkPort: bulkPort, keys: keys, allowPlainOnLoopback: plain,
            host: HostID(unchecked: "cam-1"))
        configure(&options)
        let (notices, commands) = (notices, commands)
        let server = try await CommandServer(
            options: options, allows: { trusted.contains($0) ? "desk" : nil }, report: { notices.put($0) })
        self.server = server
        let task = Task {
            try await server.run(
                command: { envelope, peer in
                    commands.put((envelope.message, peer))
                    if let message = await answer(envelope.message) { return envelope.answer(message) }
                    return envelope.answer(Self.idle(envelope.message, bulkPort: server.bulkPort))
                },
                bulk: { envelope, _ in await bulk(envelope) })
        }
        running.withLock { $0 = task }
    }

    /// Ends the server; its ports are free then.
    func stop() async throws {
        let task = running.withLock { $0 }
        task?.cancel()
        try await task?.value
    }

    static func idle(_ message: Message, bulkPort: UInt16) -> Message {
        switch message {
        case .hello:
            .welcome(
                Welcome(
                    hostUUID: UniqueID(bytes: Array(repeating: 7, count: 16)), host: HostID(unchecked: "cam-1"),
                    version: "1", clockPort: 1, bulkPort: bulkPort, clockKey: ""))
        case .heartbeat: .status(LinkSamples.status)
        case .abort(let reference): .aborted(reference)
        case .stop(let command): .stopping(TakeReference(take: command.take))
        case .ingested: .acknowledged(Empty())
        default: .refused(Refusal(.notFound, "not in this test"))
        }
    }

    /// A file with bytes that differ from place to place.
    static func pattern(_ envelope: Envelope) async -> Envelope {
        guard case .chunk(let request) = envelope.message, request.path != "absent" else {
            return envelope.answer(.refused(Refusal(.notFound, "no such file")))
        }
        return envelope.answer(
            .chunkData(ChunkHeader(path: request.path, offset: request.offset)),
            attachments: [LinkSamples.bytes(from: request.offset, count: request.length)])
    }
}

enum LinkSamples {
    static let host = HostID(unchecked: "cam-1")
    static let hello = Message.hello(Hello(coordinator: .random(), name: "desk", version: "1"))
    static let status = HostStatus(
        state: .idle, take: nil, episode: nil, streams: [], freeBytes: 1, now: Timestamp(nanoseconds: 1))

    private static let content = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 / 7) }

    static func bytes(from offset: Int64, count: Int) -> [UInt8] {
        let start = Int(offset % 65521)
        return Array(content[start..<start + count])
    }

    static func event(_ number: Int, padding: Int = 0) -> HostEvent {
        HostEvent(
            kind: .warning, at: Timestamp(nanoseconds: Int64(number)),
            message: "\(number)" + String(repeating: ".", count: padding))
    }

    static func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text)) }

    static func abort(_ reason: String = "") -> Message { .abort(TakeReference(take: .random(), reason: reason)) }
}

/// A socket of a program that isn't ours, or that is an older or a hostile one.
actor RawPeer {
    private let loop = EventLoop(name: "raw")
    private let socket: ZMQSocket
    nonisolated let port: UInt16
    nonisolated let received = Mailbox<ZMQMessage>()

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        _ kind: ZMQSocket.Kind, security: ZMQSecurity, connect: UInt16? = nil, reads: Bool = true
    ) async throws {
        // What isn't read isn't hoarded either.
        var limits = ZMQSocket.Limits(highWater: reads ? 1000 : 4)
        if !reads { limits.receiveBuffer = 65536 }
        socket = try ZMQSocket(ZMQContext(), kind, limits: limits, security: security)
        if let connect {
            port = connect
            try socket.connect("tcp://127.0.0.1:\(connect)")
        } else {
            let endpoint = try socket.bind("tcp://127.0.0.1:*")
            port = endpoint.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
        }
        if reads { try read() }
    }

    /// Begins to take what comes in.
    func read() throws {
        let received = received
        try socket.watch(on: loop) { [weak self] in
            self?.assumeIsolated { me in
                while let message = (try? me.socket.receive()) ?? nil { received.put(message) }
            }
        }
    }

    /// Waits until the connection takes it.
    func send(_ frames: [[UInt8]]) async throws {
        while true {
            do { return try socket.send(frames) } catch  where error.isAgain {
                try await loop.sleep(for: .milliseconds(5))
            }
        }
    }

    /// False when it can't be sent now.
    func trySend(_ frames: [[UInt8]]) -> Bool { (try? socket.send(frames)) != nil }

    func close() { socket.close() }
}

extension AgentConnection {
    /// To a server of this test.
    init(
        to server: ServerFixture, keys: CurveKeyPair, address: String = "127.0.0.1", serverKey: CurveKey? = nil,
        plain: Bool = false
    ) async throws {
        try await self.init(
            host: LinkSamples.host, addresses: [LinkSamples.address(address)], commandPort: server.commandPort,
            serverKey: serverKey ?? server.keys.publicKey, keys: keys, plain: plain)
    }

    /// Puts all events into a mailbox, until the connection is closed.
    nonisolated func collect() -> Mailbox<LinkEvent> {
        let mailbox = Mailbox<LinkEvent>()
        let events = events
        // It ends with the connection.
        Task { for await event in events { mailbox.put(event) } }
        return mailbox
    }
}

extension LinkEvent {
    var wrongKeyText: String? {
        if case .wrongKey(let text) = self { return text }
        return nil
    }
}
