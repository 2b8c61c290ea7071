internal import Platform
internal import TestSupport
internal import Testing
internal import Timing
internal import Transport

@testable internal import Coordinator

@Suite struct UploadMachineTests {
    private func machine(_ change: (inout UploadEntry) -> Void = { _ in }) -> UploadMachine {
        var entry = UploadEntry(session: "s", episode: "e", server: "http://x")
        change(&entry)
        return UploadMachine(entry: entry, policy: UploadPolicy())
    }

    @Test("Failures that may pass are tried again after 1, 2, 4, … seconds, and the eighth is the last")
    func backoff() {
        var machine = machine()
        #expect(machine.handle(.start(key: "k")) == .ask)
        #expect(machine.handle(.notKnown) == .post)
        var delays: [Int64] = []
        for _ in 0..<7 {
            if case .retry(.post, let delay) = machine.handle(.failed("net", isRetriable: true)) {
                delays.append(delay.nanoseconds / 1_000_000_000)
            }
        }
        #expect(delays == [1, 2, 4, 8, 16, 32, 60])
        #expect(machine.handle(.failed("net", isRetriable: true)) == .end)
        #expect(machine.entry.state == .failed)
        #expect(machine.entry.lastError == "given up after 8 tries: net")
    }

    @Test("A refusal is final")
    func refusal() {
        var machine = machine()
        _ = machine.handle(.start(key: "k"))
        _ = machine.handle(.notKnown)
        #expect(machine.handle(.failed("422", isRetriable: false)) == .end)
        #expect(machine.entry.state == .failed)
        #expect(machine.entry.attempts == 0)
    }

    @Test("What was begun before is gone on with: by its job, or by asking for its bytes")
    func resume() {
        var processing = machine {
            $0.state = .processing
            $0.uploadKey = "k"
            $0.job = "j"
        }
        #expect(processing.handle(.start(key: "k")) == .poll(after: .milliseconds(200)))
        var changed = machine {
            $0.state = .processing
            $0.uploadKey = "old"
            $0.job = "j"
        }
        #expect(changed.handle(.start(key: "k")) == .ask)
        #expect(changed.entry.job == nil)
        var uploading = machine {
            $0.state = .uploading
            $0.uploadKey = "k"
        }
        #expect(uploading.handle(.start(key: "k")) == .ask)
        #expect(uploading.handle(.known(job: "j")) == .poll(after: .milliseconds(200)))
        #expect(uploading.entry.state == .processing)
    }

    @Test("Only an upload that the server has confirmed counts as done")
    func done() {
        for (isConfirmed, expected) in [(true, UploadMachine.Action.end), (false, .ask)] {
            var machine = machine {
                $0.state = .complete
                $0.uploadKey = "k"
                $0.isConfirmed = isConfirmed
            }
            #expect(machine.handle(.start(key: "k")) == expected)
        }
    }

    @Test("Polling slows down to 3 s, as SyncField's viewer does; a lost job is posted again")
    func polling() {
        var machine = machine()
        _ = machine.handle(.start(key: "k"))
        _ = machine.handle(.posted(job: "j"))
        var action = UploadMachine.Action.end
        for _ in 0..<100 { action = machine.handle(.running(confirmed: true)) }
        #expect(action == .poll(after: .milliseconds(3000)))
        #expect(machine.handle(.jobLost) == .retry(.post, after: .milliseconds(1000)))
        #expect(machine.handle(.posted(job: "k")) == .poll(after: .milliseconds(3000)))
        #expect(machine.handle(.jobComplete(confirmed: true)) == .fetch)
        #expect(machine.handle(.resultsStored) == .end)
        #expect(machine.entry.state == .complete)
    }
}

