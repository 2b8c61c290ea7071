internal import Coordinator
internal import Platform
internal import Protocol
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Timing

@Suite struct HostIngestTests {
    private let episode = EpisodeID(unchecked: "ep_20260411_152930_a1b2c3")
    private let host = HostID(unchecked: "left pc.1")
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
        var random = SplitMix64(seed: seed)
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    private func ingest(
        _ link: FakeAgentLink, ledger: SpaceLedger = SpaceLedger(reserveBytes: 0), patience: Interval = .seconds(5)
    ) -> HostIngest {
        var options = IngestOptions()
        options.chunk = 1000
        options.window = 4
        options.patience = patience
        return HostIngest(
            host: host, link: link, episode: episode, episodeFolder: folder.path, ledger: ledger, options: options)
    }

    private func home(_ path: String) -> String { "\(folder.path)/hosts/\(host)/\(path)" }

    @Test("files come home byte for byte, with several chunks on their way", .timeLimit(.minutes(1)))
    func whole() async throws {
        let files = [
            "camera.mp4": bytes(12_345, seed: 1), "manifest.json": bytes(17, seed: 2), "empty.jsonl": [],
            "sub folder/ünï.wav": bytes(4000, seed: 3),
        ]
        let link = FakeAgentLink(episode: episode, files: files)
        let last = Mutex<IngestProgress?>(nil)
        let list = try await ingest(link).run { progress in last.withLock { $0 = progress } }
        #expect(list.files.count == 4)
        for (path, content) in files { #expect(try Files.read(home(path)) == content) }
        link.state.withLock { state in
            #expect(state.acknowledged == 1)
            #expect(state.mostInFlight > 1)
            #expect(state.mostInFlight <= 4)
        }
        // 12,345 + 17 + 0 + 4,000 bytes.
        #expect(last.withLock { $0?.done } == 16_362)
        #expect(last.withLock { $0?.total } == 16_362)
        #expect(!Files.exists("\(folder.path)/.parts/\(host)"))
    }

    @Test("a broken transfer goes on where it was, and nothing verified is sent again", .timeLimit(.minutes(1)))
    func resumed() async throws {
        let files = ["a.mp4": bytes(5000, seed: 4), "b.mp4": bytes(50_000, seed: 5)]
        let first = FakeAgentLink(episode: episode, files: files)
        // All five chunks of a, and twenty of b.
        first.state.withLock { $0.chunksLeft = 25 }
        await #expect(throws: IngestError.self) { try await ingest(first).run() }
        let part = Files.size("\(folder.path)/.parts/\(host)/b.mp4.part") ?? 0
        #expect(part >= 16_000)
        #expect(!Files.exists(home("b.mp4")))

        let second = FakeAgentLink(episode: episode, files: files)
        _ = try await ingest(second).run()
        for (path, content) in files { #expect(try Files.read(home(path)) == content) }
        #expect(second.bytesSent("a.mp4") == 0)
        #expect(second.bytesSent("b.mp4") == 50_000 - Int(part))

        // A third time there is nothing to send.
        let third = FakeAgentLink(episode: episode, files: files)
        _ = try await ingest(third).run()
        third.state.withLock { #expect($0.requested.isEmpty) }
    }

    @Test("wrong bytes are fetched once more", .timeLimit(.minutes(1)))
    func corruptedOnce() async throws {
        let files = ["a.mp4": bytes(3500, seed: 6)]
        let link = FakeAgentLink(episode: episode, files: files)
        link.state.withLock { $0.corruptions = ["a.mp4": 1] }
        _ = try await ingest(link).run()
        #expect(try Files.read(home("a.mp4")) == files["a.mp4"])
        #expect(link.bytesSent("a.mp4") == 7000)
    }

    @Test("wrong bytes twice are named, and never get the file's name", .timeLimit(.minutes(1)))
    func corruptedTwice() async throws {
        let link = FakeAgentLink(episode: episode, files: ["a.mp4": bytes(3500, seed: 7)])
        link.state.withLock { $0.corruptions = ["a.mp4": 2] }
        await #expect(throws: IngestError.mismatch(file: "a.mp4")) { try await ingest(link).run() }
        #expect(!Files.exists(home("a.mp4")))
        link.state.withLock { #expect($0.acknowledged == 0) }
    }

    @Test("a part that was damaged at home is found by the hash", .timeLimit(.minutes(1)))
    func damagedPart() async throws {
        let content = bytes(5000, seed: 8)
        try Files.makeFolder("\(folder.path)/.parts/\(host)")
        var wrong = Array(content.prefix(3000))
        wrong[100] ^= 0xFF
        try AtomicFile.write(wrong, to: "\(folder.path)/.parts/\(host)/a.mp4.part")
        let link = FakeAgentLink(episode: episode, files: ["a.mp4": content])
        _ = try await ingest(link).run()
        #expect(try Files.read(home("a.mp4")) == content)
    }

    @Test("a host that is away for a while is waited for", .timeLimit(.minutes(1)))
    func timeouts() async throws {
        let files = ["a.mp4": bytes(9000, seed: 9)]
        let link = FakeAgentLink(episode: episode, files: files)
        link.state.withLock { $0.timeouts = 12 }
        _ = try await ingest(link).run()
        #expect(try Files.read(home("a.mp4")) == files["a.mp4"])
    }

    @Test("a full disk at home is known before the first byte", .timeLimit(.minutes(1)))
    func noSpace() async throws {
        let link = FakeAgentLink(episode: episode, files: ["a.mp4": bytes(5000, seed: 10)])
        let ledger = SpaceLedger(reserveBytes: 100) { _ in 5099 }
        await #expect(throws: IngestError.self) { try await ingest(link, ledger: ledger).run() }
        link.state.withLock { #expect($0.requested.isEmpty) }
        let enough = SpaceLedger(reserveBytes: 100) { _ in 5100 }
        _ = try await ingest(link, ledger: enough).run()
    }

    @Test(
        "a list that would do harm is refused",
        arguments: [
            ["../evil"], ["/etc/passwd"], ["a//b"], ["a/./b"], ["a", "a"], ["a", "a/b"], [""],
        ])
    func harmfulList(_ paths: [String]) {
        let hash = SHA256.of([1])
        let list = FileList(
            episode: episode,
            files: paths.map { FileEntry(path: $0, size: 1, sha256: hash, mtimeNanoseconds: 0) })
        #expect(throws: IngestError.self) { try IngestPlan(list, episode: episode) }
    }

    @Test("sizes and hashes that can't be are refused")
    func impossibleList() {
        func list(_ size: Int64, _ hash: String) -> FileList {
            FileList(
                episode: episode,
                files: ["a", "b"].map { FileEntry(path: $0, size: size, sha256: hash, mtimeNanoseconds: 0) })
        }
        let hash = SHA256.of([1])
        #expect(throws: IngestError.self) { try IngestPlan(list(-1, hash), episode: episode) }
        #expect(throws: IngestError.self) { try IngestPlan(list(.max, hash), episode: episode) }
        #expect(throws: IngestError.self) { try IngestPlan(list(1, "zz"), episode: episode) }
        #expect(throws: Never.self) { try IngestPlan(list(1, hash), episode: episode) }
    }
}
