internal import Platform
internal import Protocol
internal import Synchronization
internal import Testing
internal import Timing

@testable internal import Transport

@Suite("The link between a coordinator and an agent, over real sockets", .serialized, .timeLimit(.minutes(1)))
struct LinkTests {
    private let keys = CurveKeyPair.generate()

    @Test("A request is answered, and the server knows who asked", arguments: ["127.0.0.1", "::1"])
    func request(_ address: String) async throws {
        let server = try await ServerFixture(at: address, trusting: [keys.publicKey])
        let link = try await AgentConnection(to: server, keys: keys, address: address)
        let events = link.collect()
        let answer = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        guard case .welcome(let welcome) = answer else { throw Refusal(.internalError, "\(answer)") }
        #expect(welcome.bulkPort == server.server.bulkPort)
        let peer = try #require(server.commands.values.first?.1)
        #expect(peer.key == keys.publicKey && peer.coordinator == "desk" && peer.address == address)
        await events.wait { $0.contains(.connected) }
        await link.close()
        try await server.stop()
    }

    @Test("Both families are served on '*'")
    func bothFamilies() async throws {
        let server = try await ServerFixture(at: "*", trusting: [keys.publicKey])
        for address in ["127.0.0.1", "::1"] {
            let link = try await AgentConnection(to: server, keys: keys, address: address)
            #expect(try await link.request(.heartbeat(Empty()), timeout: .seconds(10)) == .status(LinkSamples.status))
            await link.close()
        }
        #expect(server.commands.values.map(\.1.address) == ["127.0.0.1", "::1"])
        try await server.stop()
    }