@Suite struct UploadEpisodeTests {
    @Test("Only sealed episodes are uploaded; what is missing is said")
    func seal() throws {
        let fixture = try UploadFixture()
        #expect(try fixture.sealed().session == "morning")
        #expect(try SealedEpisode(folder: fixture.episode + "//").episode == fixture.episodeID)
        try fixture.write("manifest.json", "{\"state\":\"ingesting\"}")
        var refusal = #expect(throws: SealedEpisode.Refusal.self) { try fixture.sealed() }
        #expect(refusal?.description.contains("its state is 'ingesting'") == true)
        try fixture.write("manifest.json", "{")
        refusal = #expect(throws: SealedEpisode.Refusal.self) { try fixture.sealed() }
        #expect(refusal?.description.contains("manifest.json can't be read") == true)
        try Files.remove("\(fixture.episode)/verdict.json")
        refusal = #expect(throws: SealedEpisode.Refusal.self) { try fixture.sealed() }
        #expect(refusal?.description.contains("verdict.json is missing") == true)
        #expect(refusal?.isMissing == false)
        refusal = #expect(throws: SealedEpisode.Refusal.self) { try SealedEpisode(folder: "\(fixture.home)/none") }
        #expect(refusal?.isMissing == true)
    }

    @Test("Episodes are found by id in any session, in one session, or by path")
    func find() throws {
        let fixture = try UploadFixture()
        let id = fixture.episodeID
        #expect(SealedEpisode.folders(home: fixture.home, session: nil, names: [id]) == [fixture.episode])
        #expect(SealedEpisode.folders(home: fixture.home, session: "morning", names: [id]) == [fixture.episode])
        #expect(SealedEpisode.folders(home: fixture.home, session: nil, names: ["/x/ep"]) == ["/x/ep"])
        let none = SealedEpisode.folders(home: fixture.home, session: "evening", names: [id])
        #expect(none.allSatisfy { !Files.exists($0) })
        #expect(SealedEpisode.allFolders(home: fixture.home, session: nil) == [fixture.episode])
        #expect(SealedEpisode.allFolders(home: fixture.home, session: "../..") == [])
    }

    @Test("The form has the README's fields and ours")
    func plan() throws {
        let fixture = try UploadFixture()
        let plan = try UploadPlan(try fixture.sealed())
        let fields = plan.parts.reduce(into: [String: String]()) { fields, part in
            if case .field(let name, let value) = part { fields[name] = value }
        }
        #expect(fields["stream_ids"] == "main lab.cam,b.cam,b.imu")
        #expect(fields["host_ids"] == "main lab,b,b")
        #expect(fields["primary_id"] == "main lab.cam")
        #expect(
            plan.files.map { "\($0.part) \($0.name)" } == [
                "files b.cam.mp4", "files main lab.cam.mp4", "timestamp_files b.cam.timestamps.jsonl",
                "timestamp_files b.imu.jsonl", "timestamp_files main lab.cam.timestamps.jsonl",
                "manifest manifest.json", "clock_sync clock_sync.jsonl", "sync_points b.sync_point.json",
                "sync_points main lab.sync_point.json",
            ])
        // printf 'the video of b' | sha256sum
        #expect(plan.files.first?.sha256 == "199b5afe2528a6691b83841fca4a3e6c419f41000250ba70299eb9a2479e8e62")
    }
}

@Suite(.timeLimit(.minutes(1))) struct UploadQueueTests {
    @Test("Entries are there after the queue is opened again, and an episode has one for each server")
    func durable() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(home: folder.path)
        var entry = try await queue.enqueue(session: "s", episode: "e", server: "http://a")
        #expect(entry.state == .waiting)
        entry.state = .processing
        entry.attempts = 2
        entry.job = "0a1b2c3d"
        entry.uploadKey = "k"
        entry.isConfirmed = true
        entry.lastError = "it's \"odd\"; DROP TABLE uploads"
        try await queue.store(entry)
        _ = try await queue.enqueue(session: "s", episode: "e", server: "http://b")
        let reopened = UploadQueue(home: folder.path)
        #expect(try await reopened.enqueue(session: "s", episode: "e", server: "http://a") == entry)
        #expect(try await reopened.entries().map(\.server) == ["http://a", "http://b"])
    }

    @Test("A file that is no database is an error in a sentence, never a crash")
    func broken() async throws {
        let folder = try TemporaryFolder()
        try AtomicFile.write(String(repeating: "no database ", count: 100), to: "\(folder.path)/queue.sqlite")
        await #expect(throws: DatabaseError.self) { try await UploadQueue(home: folder.path).entries() }
    }
}
