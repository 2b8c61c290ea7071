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

/// The program itself, as a process.
@Suite(.timeLimit(.minutes(1)))
struct AgentProgramTests {
    /// Beside the test bundle, where the build puts it.
    private static var program: String? {
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
        return ["\(folder)/downbeat-agent", "\(folder)/../downbeat-agent"].first { Files.exists($0) }
    }

    private func run(_ words: [String], home: String) throws -> (status: Int32, out: String, errors: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(Self.program))
        process.arguments = words
        process.environment = ["DOWNBEAT_HOME": home, "HOME": home, "PATH": "/usr/bin:/bin"]
        let (out, errors) = (Pipe(), Pipe())
        (process.standardOutput, process.standardError) = (out, errors)
        try process.run()
        let text = out.fileHandleForReading.readDataToEndOfFile()
        let complaint = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (
            process.terminationStatus, String(decoding: text, as: UTF8.self), String(decoding: complaint, as: UTF8.self)
        )
    }

    @Test(
        "exit codes and sentences",
        arguments: [
            (["--help"], 0, "Example:"), (["run", "--help"], 0, "Example:"), (["--version"], 0, "downbeat-agent 0."),
            (["join", "--help"], 0, "TOKEN"), (["devices", "--help"], 0, "--json"),
            (["recover"], 0, "nothing to repair"),
            (["fly"], 2, "is no command"), ([], 2, "a command is needed"), (["run", "--speed"], 2, "is not an option"),
            (["join"], 2, "a TOKEN is needed"), (["join", "abc"], 1, "isn't a join token"),
            (["run"], 3, "no configuration was found"), (["run", "--config", "/nowhere"], 3, "No such file"),
            (["devices", "--json"], 0, "\"attached\""),
        ] as [([String], Int32, String)])
    func exits(_ words: [String], _ status: Int32, _ text: String) throws {
        let folder = try TemporaryFolder()
        let result = try run(words, home: folder.path)
        #expect(result.status == status)
        #expect((result.out + result.errors).contains(text))
    }

    @Test("SIGTERM ends it with exit code 0, and a second agent on the same home is refused")
    func signal() throws {
        let folder = try TemporaryFolder()
        let config = folder.path + "/agent.json5"
        try AtomicFile.write("{ host_id: 'left', streams: [ { id: 'imu', kind: 'emulated-imu' } ] }", to: config)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(Self.program))
        process.arguments = ["run", "--config", config, "--home", folder.path + "/home"]
        let out = Pipe()
        process.standardOutput = out
        try process.run()
        // The line that says that it is ready.
        var text = ""
        while !text.contains("ready on port") {
            let part = out.fileHandleForReading.availableData
            if part.isEmpty { break }
            text += String(decoding: part, as: UTF8.self)
        }
        #expect(text.contains("downbeat-agent: host left ready on port"))
        let second = try run(["run", "--config", config, "--home", folder.path + "/home"], home: folder.path)
        #expect(second.status == 4)
        #expect(second.errors.contains("another agent runs"))
        process.terminate()
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 0)
    }
}
