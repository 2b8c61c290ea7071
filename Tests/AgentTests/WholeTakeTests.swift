internal import Acoustics
internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

@Suite(.timeLimit(.minutes(1)))
struct WholeTakeTests {
    @Test("arm, commit, chirps, stop, ingest: the files are whole and lie between T0 and T1")
    func whole() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan()
        guard case .armed(let report) = try await fixture.ask(.arm(plan)) else { throw AgentFixture.Unexpected() }
        #expect(report.streams.map(\.stream.id.rawValue) == ["cam", "imu", "host_audio"])
        #expect(report.streams.allSatisfy { $0.error == nil })
        #expect(report.canPlayChirps && report.freeBytes > 0 && report.bytesPerSecond > 96_000)
        #expect(try await fixture.status().state == .connected)

        let commit = try await fixture.start(plan)
        #expect(try await fixture.status().state == .connected)
        _ = try await events.wait(for: .allStreaming)
        #expect(try await fixture.status().state == .recording)
        let folder = fixture.episode(plan)
        // The anchor and a first manifest are there at once.
        #expect(try Outside.json("\(folder)/manifest.json")["status"] as? String == "recording")

        let start = try await chirp(fixture, plan, .start)
        let stop = try await chirp(fixture, plan, .stop)
        let end = HostClock.now + .milliseconds(300)
        let command = Message.stop(StopCommand(take: plan.take, stop: end, reason: "operator"))
        #expect(try await fixture.ask(command).kind == .stopping)
        #expect(try await fixture.ask(command).kind == .stopping)
        let finished = try #require(try await events.wait(for: .takeFinished).stop)
        #expect(finished.reason == "operator" && finished.errors.isEmpty)
        #expect(try await fixture.status().state == .stopping)

