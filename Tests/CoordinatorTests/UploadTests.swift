internal import Glibc
internal import Platform
internal import Protocol
internal import SyncServer
internal import Synchronization
internal import TestSupport
internal import Testing

@testable internal import Coordinator

@Suite(.timeLimit(.minutes(1))) struct UploadTests {
    @Test("An episode is uploaded, aligned and fetched, the server confirms each hash, and it isn't sent again")
    func whole() async throws {
        let fixture = try UploadFixture()
        let service = try fixture.server()
        let progress = Mutex<[UploadProgress]>([])
        let outcome = try await fixture.uploader(service).upload(try fixture.sealed()) { step in
            progress.withLock { $0.append(step) }
        }
        #expect(outcome.entry.state == .complete, "\(outcome)")
        #expect(outcome.entry.isConfirmed)
        #expect(!outcome.wasThere)
        #expect(progress.withLock { $0.contains { if case .sending = $0 { true } else { false } } })
        let job = try #require(outcome.entry.job)
        for name in ["sync_report.json", "frame_map.jsonl"] {
            #expect(
                try Files.read("\(fixture.episode)/synced/\(name)")
                    == Files.read("\(fixture.store)/jobs/\(job)/result/\(name)"))
        }
        // What the server keeps are the bytes of the episode.
        for name in ["data/main lab.cam.mp4", "timestamps/b.imu.jsonl"] {
            #expect(
                try Files.read("\(fixture.episode)/\(name)") == Files.read("\(fixture.store)/jobs/\(job)/input/\(name)")
            )
        }
        let report = try JSONText.decode(
            JSONValue.self, from: try Files.read("\(fixture.episode)/synced/sync_report.json"))
        #expect(report["alignment"]?["method"]?.string == "clock_series")
        // b.cam's first stamp is 5.001 s on b's clock, 1.001 s on the common one; the primary's first is 1.000 s.
        #expect(report["streams"]?["b.cam"]?["offset_ms"]?.double == 1)
        // The lab's frames i × 50 ms from b's first (1 ms) to the IMU's last (199 × 5 = 995 ms) and the lab's last (950 ms).
        #expect(report["summary"]?["total_synced_frames"]?.integer == 19)

        // A new queue object reads the file again, as a new process does.
        let again = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(again.wasThere)
        #expect(try fixture.jobs == [job])

        // Other bytes are another upload.
        try fixture.write("data/b.cam.mp4", "the video of b, repaired")
        let changed = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(!changed.wasThere)
        #expect(changed.entry.state == .complete)
        #expect(try fixture.jobs.count == 2)
        await service.stop()
    }

    @Test("A crash after the server took the upload, and before that was noted, sends nothing again")
    func crashAfterPost() async throws {
        let fixture = try UploadFixture()
        let service = try fixture.server()
        let other = UploadQueue(home: "\(fixture.folder.path)/other")
        let first = try await fixture.uploader(service, queue: other).upload(try fixture.sealed(), waits: false)
        // The queue as the crash leaves it: the upload had begun, and no more is known.
        let queue = UploadQueue(home: fixture.home)
        var entry = UploadEntry(
            session: "morning", episode: fixture.episodeID, server: "http://127.0.0.1:\(service.port)")
        entry.state = .uploading
        entry.uploadKey = first.entry.uploadKey
        try await queue.store(entry)
        let outcome = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(outcome.entry.state == .complete)
        #expect(outcome.entry.job == first.entry.job)
        #expect(try fixture.jobs.count == 1)
        await service.stop()
    }

    @Test("A crash while the job ran goes on with waiting for it")
    func crashWhileProcessing() async throws {
        let fixture = try UploadFixture()
        let service = try fixture.server()
        let first = try await fixture.uploader(service).upload(try fixture.sealed(), waits: false)
        #expect(first.entry.state == .processing)
        #expect(!Files.exists("\(fixture.episode)/synced"))
        let outcome = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(outcome.entry.state == .complete)
        #expect(outcome.entry.job == first.entry.job)
        #expect(Files.exists("\(fixture.episode)/synced/frame_map.jsonl"))
        await service.stop()
    }

    @Test("A server that lost its store gets the episode again")
    func lostJob() async throws {
        let fixture = try UploadFixture()
        let service = try fixture.server()
        let first = try await fixture.uploader(service).upload(try fixture.sealed(), waits: false)
        let port = service.port
        await service.stop()
        let renewed = try fixture.server { $0.store = "\(fixture.folder.path)/empty" }
        // The entry of the new server is what the old one's was.
        let queue = UploadQueue(home: fixture.home)
        var entry = UploadEntry(
            session: "morning", episode: fixture.episodeID, server: "http://127.0.0.1:\(renewed.port)")
        entry.state = .processing
        entry.uploadKey = first.entry.uploadKey
        entry.job = first.entry.job
        try await queue.store(entry)
        let outcome = try await fixture.uploader(renewed).upload(try fixture.sealed())
        #expect(outcome.entry.state == .complete, "\(outcome)")
        #expect(outcome.entry.job != first.entry.job)
        #expect(port > 0)
        await renewed.stop()
    }

    @Test("No server: tried with patience, given up with the reason, and taken up again when there is one")
    func noServer() async throws {
        let fixture = try UploadFixture()
        let service = try fixture.server()
        let url = "http://127.0.0.1:\(service.port)"
        let port = service.port
        await service.stop()
        let retries = Mutex(0)
        let failed = try await fixture.uploader(url).upload(try fixture.sealed()) { step in
            if case .retrying = step { retries.withLock { $0 += 1 } }
        }
        #expect(failed.entry.state == .failed)
        #expect(failed.entry.lastError?.contains("given up after 3 tries") == true)
        #expect(failed.entry.lastError?.contains("connect") == true, "\(failed.entry.lastError ?? "")")
        #expect(retries.withLock { $0 } == 2)
        let back = try fixture.server(port: port) { $0.store = "\(fixture.folder.path)/back" }
        let outcome = try await fixture.uploader(url).upload(try fixture.sealed())
        #expect(outcome.entry.state == .complete, "\(outcome)")
        await back.stop()
    }

    @Test("A full disk at the server is waited for, a refused episode isn't")
    func refusals() async throws {
        let fixture = try UploadFixture()
        let full = try fixture.server { $0.limits.reserve = 1 << 60 }
        let waited = try await fixture.uploader(full).upload(try fixture.sealed())
        #expect(waited.entry.state == .failed)
        #expect(waited.entry.attempts == 3)
        #expect(waited.entry.lastError?.contains("status 507") == true, "\(waited)")
        #expect(waited.entry.lastError?.contains("make room") == true)
        await full.stop()

        try fixture.write("hosts/b/cam.mp4", "the video of b")
        try Files.remove("\(fixture.episode)/data/b.cam.mp4")
        try Files.hardLink("\(fixture.episode)/hosts/b/cam.mp4", to: "\(fixture.episode)/data/b.cam.mp4")
        // The aggregated manifest says what the bytes were at their source; the copy at home has changed since.
        try fixture.write(
            "aggregated_manifest.json",
            """
            {"hosts":[{"host_id":"b","status":"ok","files":[{"path":"cam.mp4","size":14,
              "sha256":"\(String(repeating: "ab", count: 32))"}]}]}
            """)
        let service = try fixture.server()
        let refused = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(refused.entry.state == .failed)
        #expect(refused.entry.attempts == 0)
        #expect(refused.entry.lastError?.contains("the file 'b.cam.mp4' arrived with sha256") == true, "\(refused)")
        #expect(try fixture.jobs == [])
        await service.stop()
    }

    @Test("Without a common clock the job fails, and the reason comes home")
    func failedJob() async throws {
        let fixture = try UploadFixture()
        try Files.remove("\(fixture.episode)/clock_sync.jsonl")
        let service = try fixture.server()
        let outcome = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(outcome.entry.state == .failed)
        #expect(outcome.entry.lastError?.contains("have no common clock") == true, "\(outcome)")
        #expect(!outcome.isGood)
        await service.stop()
    }

    @Test("A cancelled upload leaves the queue where it was, and the next one ends it")
    func cancelled() async throws {
        let fixture = try UploadFixture()
        try sparse("\(fixture.episode)/data/b.cam.mp4", 64 << 20)
        let service = try fixture.server()
        let uploader = fixture.uploader(service)
        let episode = try fixture.sealed()
        await #expect(throws: CancellationError.self) {
            try await uploader.upload(episode) { step in
                if case .sending = step { uploader.cancel() }
            }
        }
        let entry = try await UploadQueue(home: fixture.home).entries().first
        #expect(entry?.state == .uploading)
        let outcome = try await fixture.uploader(service).upload(episode)
        #expect(outcome.entry.state == .complete)
        await service.stop()
        #expect(try fixture.jobs.count == 1)
        #expect(try Files.list("\(fixture.store)/incoming") == [])
    }

    @Test("A file larger than the memory that is used for it")
    func bounded() async throws {
        let fixture = try UploadFixture()
        let size: Int64 = 512 << 20
        try sparse("\(fixture.episode)/data/b.cam.mp4", size)
        let service = try fixture.server()
        let before = residentPeak()
        let outcome = try await fixture.uploader(service).upload(try fixture.sealed())
        #expect(outcome.entry.state == .complete)
        // Client and server together, in this process; other tests run beside it.
        #expect(residentPeak() - before < size / 4)
        await service.stop()
    }

    private func sparse(_ path: String, _ size: Int64) throws {
        try Files.remove(path)
        let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT)
        #expect(ftruncate(file.rawValue, off_t(size)) == 0)
    }

    private func residentPeak() -> Int64 {
        var usage = rusage()
        getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
        return Int64(usage.ru_maxrss) * 1024
    }
}