    @Test("A refusal is thrown, and an answer of the wrong kind is one")
    func refusal() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey]) { message in
            if case .heartbeat = message { return .acknowledged(Empty()) }
            return nil
        }
        let link = try await AgentConnection(to: server, keys: keys)
        let refusal = await #expect(throws: Refusal.self) {
            try await link.request(.devices(Empty()), timeout: .seconds(10))
        }
        #expect(refusal?.code == .notFound)
        let wrong = await #expect(throws: Refusal.self) {
            try await link.request(.heartbeat(Empty()), timeout: .seconds(10))
        }
        #expect(wrong?.code == .malformed && wrong?.message.contains("cam-1") == true)
        let foreign = await #expect(throws: Refusal.self) {
            try await link.request(.status(LinkSamples.status), timeout: .seconds(10))
        }
        #expect(foreign?.message.contains("is no request") == true)
        await link.close()
        try await server.stop()
    }

    @Test("A long command doesn't hold up a short one, and is done once though it is repeated")
    func concurrent() async throws {
        let gate = Mailbox<Bool>()
        let server = try await ServerFixture(trusting: [keys.publicKey]) { message in
            if case .abort = message { await gate.wait { !$0.isEmpty } }
            return nil
        }
        let link = try await AgentConnection(to: server, keys: keys)
        let long = LinkSamples.abort()
        async let slow = link.request(long, timeout: .seconds(30))
        await server.commands.wait { $0.contains { $0.0 == long } }
        // More than two repetitions pass meanwhile.
        let start = HostClock.now
        while HostClock.now - start < .milliseconds(1200) {
            _ = try await link.request(.heartbeat(Empty()), timeout: .seconds(5))
        }
        gate.put(true)
        guard case .aborted = try await slow else { throw Refusal(.internalError, "not aborted") }
        #expect(server.commands.values.count { $0.0 == long } == 1)
        #expect(await server.server.statistics.repeated >= 2)
        await link.close()
        try await server.stop()
    }

    @Test("The same frames ten times: done once, answered ten times with the same bytes")
    func doneOnce() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        let peer = try await RawPeer(
            .dealer, security: .curveClient(server: server.keys.publicKey, keys: keys), connect: server.commandPort)
        let frames = try MessageCodec.encode(Envelope(message: LinkSamples.abort()))
        try await peer.send(frames)
        await peer.received.wait { $0.count == 1 }
        for _ in 1..<10 { try await peer.send(frames) }
        await peer.received.wait { $0.count == 10 }
        #expect(Set(peer.received.values.map(\.frames)).count == 1)
        #expect(server.commands.values.count == 1)
        await peer.close()
        try await server.stop()
    }

    @Test("Too much at once is refused, and what is under way goes on")
    func tooMany() async throws {
        let gate = Mailbox<Bool>()
        let server = try await ServerFixture(trusting: [keys.publicKey]) { _ in
            await gate.wait { !$0.isEmpty }
            return nil
        }
        let peer = try await RawPeer(
            .dealer, security: .curveClient(server: server.keys.publicKey, keys: keys), connect: server.commandPort)
        for _ in 0..<70 { try await peer.send(MessageCodec.encode(Envelope(message: LinkSamples.abort()))) }
        await peer.received.wait { $0.count == 6 }
        gate.put(true)
        await peer.received.wait { $0.count == 70 }
        let kinds = try peer.received.values.map { try MessageCodec.decode($0.frames).message.kind }
        #expect(kinds.count { $0 == .refused } == 6 && kinds.count { $0 == .aborted } == 64)
        await peer.close()
        try await server.stop()
    }

    @Test("A server that restarts in the middle: the command is answered, events come on, bulk follows its new port")
    func restart() async throws {
        let agentKeys = CurveKeyPair.generate()
        let first = try await ServerFixture(keys: agentKeys, trusting: [keys.publicKey]) { message in
            guard case .abort = message else { return nil }
            // The end of the server cancels it; an answer can't be sent then.
            try? await EventLoop(name: "hang").sleep(for: .seconds(3600))
            return nil
        }
        let port = first.commandPort
        let link = try await AgentConnection(to: first, keys: keys)
        let events = link.collect()
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        let chunk = ChunkRequest(
            episode: EpisodeID(unchecked: "ep_20260101_000000_abcdef"), path: "a.mp4", offset: 3, length: 1000)
        #expect(try await link.fetch(chunk, timeout: .seconds(10)) == LinkSamples.bytes(from: 3, count: 1000))
        let command = LinkSamples.abort()
        async let answer = link.request(command, timeout: .seconds(30))
        await first.commands.wait { $0.contains { $0.0 == command } }
        try await first.stop()
        await events.wait { $0.contains { if case .disconnected = $0 { true } else { false } } }
        let second = try await ServerFixture(port: port, keys: agentKeys, trusting: [keys.publicKey])
        guard case .aborted = try await answer else { throw Refusal(.internalError, "not aborted") }
        #expect(second.server.bulkPort != first.server.bulkPort)
        #expect(try await link.fetch(chunk, timeout: .seconds(10)) == LinkSamples.bytes(from: 3, count: 1000))
        // The connection has said hello by itself.
        await second.commands.wait { $0.contains { $0.0 == LinkSamples.hello } }
        while await second.server.statistics.subscribers == 0 { await Task.yield() }
        await second.server.publish(LinkSamples.event(1))
        await events.wait { $0.contains(.event(LinkSamples.event(1))) }
        #expect(events.values.count { $0 == .connected } == 2)
        await link.close()
        try await second.stop()
    }

    @Test("A server that isn't there yet: the request waits for it, or ends with a sentence")
    func absent() async throws {
        let agentKeys = CurveKeyPair.generate()
        let probe = try await ServerFixture(keys: agentKeys, trusting: [keys.publicKey])
        let port = probe.commandPort
        try await probe.stop()
        let link = try await AgentConnection(to: probe, keys: keys)
        let error = await #expect(throws: LinkError.self) {
            try await link.request(.heartbeat(Empty()), timeout: .milliseconds(300))
        }
        #expect(error?.description.contains("heartbeat on host cam-1") == true)
        async let answer = link.request(.heartbeat(Empty()), timeout: .seconds(30))
        let server = try await ServerFixture(port: port, keys: agentKeys, trusting: [keys.publicKey])
        #expect(try await answer == .status(LinkSamples.status))
        await link.close()
        try await server.stop()
    }

    @Test("Of several addresses the one that answers with the right key is used, and nobody is blamed for the others")
    func severalAddresses() async throws {
        let right = try await ServerFixture(at: "127.0.0.1", trusting: [keys.publicKey])
        let wrong = try await ServerFixture(at: "127.0.0.2", port: right.commandPort, trusting: [keys.publicKey])
        let addresses = try ["127.0.0.3", "::1", "127.0.0.2", "127.0.0.1"].map(LinkSamples.address)
        let link = try await AgentConnection(
            host: LinkSamples.host, addresses: addresses, commandPort: right.commandPort,
            serverKey: right.keys.publicKey, keys: keys)
        let events = link.collect()
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        await events.wait { $0.contains(.connected) }
        #expect(events.values == [.connected])
        #expect(wrong.commands.values.isEmpty)
        await link.close()
        try await right.stop()
        try await wrong.stop()
    }

    @Test("A host that is found elsewhere is followed: at once when it isn't connected, else when it is lost")
    func moved() async throws {
        let agentKeys = CurveKeyPair.generate()
        let first = try await ServerFixture(keys: agentKeys, trusting: [keys.publicKey])
        let link = try await AgentConnection(
            host: LinkSamples.host, addresses: ["127.0.0.3", "127.0.0.4"].map(LinkSamples.address),
            commandPort: 9, serverKey: agentKeys.publicKey, keys: keys)
        let events = link.collect()
        async let early = link.request(LinkSamples.hello, timeout: .seconds(30))
        try await link.move(to: [LinkSamples.address("127.0.0.1")], commandPort: first.commandPort)
        guard case .welcome = try await early else { throw Refusal(.internalError, "no welcome") }
        let second = try await ServerFixture(at: "127.0.0.2", keys: agentKeys, trusting: [keys.publicKey])
        try await link.move(
            to: ["127.0.0.5", "127.0.0.2"].map(LinkSamples.address), commandPort: second.commandPort)
        _ = try await link.request(.heartbeat(Empty()), timeout: .seconds(10))
        #expect(second.commands.values.isEmpty)
        try await first.stop()
        #expect(try await link.request(.heartbeat(Empty()), timeout: .seconds(30)) == .status(LinkSamples.status))
        #expect(!second.commands.values.isEmpty)
        #expect(!events.values.contains { $0.wrongKeyText != nil })
        await link.close()
        try await second.stop()
    }

    @Test("A request ends when its task is cancelled and when the link is closed")
    func cancelled() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey]) { _ in
            try? await EventLoop(name: "hang").sleep(for: .seconds(3600))
            return nil
        }
        let link = try await AgentConnection(to: server, keys: keys)
        let first = Task { try await link.request(LinkSamples.abort(), timeout: .seconds(3600)) }
        await server.commands.wait { $0.count == 1 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let second = Task { try await link.request(LinkSamples.abort(), timeout: .seconds(3600)) }
        await server.commands.wait { $0.count == 2 }
        await link.close()
        await #expect(throws: LinkError.closed) { try await second.value }
        await #expect(throws: LinkError.closed) { try await link.request(.heartbeat(Empty()), timeout: .seconds(1)) }
        await link.close()
        try await server.stop()
    }

    @Test("A port that is taken is named")
    func portInUse() async throws {
        let server = try await ServerFixture(trusting: [])
        await #expect(throws: LinkSetupError.portInUse(server.commandPort)) {
            try await ServerFixture(port: server.commandPort, trusting: [])
        }
        try await server.stop()
    }

    @Test("A hundred links come and go, and leave no descriptor behind")
    func noLeak() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        func cycle() async throws {
            let link = try await AgentConnection(to: server, keys: keys)
            _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
            await link.close()
        }
        for _ in 0..<5 { try await cycle() }
        let before = try Files.list("/proc/self/fd").count
        for _ in 0..<95 { try await cycle() }
        // Other tests run beside this one, and libzmq closes on its own thread; a leak would be hundreds.
        #expect(try Files.list("/proc/self/fd").count < before + 190)
        try await server.stop()
    }

    @Test("A program exits at once though a link still tries and a request waits")
    func exitTest() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let runtime = LinkRuntime()
            let link = try await AgentConnection(
                host: HostID(unchecked: "x"), addresses: [LinkSamples.address("127.0.0.1")], commandPort: 9,
                serverKey: CurveKeyPair.generate().publicKey, keys: .generate(), runtime: runtime)
            let server = try await CommandServer(
                options: CommandServer.Options(commandPort: 0, keys: .generate()), allows: { _ in nil })
            Task { try await server.run(command: { e, _ in e }, bulk: { e, _ in e }) }
            await #expect(throws: LinkError.self) {
                try await link.request(.heartbeat(Empty()), timeout: .milliseconds(50))
            }
            Task { try await link.request(.heartbeat(Empty()), timeout: .seconds(3600)) }
            exitNow(7)
        }
    }
}