        try check(folder, plan, commit, end: end, finished)
        let point = try Outside.json("\(folder)/sync_point.json")
        #expect((point["chirp_start_ns"] as? NSNumber)?.int64Value == start.nanoseconds)
        #expect((point["chirp_stop_ns"] as? NSNumber)?.int64Value == stop.nanoseconds)
        #expect(point["chirp_start_source"] as? String == "hardware")
        try hear(start, in: folder)
        try await ingest(fixture, plan, folder)
    }

    private func chirp(_ fixture: AgentFixture, _ plan: TakePlan, _ moment: ChirpMoment) async throws
        -> Timestamp<HostTime>
    {
        let command = ChirpCommand(take: plan.take, moment: moment, at: HostClock.now + .milliseconds(200))
        guard case .chirped(let report) = try await fixture.ask(.chirp(command)) else {
            throw AgentFixture.Unexpected()
        }
        #expect(report.source == .hardware && report.error == nil)
        let emitted = try #require(report.emitted)
        #expect((emitted - command.at).magnitude < .milliseconds(20))
        // Asked again, it is not played again.
        #expect(try await fixture.ask(.chirp(command)) == .chirped(report))
        return emitted
    }

    private func check(
        _ folder: String, _ plan: TakePlan, _ commit: Commit, end: Timestamp<HostTime>, _ finished: StopReport
    ) throws {
        let expected: [(String, Double)] = [("cam.timestamps.jsonl", 30), ("imu.jsonl", 200)]
        for (name, rate) in expected {
            let stamps = try Outside.stamps("\(folder)/\(name)")
            #expect(stamps.allSatisfy { $0 >= commit.start.nanoseconds && $0 < end.nanoseconds })
            let length = (end - commit.start).seconds
            // On a machine under load some are late; none is missing for more than a second.
            #expect(Double(stamps.count) > rate * length * 0.7 && Double(stamps.count) <= rate * length + 2)
            let numbers = try Outside.rows("\(folder)/\(name)").map { ($0["frame_number"] as? NSNumber)?.intValue }
            #expect(numbers == Array(0..<stamps.count).map(Optional.some))
        }
        let rows = try Outside.rows("\(folder)/cam.timestamps.jsonl")
        #expect(try Outside.frames("\(folder)/cam.mp4") == rows.count)
        #expect(rows.allSatisfy { $0["clock_domain"] as? String == "left" })

        // The microphone is heard in the video too, and the manifest says so.
        let tracks = try Outside.run([
            "ffprobe", "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", "\(folder)/cam.mp4",
        ])
        #expect(tracks.split(separator: "\n") == ["h264", "aac"])
        let entries = try #require(try Outside.json("\(folder)/manifest.json")["streams"] as? [[String: Any]])
        let camera = try #require(entries.first { $0["stream_id"] as? String == "cam" })
        #expect((camera["capabilities"] as? [String: Any])?["provides_audio_track"] as? Bool == true)
        #expect((camera["audio_track"] as? [String: Any])?["stream_id"] as? String == "host_audio")
        let videoLength = Double(rows.count) / 30
        let heard = try Outside.run([
            "ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries", "stream=duration", "-of", "csv=p=0",
            "\(folder)/cam.mp4",
        ])
        #expect(try abs(#require(Double(heard.split(separator: "\n")[0])) - videoLength) < 0.2)

        let sound = try Outside.soundFrames("\(folder)/host_audio.wav")
        let soundRows = try Outside.rows("\(folder)/host_audio.timestamps.jsonl")
        #expect((soundRows[0]["frame_number"] as? NSNumber)?.intValue == 0)
        let audio = try #require(finished.streams.first { $0.id.rawValue == "host_audio" })
        #expect(audio.samples == Int64(sound))
        if audio.dropped == 0 {
            // Exactly the sample frames between T0 and T1; the card's stamps jitter by 20 µs, a frame lasts 21 µs.
            #expect(abs(Double(sound) - (end - commit.start).seconds * 48_000) < 10)
        }
        let first = try #require((soundRows[0]["capture_ns"] as? NSNumber)?.int64Value)
        #expect(first >= commit.start.nanoseconds && first < commit.start.nanoseconds + 100_000)
        // A row each 100 ms; blocks are 20 ms long.
        #expect(abs(Double(soundRows.count) - (end - commit.start).seconds * 10) <= 3)

        let manifest = try Outside.json("\(folder)/manifest.json")
        #expect(manifest["status"] as? String == "finished")
        #expect(manifest["role"] as? String == "leader")
        #expect((manifest["streams"] as? [[String: Any]])?.count == 3)
        let point = try Outside.json("\(folder)/sync_point.json")
        #expect((point["monotonic_ns"] as? NSNumber)?.int64Value == commit.start.nanoseconds)
        let log = try Outside.rows("\(folder)/session.log").filter { $0["kind"] as? String == "state" }
        #expect(log.map { $0["detail"] as? String } == ["connected->recording", "recording->stopping"])
    }

    /// The start chirp is heard in the video when it was played: speaker and microphone are at the host's place.
    private func hear(_ played: Timestamp<HostTime>, in folder: String) throws {
        let raw = "\(folder)/../decoded.f32"
        _ = try Outside.run([
            "ffmpeg", "-v", "error", "-y", "-i", "\(folder)/cam.mp4", "-map", "0:a:0", "-ar", "48000", "-f", "f32le",
            raw,
        ])
        let data = try Data(contentsOf: URL(fileURLWithPath: raw))
        try Files.remove(raw)
        let samples = data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        let spec = try #require(ChirpPreset.ultrasonic.startSpec)
        let filter = try #require(MatchedFilter(specs: [spec], rate: 48_000))
        let found = try #require((filter.push(samples) + filter.finish()).first)
        let first = try #require(try Outside.stamps("\(folder)/cam.timestamps.jsonl").first)
        let wanted = Double(played.nanoseconds - first) / 1e9
        #expect(abs(found.position / 48_000 - wanted) < 0.001)
    }

    private func ingest(_ fixture: AgentFixture, _ plan: TakePlan, _ folder: String) async throws {
        let request = IngestRequest(episode: plan.episode)
        guard case .fileList(let list) = try await fixture.ask(.ingest(request)) else {
            throw AgentFixture.Unexpected()
        }
        #expect(try await fixture.status().state == .ingesting)
        #expect(Set(list.files.map(\.path)) == Set(try Files.list(folder)))
        for entry in list.files {
            #expect(try Outside.sha256("\(folder)/\(entry.path)") == entry.sha256)
            #expect(Files.size("\(folder)/\(entry.path)") == entry.size)
            var bytes: [UInt8] = []
            while bytes.count < entry.size {
                let chunk = ChunkRequest(
                    episode: plan.episode, path: entry.path, offset: Int64(bytes.count), length: 100_000)
                let answer = await fixture.agent.bulk(Envelope(message: .chunk(chunk)))
                bytes += try #require(answer.attachments.first)
            }
            #expect(SHA256.of(bytes) == entry.sha256)
        }
        #expect(try await fixture.ask(.ingested(request)) == .acknowledged(Empty()))
        #expect(try await fixture.ask(.ingested(request)) == .acknowledged(Empty()))
        #expect(try await fixture.status().state == .connected)
        let snapshot = try await fixture.snapshot()
        #expect(snapshot.episodes.map(\.progress) == [.ingested])
        #expect(snapshot.episodes.first?.take == plan.take)
        #expect(snapshot.chirps.map(\.moment) == [.start, .stop])
    }

    @Test("two takes follow each other with the devices left open; an old take's commands are answered in words")
    func twoTakes() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        var plans: [TakePlan] = []
        for _ in 0..<2 {
            let plan = fixture.plan(chirp: .off)
            plans.append(plan)
            _ = try await fixture.start(plan, lead: 0.3)
            _ = try await events.wait(for: .allStreaming)
            try await fixture.ask(.stop(StopCommand(take: plan.take, stop: HostClock.now, reason: "duration")))
            let report = try #require(try await events.wait(for: .takeFinished).stop)
            #expect(report.take == plan.take)
            #expect(report.streams.allSatisfy { $0.samples > 0 })
            let stamps = try Outside.rows(fixture.episode(plan) + "/cam.timestamps.jsonl")
            #expect((stamps[0]["frame_number"] as? NSNumber)?.intValue == 0)
        }
        let old = plans[0]
        #expect(
            try await fixture.ask(.stop(StopCommand(take: old.take, stop: HostClock.now, reason: "again"))).kind
                == .stopping)
        #expect(try await events.wait(for: .takeFinished).stop?.take == old.take)
        let refusal = await #expect(throws: Refusal.self) { try await fixture.ask(.arm(old)) }
        #expect(refusal?.code == .invalidTransition)
        #expect(try await fixture.snapshot().episodes.count == 2)
    }

    @Test("an abort before T0 leaves no folder and no record")
    func abort() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan()
        _ = try await fixture.start(plan, lead: 20)
        #expect(Files.isFolder(fixture.episode(plan)))
        let abort = Message.abort(TakeReference(take: plan.take, reason: "host right was silent"))
        #expect(try await fixture.ask(abort).kind == .aborted)
        #expect(try await fixture.ask(abort).kind == .aborted)
        _ = try await events.wait(for: .disarmed)
        // The next take waits for the end of the last one.
        _ = try await fixture.start(fixture.plan(), lead: 20)
        #expect(!Files.exists(fixture.episode(plan)))
        #expect(!Files.exists("\(fixture.home.takes)/\(plan.take).json"))
        #expect(try await fixture.status().state == .connected)
        await fixture.agent.shutDown(reason: "test")
        #expect(try Files.list(fixture.home.episodes).isEmpty)
    }

    @Test("an armed agent that hears no commit disarms itself")
    func disarm() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(armTimeout: 0.2)
        try await fixture.ask(.arm(plan))
        #expect(try await events.wait(for: .disarmed).take == plan.take)
        let start = HostClock.now + .seconds(1)
        let refusal = await #expect(throws: Refusal.self) {
            try await fixture.ask(
                .commit(Commit(take: plan.take, start: start, bound: .zero, limit: start + .seconds(5))))
        }
        #expect(refusal?.code == .unknownTake)
        #expect(refusal?.message.contains("no commit came") == true)
    }

    @Test("without a coordinator the take goes on to its limit, and the leader plays the stop chirp by itself")
    func alone() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease(seconds: 0.5)
        let plan = fixture.plan()
        let commit = try await fixture.start(plan, lead: 0.4, limit: 2.5)
        let report = try #require(try await events.wait(for: .takeFinished).stop)
        #expect(report.reason == "limit")
        let point = try Outside.json(fixture.episode(plan) + "/sync_point.json")
        let emitted = try #require((point["chirp_stop_ns"] as? NSNumber)?.int64Value)
        let planned = (commit.limit - .milliseconds(1300)).nanoseconds
        #expect(abs(emitted - planned) < 100_000_000)
        // Nobody commands it any more: the devices are closed.
        var state = try await fixture.status().state
        while state != .idle {
            _ = try await events.wait(for: .stateChanged)
            state = try await fixture.status().state
        }
        let other = CaptureAgent.Caller(identity: "K2", name: "laptop")
        guard case .snapshot(let snapshot) = try await fixture.ask(.snapshotRequest(Empty()), as: other) else {
            throw AgentFixture.Unexpected()
        }
        #expect(snapshot.episodes.first?.progress == .finished)
    }

    @Test("SIGTERM's way out: the running take is whole")
    func shutDown() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        _ = try await fixture.start(plan, lead: 0.3)
        _ = try await events.wait(for: .allStreaming)
        await fixture.agent.shutDown(reason: "SIGTERM")
        let manifest = try Outside.json(fixture.episode(plan) + "/manifest.json")
        #expect(manifest["status"] as? String == "finished")
        #expect(manifest["stop_reason"] as? String == "SIGTERM")
        let rows = try Outside.rows(fixture.episode(plan) + "/cam.timestamps.jsonl")
        #expect(try Outside.frames(fixture.episode(plan) + "/cam.mp4") == rows.count)
    }

    @Test("commands need the lease, and a second coordinator is told who has it")
    func lease() async throws {
        let fixture = try await AgentFixture()
        let plan = fixture.plan()
        var refusal = await #expect(throws: Refusal.self) { try await fixture.ask(.arm(plan)) }
        #expect(refusal?.code == .notLeased)
        try await fixture.takeLease()
        let other = CaptureAgent.Caller(identity: "K2", name: "laptop")
        refusal = await #expect(throws: Refusal.self) { try await fixture.ask(.arm(plan), as: other) }
        #expect(refusal?.code == .leasedToOther)
        #expect(refusal?.message.contains("desk") == true)
        guard
            case .welcome(let welcome) = try await fixture.ask(
                .hello(Hello(coordinator: AgentFixture.coordinator, name: "desk", version: "0")))
        else { throw AgentFixture.Unexpected() }
        #expect(welcome.host.rawValue == "left")
        #expect(Data(base64Encoded: welcome.clockKey)?.count == 32)
        guard case .deviceList(let devices) = try await fixture.ask(.devices(Empty())) else {
            throw AgentFixture.Unexpected()
        }
        #expect(devices.streams.count == 3 && devices.streams.allSatisfy { $0.error == nil })
    }
}
