internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

@Suite(.timeLimit(.minutes(1)))
struct FailureTests {
    @Test("strict: one device that fails rolls all of them back, and is named with its cure")
    func rollback() async throws {
        let (good, bad) = (FakeDevice("good"), FakeDevice("bad", .failsToOpen))
        let fixture = try await AgentFixture(devices: [good, bad])
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        for round in 1...2 {
            let refusal = await #expect(throws: Refusal.self) { try await fixture.ask(.arm(plan)) }
            #expect(refusal?.code == .deviceFailed)
            #expect(refusal?.message.contains("cheese") == true && refusal?.message.contains("good") == true)
            #expect(refusal?.streams?.map { $0.error == nil } == [true, false])
            #expect(good.calls == FakeDevice.Calls(opened: round, started: round, stopped: round, closed: round))
            #expect(try await fixture.status().state == .idle)
        }
        #expect(try Files.list(fixture.home.episodes).isEmpty)
    }

    @Test("warn: the take goes on without it and says so")
    func warn() async throws {
        let (good, bad) = (FakeDevice("good"), FakeDevice("bad", .failsToOpen))
        let fixture = try await AgentFixture(devices: [good, bad])
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(policy: .warn, chirp: .off)
        let commit = try await fixture.start(plan, lead: 0.2)
        #expect(try await events.wait(for: .streamFailed).stream?.rawValue == "bad")
        for i in 0..<10 { good.deliver(at: commit.start + .milliseconds(Int64(i) * 10)) }
        _ = try await events.wait(for: .allStreaming)
        try await fixture.ask(.stop(StopCommand(take: plan.take, stop: HostClock.now, reason: "duration")))
        let report = try #require(try await events.wait(for: .takeFinished).stop)
        #expect(report.streams.map(\.id.rawValue) == ["good", "bad"])
        #expect(report.streams.map(\.samples) == [10, 0])
        #expect(report.errors.contains { $0.contains("cheese") })
        let manifest = try Outside.json(fixture.episode(plan) + "/manifest.json")
        let states = (manifest["streams"] as? [[String: Any]])?.map { $0["status"] as? String }
        #expect(states?.contains("failed") == true)
    }

