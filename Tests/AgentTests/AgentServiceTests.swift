internal import Foundation
internal import Platform
internal import Protocol
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Timing
internal import Transport

@testable internal import Agent

/// The whole agent with its sockets, as a coordinator meets it over the loopback.
@Suite(.timeLimit(.minutes(1)))
struct AgentServiceTests {
    /// What the service says, and who waits for which line.
    final class Lines: Sendable {
        let stream: AsyncStream<String>
        private let sink: AsyncStream<String>.Continuation

        init() { (stream, sink) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(256)) }

        @Sendable func say(_ line: String) { sink.yield(line) }
    }

    private static func first(_ lines: inout AsyncStream<String>.Iterator, containing text: String) async throws
        -> String
    {
        while let line = await lines.next(isolation: nil) {
            if line.contains(text) { return line }
        }
        throw AgentFixture.Unexpected()
    }

    private static func configuration(_ folder: TemporaryFolder) throws -> AgentConfiguration {
        let text = """
            {
                host_id: "left", reserve_bytes: 1048576, listen: { address: "127.0.0.1" }, speaker: { kind: "emulated" },
                air: { folder: "\(folder.path)/air" }, streams: [ \(AgentFixture.emulated) ],
            }
            """
        return try AgentConfiguration(file: "test", text: Array(text.utf8))
    }

    @Test("join, connect, record and fetch over CURVE; a stranger's key is refused by name")
    func overTheWire() async throws {
        let folder = try TemporaryFolder()
        let home = AgentHome(folder.path + "/home")
        let lines = Lines()
        var said = lines.stream.makeAsyncIterator()
        let (end, ender) = AsyncStream.makeStream(of: String.self)
        let service = AgentService(try Self.configuration(folder), home: home, say: lines.say)
        let running = Task { try await service.run(until: end) }
        let ready = try await Self.first(&said, containing: "ready on port")
        let port = try #require(UInt16(ready.split(separator: " ").drop { $0 != "port" }.dropFirst().first ?? ""))

        // Pairing beside the running agent.
        let keys = CurveKeyPair.generate()
        let token = JoinToken(
            coordinator: AgentFixture.coordinator, name: "desk", key: keys.publicKey, secret: SecureRandom.bytes(16))
        #expect(try AgentTasks.join(token.text, home: home).contains("desk"))
        _ = try await Self.first(&said, containing: "is trusted from now on")

        let agentKey = try AgentTrust.load(home: home.path).keys.publicKey
        let address = try #require(NetworkAddress("127.0.0.1"))
        let link = try await AgentConnection(
            host: HostID(unchecked: "left"), addresses: [address], commandPort: port, serverKey: agentKey, keys: keys)
        let hello = Message.hello(Hello(coordinator: AgentFixture.coordinator, name: "desk", version: "0"))
        guard case .welcome(let welcome) = try await link.request(hello, timeout: .seconds(20)) else {
            throw AgentFixture.Unexpected()
        }
        #expect(welcome.clockPort != 0 && welcome.bulkPort != port)
        try await record(link, home)
        await link.close()

        // A key that nobody joined.
        let stranger = try await AgentConnection(
            host: HostID(unchecked: "left"), addresses: [address], commandPort: port, serverKey: agentKey,
            keys: CurveKeyPair.generate())
        await #expect(throws: (any Error).self) { try await stranger.request(hello, timeout: .seconds(3)) }
        _ = try await Self.first(&said, containing: "127.0.0.1")
        await stranger.close()

        ender.yield("SIGTERM")
        try await running.value
    }

    private func record(_ link: AgentConnection, _ home: AgentHome) async throws {
        let lease = LeaseRequest(coordinator: AgentFixture.coordinator, name: "desk", length: .seconds(30))
        _ = try await link.request(.lease(lease), timeout: .seconds(5))
        let id = UniqueID.random()
        let plan = TakePlan(
            take: id, session: SessionID(unchecked: "s"),
            episode: EpisodeID(unchecked: "ep_20260401_120000_\(id.rawValue.prefix(6))"), task: "", participant: "",
            role: .leader, leader: HostID(unchecked: "left"), chirp: .off, policy: .strict, reserveBytes: 0,
            startTimeout: .seconds(5), armTimeout: .seconds(10))
        guard case .armed = try await link.request(.arm(plan), timeout: .seconds(10)) else {
            throw AgentFixture.Unexpected()
        }
        let start = HostClock.now + .milliseconds(400)
        let commit = Commit(take: id, start: start, bound: .zero, limit: start + .seconds(20))
        _ = try await link.request(.commit(commit), timeout: .seconds(5))
        for await event in link.events {
            guard case .event(let event) = event else { continue }
            if event.kind == .allStreaming {
                let stop = StopCommand(take: id, stop: HostClock.now + .milliseconds(200), reason: "duration")
                _ = try await link.request(.stop(stop), timeout: .seconds(5))
            }
            if event.kind == .takeFinished { break }
        }
        let request = IngestRequest(episode: plan.episode)
        guard case .fileList(let list) = try await link.request(.ingest(request), timeout: .seconds(10)) else {
            throw AgentFixture.Unexpected()
        }
        #expect(list.files.count == 8)
        for file in list.files {
            var bytes: [UInt8] = []
            while bytes.count < file.size {
                bytes += try await link.fetch(
                    ChunkRequest(episode: plan.episode, path: file.path, offset: Int64(bytes.count), length: 1 << 20),
                    timeout: .seconds(10))
            }
            #expect(SHA256.of(bytes) == file.sha256)
        }
        _ = try await link.request(.ingested(request), timeout: .seconds(5))
    }
}
