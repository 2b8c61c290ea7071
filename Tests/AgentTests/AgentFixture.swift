internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

/// One agent in this process, with a home of its own, and the coordinator's side of its conversation.
final class AgentFixture: Sendable {
    static let caller = CaptureAgent.Caller(identity: "K1", name: "desk")
    static let coordinator = UniqueID(unchecked: String(repeating: "c", count: 32))

    static let emulated = """
        { id: "cam", kind: "emulated-camera", width: 160, height: 120, rate: 30 },
        { id: "imu", kind: "emulated-imu", rate: 200 },
        { id: "host_audio", kind: "emulated-microphone", rate: 48000 },
        """

    let folder: TemporaryFolder
    let home: AgentHome
    let agent: CaptureAgent

    /// An agent whose `streams` are the lines given; it has an emulated room of its own.
    init(_ streams: String = emulated, reserve: Int64 = 1 << 20, in folder: TemporaryFolder? = nil) async throws {
        self.folder = try folder ?? TemporaryFolder()
        home = AgentHome(self.folder.path + "/home")
        let text = """
            {
                host_id: "left", reserve_bytes: \(reserve), speaker: { kind: "emulated" },
                air: { folder: "\(self.folder.path)/air", position: [0, 0, 1], noise: 0.001 },
                streams: [ \(streams) ],
            }
            """
        let configuration = try AgentConfiguration(file: "test", text: Array(text.utf8))
        agent = CaptureAgent(configuration, home: home, hostUUID: try home.hostUUID())
        try await agent.start()
        await agent.open(CaptureAgent.Ports(bulk: 1, clock: 2) { _, _ in })
    }

    /// An agent with devices of the test.
    init(devices: [any CaptureDevice], in folder: TemporaryFolder? = nil) async throws {
        self.folder = try folder ?? TemporaryFolder()
        home = AgentHome(self.folder.path + "/home")
        var configuration = AgentConfiguration(host: HostID(unchecked: "left"))
        configuration.devices = devices
        configuration.reserveBytes = 1 << 20
        agent = CaptureAgent(configuration, home: home, hostUUID: try home.hostUUID())
        try await agent.start()
    }

    /// Sends a request as the coordinator does; the answer, or the refusal thrown.
    @discardableResult
    func ask(_ message: Message, as caller: CaptureAgent.Caller = caller) async throws -> Message {
        let request = Envelope(message: message)
        let answer = await agent.answer(request, from: caller)
        #expect(answer.command == request.command)
        if case .refused(let refusal) = answer.message { throw refusal }
        return answer.message
    }

    func takeLease(seconds: Double = 30) async throws {
        try await ask(.lease(LeaseRequest(coordinator: Self.coordinator, name: "desk", length: .seconds(seconds))))
    }

    func plan(
        policy: AbsencePolicy = .strict, role: HostRole = .leader, chirp: ChirpPreset = .ultrasonic,
        reserve: Int64 = 1 << 20, startTimeout: Double = 10, armTimeout: Double = 20
    ) -> TakePlan {
        let id = UniqueID.random()
        return TakePlan(
            take: id, session: SessionID(unchecked: "monday"),
            episode: EpisodeID(unchecked: "ep_20260401_120000_\(id.rawValue.prefix(6))"), task: "pick cup",
            participant: "p1", role: role, leader: HostID(unchecked: "left"), chirp: chirp, policy: policy,
            reserveBytes: reserve, startTimeout: .seconds(startTimeout), armTimeout: .seconds(armTimeout))
    }

    /// Arms and commits; gives back T0.
    func start(_ plan: TakePlan, lead: Double = 0.5, limit: Double = 30) async throws -> Commit {
        try await ask(.arm(plan))
        let start = HostClock.now + .seconds(lead)
        let commit = Commit(take: plan.take, start: start, bound: .microseconds(20), limit: start + .seconds(limit))
        #expect(try await ask(.commit(commit)) == .committed(TakeReference(take: plan.take)))
        return commit
    }

    func status() async throws -> HostStatus {
        guard case .status(let status) = try await ask(.heartbeat(Empty())) else { throw Unexpected() }
        return status
    }

    func snapshot() async throws -> HostSnapshot {
        guard case .snapshot(let snapshot) = try await ask(.snapshotRequest(Empty())) else { throw Unexpected() }
        return snapshot
    }

    func episode(_ plan: TakePlan) -> String { home.episode(plan.episode) }

    struct Unexpected: Error {}
}

extension AsyncStream<HostEvent>.Iterator {
    /// The next event of a kind; those before it are passed over.
    mutating func wait(
        for kind: HostEvent.Kind, isolation: isolated (any Actor)? = #isolation
    ) async throws -> HostEvent {
        while let event = await next(isolation: isolation) {
            if event.kind == kind { return event }
        }
        throw AgentFixture.Unexpected()
    }
}

/// Reads what was written, with tools that are not ours.
enum Outside {
    static func rows(_ path: String) throws -> [[String: Any]] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    static func json(_ path: String) throws -> [String: Any] {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    static func stamps(_ path: String) throws -> [Int64] {
        try rows(path).map { try #require(($0["capture_ns"] as? NSNumber)?.int64Value) }
    }

    /// The frames that a decoder finds in the first video stream.
    static func frames(_ path: String) throws -> Int {
        let text = try run([
            "ffprobe", "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries",
            "stream=nb_read_frames", "-of", "csv=p=0", path,
        ])
        return try #require(Int(text.split(whereSeparator: { !$0.isNumber }).first ?? ""))
    }

    /// Sample frames of a WAV file.
    static func soundFrames(_ path: String) throws -> Int {
        let text = try run([
            "ffprobe", "-v", "error", "-show_entries", "stream=duration_ts", "-of", "csv=p=0", path,
        ])
        return try #require(Int(text.split(whereSeparator: { !$0.isNumber }).first ?? ""))
    }

    static func sha256(_ path: String) throws -> String {
        String(try run(["sha256sum", path]).prefix(64))
    }

    static func run(_ words: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self)
    }
}