    @Test("a device that hangs is given up after the time that the plan gives it")
    func hanging() async throws {
        let (good, hung) = (FakeDevice("good"), FakeDevice("hung", .hangs))
        let fixture = try await AgentFixture(devices: [good, hung])
        try await fixture.takeLease()
        let refusal = await #expect(throws: Refusal.self) {
            try await fixture.ask(.arm(fixture.plan(chirp: .off, startTimeout: 0.2)))
        }
        #expect(refusal?.message.contains("hung") == true && refusal?.message.contains("0.2 s") == true)
        // While it hangs it isn't touched again.
        let again = await #expect(throws: Refusal.self) {
            try await fixture.ask(.arm(fixture.plan(chirp: .off, startTimeout: 0.2)))
        }
        #expect(again?.message.contains("hangs") == true)
        #expect(hung.calls.opened == 1)
        hung.release()
    }

    @Test("a device that breaks in the take leaves its samples; the others go on")
    func breaks() async throws {
        let (good, bad) = (FakeDevice("good"), FakeDevice("bad"))
        let fixture = try await AgentFixture(devices: [good, bad])
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        let commit = try await fixture.start(plan, lead: 0.2)
        for i in 0..<5 { bad.deliver(at: commit.start + .milliseconds(Int64(i) * 10)) }
        bad.report(.lost(count: 3, before: commit.start + .milliseconds(80)))
        bad.deliver(at: commit.start + .milliseconds(80))
        good.deliver(at: commit.start)
        _ = try await events.wait(for: .allStreaming)
        bad.report(.failed("the cable was pulled"))
        #expect(try await events.wait(for: .streamFailed).message == "the cable was pulled")
        let end = commit.start + .milliseconds(1500)
        try await fixture.ask(.stop(StopCommand(take: plan.take, stop: end, reason: "duration")))
        good.deliver(at: commit.start + .milliseconds(1490))
        good.deliver(at: end)
        let report = try #require(try await events.wait(for: .takeFinished).stop)
        let streams = Dictionary(uniqueKeysWithValues: report.streams.map { ($0.id.rawValue, $0) })
        #expect(streams["bad"]?.samples == 6 && streams["bad"]?.dropped == 3)
        // T1 itself is outside.
        #expect(streams["good"]?.samples == 2)
        let manifest = try Outside.json(fixture.episode(plan) + "/manifest.json")
        let entries = try #require(manifest["streams"] as? [[String: Any]])
        let entry = try #require(entries.first { $0["stream_id"] as? String == "bad" })
        #expect(entry["status"] as? String == "truncated")
        #expect(
            (entry["truncated_at_ns"] as? NSNumber)?.int64Value == (commit.start + .milliseconds(80)).nanoseconds)
        #expect((entry["gaps"] as? [[String: Any]])?.count == 1)
    }

    @Test("when every stream has failed the take ends by itself")
    func allFail() async throws {
        let only = FakeDevice("only")
        let fixture = try await AgentFixture(devices: [only])
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        let commit = try await fixture.start(plan, lead: 0.2)
        only.deliver(at: commit.start)
        _ = try await events.wait(for: .allStreaming)
        only.report(.failed("gone"))
        #expect(try await events.wait(for: .takeFinished).stop?.reason == "every stream has failed")
    }

    @Test("a stall is told, and its end")
    func stall() async throws {
        let device = FakeDevice("imu")
        let fixture = try await AgentFixture(devices: [device])
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        try await fixture.ask(.arm(fixture.plan(chirp: .off)))
        device.deliver()
        #expect(try await events.wait(for: .streamStalled).stream?.rawValue == "imu")
        #expect(try await fixture.status().streams.first?.state == .stalled)
        device.deliver()
        _ = try await events.wait(for: .streamRecovered)
    }

    @Test("below the reserve nothing is armed")
    func reserve() async throws {
        let fixture = try await AgentFixture(devices: [FakeDevice("imu")])
        try await fixture.takeLease()
        let refusal = await #expect(throws: Refusal.self) {
            try await fixture.ask(.arm(fixture.plan(chirp: .off, reserve: 1 << 60)))
        }
        #expect(refusal?.code == .diskFull)
        #expect(try await fixture.status().state == .idle)
    }

    @Test("a host without streams can't be armed")
    func noStreams() async throws {
        let fixture = try await AgentFixture(devices: [])
        try await fixture.takeLease()
        let refusal = await #expect(throws: Refusal.self) { try await fixture.ask(.arm(fixture.plan())) }
        #expect(refusal?.message.contains("no streams") == true)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct RecoveryTests {
    @Test("a program that was killed in a take repairs it at the next start and offers it")
    func killed() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        _ = try await fixture.start(plan, lead: 0.3)
        _ = try await events.wait(for: .allStreaming)
        // What a kill -9 leaves is what lies on the disk at that moment: a copy of it is another agent's home.
        let folder = try TemporaryFolder()
        // Two fragments of the camera's file, each of a second, must be there.
        var status = try await fixture.status()
        while (status.streams.first?.bytes ?? 0) < 1 || (status.streams.first?.samples ?? 0) < 75 {
            status = try await fixture.status()
            await Task.yield()
        }
        _ = try Outside.run(["cp", "-r", fixture.home.path, folder.path + "/home"])
        await fixture.agent.shutDown(reason: "test")

        let second = try await AgentFixture(in: folder)
        let snapshot = try await second.snapshot()
        #expect(snapshot.episodes.map(\.episode) == [plan.episode])
        #expect(snapshot.episodes.map(\.progress) == [.recovered])
        let copy = second.episode(plan)
        let manifest = try Outside.json("\(copy)/manifest.json")
        #expect(manifest["status"] as? String == "recovered")
        #expect(try Outside.frames("\(copy)/cam.mp4") >= 30)
        #expect(try Outside.rows("\(copy)/imu.jsonl").count > 200)
        #expect(try Outside.soundFrames("\(copy)/host_audio.wav") > 48_000)
        guard case .fileList(let list) = try await second.ask(.ingest(IngestRequest(episode: plan.episode))) else {
            throw AgentFixture.Unexpected()
        }
        #expect(list.files.contains { $0.path == "cam.mp4" })
        // The coordinator that still thinks that it records is told that it doesn't.
        try await second.takeLease()
        let stop = Message.stop(StopCommand(take: plan.take, stop: HostClock.now, reason: "operator"))
        #expect(try await second.ask(stop).kind == .stopping)
        // Once more changes nothing.
        #expect(try await AgentTasks.recover(home: second.home, host: HostID(unchecked: "left")).isEmpty)
    }

    @Test("a program that was killed between commit and T0 leaves nothing")
    func killedBeforeStart() async throws {
        let fixture = try await AgentFixture()
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        _ = try await fixture.start(plan, lead: 30)
        let folder = try TemporaryFolder()
        _ = try Outside.run(["cp", "-r", fixture.home.path, folder.path + "/home"])
        await fixture.agent.shutDown(reason: "test")
        let second = try await AgentFixture(in: folder)
        #expect(try await second.snapshot().episodes.isEmpty)
        #expect(!Files.exists(second.episode(plan)))
        #expect(try Files.list(second.home.takes).isEmpty)
    }

    @Test("an episode without a record, and a record that is no JSON, are found again")
    func orphans() async throws {
        let folder = try TemporaryFolder()
        let home = AgentHome(folder.path + "/home")
        try home.make()
        let episode = EpisodeID(unchecked: "ep_20260401_120000_abcdef")
        try Files.makeFolder(home.episode(episode))
        try AtomicFile.write(
            "{\"frame_number\":0,\"capture_ns\":5,\"channels\":{\"x\":1}}\n{\"frame_nu",
            to: home.episode(episode) + "/imu.jsonl")
        try AtomicFile.write("{", to: "\(home.takes)/\(UniqueID.random()).json")
        let sentences = try await AgentTasks.recover(home: home, host: HostID(unchecked: "left"))
        #expect(sentences.count == 1 && sentences[0].contains("ep_20260401_120000_abcdef"))
        #expect(try Files.list(home.takes).filter { $0.hasSuffix(".broken") }.count == 1)
        #expect(try Outside.rows(home.episode(episode) + "/imu.jsonl").count == 1)
        let second = try await AgentFixture(devices: [], in: folder)
        #expect(try await second.snapshot().episodes.map(\.progress) == [.recovered])
    }
}

