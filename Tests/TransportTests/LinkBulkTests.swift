internal import Platform
internal import Protocol
internal import Testing
internal import Timing

@testable internal import Transport

@Suite("Bulk and events on the link", .serialized, .timeLimit(.minutes(1)))
struct LinkBulkTests {
    private let keys = CurveKeyPair.generate()
    private let episode = EpisodeID(unchecked: "ep_20260101_000000_abcdef")

    private func chunk(_ offset: Int64, _ length: Int, path: String = "日 本/a.b.mp4") -> ChunkRequest {
        ChunkRequest(episode: episode, path: path, offset: offset, length: length)
    }

    @Test("Forty chunks of 1 MiB that are all asked for at once come whole, while heartbeats are answered")
    func manyChunks() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        let link = try await AgentConnection(to: server, keys: keys)
        // Asked for before the bulk port is known.
        async let early = link.fetch(chunk(5, 100), timeout: .seconds(30))
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        #expect(try await early == LinkSamples.bytes(from: 5, count: 100))
        let size = 1 << 20
        try await withThrowingTaskGroup(of: (Int64, [UInt8]).self) { group in
            for index in 0..<40 {
                let request = chunk(Int64(index * size), size)
                group.addTask { (request.offset, try await link.fetch(request, timeout: .seconds(40))) }
            }
            _ = try await link.request(.heartbeat(Empty()), timeout: .seconds(5))
            for try await (offset, bytes) in group {
                #expect(bytes.count == size && bytes.prefix(64) == LinkSamples.bytes(from: offset, count: 64)[...])
            }
        }
        #expect(await server.server.statistics.unsent == 0)
        await link.close()
        try await server.stop()
    }

    @Test("The largest chunk passes, a larger one is refused here, an absent file there")
    func limits() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        let link = try await AgentConnection(to: server, keys: keys)
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        let largest = MessageCodec.maximumAttachment
        #expect(try await link.fetch(chunk(0, largest), timeout: .seconds(30)).count == largest)
        await #expect(throws: ProtocolError.self) { try await link.fetch(chunk(0, largest + 1), timeout: .seconds(5)) }
        let refusal = await #expect(throws: Refusal.self) {
            try await link.fetch(chunk(0, 1, path: "absent"), timeout: .seconds(5))
        }
        #expect(refusal?.code == .notFound)
        await link.close()
        try await server.stop()
    }

    @Test("Bytes of another place, or more than asked for, aren't taken for the answer")
    func wrongBytes() async throws {
        let server = try await ServerFixture(
            trusting: [keys.publicKey],
            bulk: { envelope in
                guard case .chunk(let request) = envelope.message else { return envelope }
                let shift: Int64 = request.path == "shifted" ? 1 : 0
                let count = request.path == "long" ? request.length + 1 : request.length
                let header = ChunkHeader(path: request.path, offset: request.offset + shift)
                return envelope.answer(.chunkData(header), attachments: [[UInt8](repeating: 0, count: count)])
            })
        let link = try await AgentConnection(to: server, keys: keys)
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        for path in ["shifted", "long"] {
            await #expect(throws: Refusal.self) { try await link.fetch(chunk(0, 10, path: path), timeout: .seconds(5)) }
        }
        #expect(try await link.fetch(chunk(0, 10, path: "good"), timeout: .seconds(5)).count == 10)
        await link.close()
        try await server.stop()
    }

    @Test("A command on the bulk port and a chunk on the command port are refused with the right port")
    func wrongPort() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        let security = ZMQSecurity.curveClient(server: server.keys.publicKey, keys: keys)
        for (port, message, right) in [
            (server.server.bulkPort, LinkSamples.abort(), server.commandPort),
            (server.commandPort, Message.chunk(chunk(0, 1)), server.server.bulkPort),
        ] {
            let peer = try await RawPeer(.dealer, security: security, connect: port)
            try await peer.send(MessageCodec.encode(Envelope(message: message)))
            await peer.received.wait { !$0.isEmpty }
            guard case .refused(let refusal) = try MessageCodec.decode(peer.received.values[0].frames).message else {
                throw Refusal(.internalError, "not refused")
            }
            #expect(refusal.message.contains("\(right)"))
            await peer.close()
        }
        #expect(server.commands.values.isEmpty)
        try await server.stop()
    }

    @Test("Events go to who said hello, in order; who didn't gets none")
    func events() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        let link = try await AgentConnection(to: server, keys: keys)
        let silent = try await AgentConnection(to: server, keys: keys)
        let (heard, unheard) = (link.collect(), silent.collect())
        _ = try await silent.request(.heartbeat(Empty()), timeout: .seconds(10))
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        for number in 0..<100 { await server.server.publish(LinkSamples.event(number)) }
        await heard.wait { $0.count == 101 }
        #expect(heard.values.dropFirst() == (0..<100).map { .event(LinkSamples.event($0)) }[...])
        _ = try await silent.request(.heartbeat(Empty()), timeout: .seconds(10))
        #expect(unheard.values == [.connected])
        await link.close()
        await silent.close()
        try await server.stop()
    }

    @Test("A coordinator whose events nobody takes keeps the newest and counts the others")
    func idleConsumer() async throws {
        let server = try await ServerFixture(trusting: [keys.publicKey])
        let link = try await AgentConnection(to: server, keys: keys)
        _ = try await link.request(LinkSamples.hello, timeout: .seconds(10))
        for number in 0..<1000 {
            await server.server.publish(LinkSamples.event(number))
            // In step, so that the socket's own limit plays no part.
            if number % 100 == 99 { _ = try await link.request(.heartbeat(Empty()), timeout: .seconds(10)) }
        }
        await link.close()
        var events: [LinkEvent] = []
        for await event in link.events { events.append(event) }
        // 1000 events and 'connected', of which 256 are kept.
        #expect(events.first == .dropped(745))
        #expect(events.dropFirst().last == .event(LinkSamples.event(999)) && events.count == 257)
        try await server.stop()
    }

    @Test("A peer that stops reading misses events, which are counted and told to it; others miss none")
    func stalledPeer() async throws {
        let server = try await ServerFixture(
            trusting: [keys.publicKey],
            configure: { options in
                options.highWater = 8
                // Else the peer, which is silent as well, would be disconnected after three seconds.
                options.silence = .seconds(120)
            })
        let honest = try await AgentConnection(to: server, keys: keys)
        let heard = honest.collect()
        _ = try await honest.request(LinkSamples.hello, timeout: .seconds(10))
        let stalled = try await RawPeer(
            .dealer, security: .curveClient(server: server.keys.publicKey, keys: keys), connect: server.commandPort,
            reads: false)
        try await stalled.send(MessageCodec.encode(Envelope(message: LinkSamples.hello)))
        while await server.server.statistics.subscribers < 2 { await Task.yield() }
        // 100 kB each: the kernel holds some MB, far from all.
        for number in 0..<150 {
            await server.server.publish(LinkSamples.event(number, padding: 100_000))
            if number % 4 == 3 { _ = try await honest.request(.heartbeat(Empty()), timeout: .seconds(20)) }
        }
        let statistics = await server.server.statistics
        #expect(statistics.eventsMissed > 0 && statistics.eventsMissed < 150)
        await heard.wait { $0.count { if case .event = $0 { true } else { false } } == 150 }
        // It comes back, and in the end it was told of every event that it missed.
        try await stalled.read()
        var told = 0
        while await told != server.server.statistics.eventsMissed {
            await server.server.publish(LinkSamples.event(150))
            _ = try await honest.request(.heartbeat(Empty()), timeout: .seconds(20))
            told = stalled.received.values.compactMap(Self.missed).reduce(0, +)
        }
        await stalled.close()
        await honest.close()
        try await server.stop()
    }

    /// What an event says about a gap before it; the long ones say nothing.
    private static func missed(_ message: ZMQMessage) -> Int? {
        guard message.frames.count == 2, message.frames[1].count < 1000,
            case .event(let event)? = (try? MessageCodec.decode(message.frames))?.message,
            event.message.contains("were lost")
        else { return nil }
        return Int(event.message.prefix { $0 != " " })
    }
}