@Suite(.timeLimit(.minutes(1)))
struct EpisodeArchiveTests {
    private static let episode = EpisodeID(unchecked: "ep_20260401_120000_abcdef")

    private func archive(_ folder: TemporaryFolder) throws -> EpisodeArchive {
        let home = AgentHome(folder.path)
        try Files.makeFolder(home.episode(Self.episode) + "/deep er/ä")
        try AtomicFile.write("secret", to: folder.path + "/secret")
        try AtomicFile.write("0123456789", to: home.episode(Self.episode) + "/a.txt")
        try AtomicFile.write("x", to: home.episode(Self.episode) + "/deep er/ä/b. c")
        try AtomicFile.write("half", to: home.episode(Self.episode) + "/c.part")
        let inside = home.episode(Self.episode)
        try FileManager.default.createSymbolicLink(
            atPath: inside + "/link", withDestinationPath: folder.path + "/secret")
        try FileManager.default.createSymbolicLink(atPath: inside + "/up", withDestinationPath: folder.path)
        _ = try Outside.run(["mkfifo", inside + "/pipe"])
        return EpisodeArchive(home: home, host: HostID(unchecked: "left"))
    }

    @Test("regular files are listed with the hashes that sha256sum prints; links and pipes are not")
    func list() async throws {
        let folder = try TemporaryFolder()
        let archive = try archive(folder)
        for _ in 0..<2 {
            let files = try await archive.list(Self.episode)
            #expect(files.map(\.path) == ["a.txt", "deep er/ä/b. c"])
            for file in files {
                #expect(try Outside.sha256("\(folder.path)/episodes/\(Self.episode)/\(file.path)") == file.sha256)
            }
        }
        // A changed file is hashed anew.
        try AtomicFile.write("changed", to: "\(folder.path)/episodes/\(Self.episode)/a.txt")
        let changed = try await archive.list(Self.episode)
        #expect(try Outside.sha256("\(folder.path)/episodes/\(Self.episode)/a.txt") == changed[0].sha256)
        await #expect(throws: Refusal.self) {
            try await archive.list(EpisodeID(unchecked: "ep_20260401_120000_000000"))
        }
    }

    @Test(
        "a path never leaves the episode",
        arguments: [
            "../../secret", "/etc/passwd", "link", "up/secret", "a.txt/..", "./a.txt", "", "deep er", "pipe", "nothing",
            "deep er//ä/b. c", "a.txt\0", String(repeating: "x", count: 300), "..", ".",
        ])
    func badPaths(_ path: String) async throws {
        let folder = try TemporaryFolder()
        let archive = try archive(folder)
        await #expect(throws: Refusal.self) {
            try await archive.chunk(ChunkRequest(episode: Self.episode, path: path, offset: 0, length: 100))
        }
    }

    @Test(
        "pieces, also beyond the end",
        arguments: [
            (0, 4, "0123"), (8, 4, "89"), (10, 4, ""), (1 << 60, 4, ""), (0, 0, nil), (-1, 4, nil), (0, -4, nil),
            (0, 5 << 20, nil), (Int64.max, 4, ""), (Int64.min, 4, nil),
        ] as [(Int64, Int, String?)])
    func pieces(_ offset: Int64, _ length: Int, _ expected: String?) async throws {
        let folder = try TemporaryFolder()
        let archive = try archive(folder)
        let request = ChunkRequest(episode: Self.episode, path: "a.txt", offset: offset, length: length)
        guard let expected else {
            await #expect(throws: Refusal.self) { try await archive.chunk(request) }
            return
        }
        #expect(try await archive.chunk(request) == Array(expected.utf8))
    }
}
