internal import Devices
internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

/// NetworkManager as far as the agent asks it, with a state that can be looked at.
final class FakeNetwork: NetworkTool {
    struct State: Sendable {
        var active = "home-uuid"
        var profiles: Set<String> = []
        var joins = 0
        var refusesToJoin = false
        var refusesToReturn = false
        var calls: [[String]] = []
    }

    let state = Mutex(State())

    func run(_ words: [String], within limit: Interval) throws -> (status: Int32, output: String, errors: String) {
        state.withLock { state in
            state.calls.append(words)
            let line = words.joined(separator: " ")
            if line.contains("device status") { return (0, "wlan0:wifi:connected\neth0:ethernet:connected\n", "") }
            if line.contains("show --active") { return (0, "\(state.active):wlan0:Lab\\: 5 GHz\nu2:eth0:Wired\n", "") }
            if line.contains("connection add") {
                state.profiles.insert(words[5])
                return (0, "", "")
            }
            if line.contains("connection up id") {
                state.joins += 1
                if state.refusesToJoin {
                    return (4, "", "Error: Connection activation failed: (7) Secrets were required")
                }
                state.active = "camera"
                return (0, "", "")
            }
            if line.contains("connection up uuid") {
                if state.refusesToReturn { return (4, "", "Error: no network with that name") }
                state.active = words[words.count - 3]
                return (0, "", "")
            }
            if line.contains("connection down") {
                if state.active == "camera" { state.active = "" }
                return (0, "", "")
            }
            if line.contains("connection delete") {
                return state.profiles.remove(words[3]) == nil ? (10, "", "Error: unknown connection") : (0, "", "")
            }
            return (2, "", "Error: unknown")
        }
    }

    var active: String { state.withLock { $0.active } }
}

/// Clips on their way from cameras into episodes.
@Suite(.serialized) struct ClipIngestTests {
    private static let noon = Timestamp<WallTime>(nanoseconds: 1_775_044_800_000_000_000)

    /// A home with episodes that wait for clips, and an emulated camera's card with its files.
    private struct Rig {
        let folder: TemporaryFolder
        let home: AgentHome
        let server: CameraFileServer
        let network = FakeNetwork()
        let port: UInt16
        let ingest: ClipIngest

        init() throws {
            folder = try TemporaryFolder()
            home = AgentHome("\(folder.path)/home")
            try home.make()
            try Files.makeFolder("\(folder.path)/card/DCIM/Camera01")
            server = CameraFileServer(card: "\(folder.path)/card")
            port = try server.start()
            ingest = ClipIngest(home: home, reserve: 0, tool: network, patience: .zero, tell: { _ in })
        }

        func again() -> ClipIngest {
            ClipIngest(home: home, reserve: 0, tool: network, patience: .zero, tell: { _ in })
        }

        func onCard(_ name: String, size: Int = 400_000, seed: UInt8 = 1) throws {
            try AtomicFile.write(
                (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) ^ seed },
                to: "\(folder.path)/card/DCIM/Camera01/\(name)")
        }

        func wait(
            _ episode: String, stream: String = "wrist", camera: String = "go3s:A", path: String? = nil,
            start: Timestamp<WallTime>? = ClipIngestTests.noon
        ) throws -> EpisodeID {
            let id = EpisodeID(unchecked: episode)
            try Files.makeFolder(home.episode(id))
            var clip = PendingClip(stream: stream, cameraID: camera, cameraName: "GO 3S EMU001")
            (clip.cameraPath, clip.acknowledgedWall) = (path, start)
            try clip.write(to: home.episode(id))
            return id
        }

        func camera(_ stream: String = "wrist", ways: [ClipAccess.Way] = [.wifi]) -> [StreamID: any ClipCamera] {
            var access = ClipAccess()
            (access.ways, access.address, access.ports) = (ways, "127.0.0.1", [port])
            access.mounts = ["\(folder.path)/card"]
            let id = StreamID(unchecked: stream)
            return [id: FakeCamera(id, access)]
        }

        func file(_ episode: EpisodeID, _ name: String = "wrist.mp4") -> String { "\(home.episode(episode))/\(name)" }

        func isSame(_ episode: EpisodeID, _ name: String, as source: String) throws -> Bool {
            try SHA256.ofFile(file(episode, name)) == SHA256.ofFile("\(folder.path)/card/DCIM/Camera01/\(source)")
        }
    }

    final class FakeCamera: ClipCamera {
        let stream: StreamID
        let clips: ClipAccess
        let uses = Mutex<[CameraLinkMachine.WiFi]>([])
        let awake = Mutex(0)

        init(_ stream: StreamID, _ access: ClipAccess) { (self.stream, clips) = (stream, access) }

        func open() async throws -> StreamDescription {
            StreamDescription(
                id: stream, kind: .video, deviceKind: "fake", deviceIdentity: "go3s:A", label: "fake", nominalRate: nil,
                capabilities: StreamCapabilities(producesFile: true, providesAudioTrack: true, requiresIngest: true),
                timestampSource: "test")
        }
        func start(_ sink: any SampleSink) async throws {}
        func stop() async {}
        func close() async {}
        func startClip() async throws -> ClipStart {
            ClipStart(
                acknowledged: HostClock.now, uncertainty: .milliseconds(10), wall: HostClock.wall, cameraID: "go3s:A",
                cameraName: "GO 3S EMU001")
        }
        func stopClip() async -> ClipStop { ClipStop(path: nil, wall: HostClock.wall) }
        func expectStrayClip() async {}
        func endStrayClip() async -> ClipStop? { nil }
        func keepAwake() async { awake.withLock { $0 += 1 } }
        func wifi(_ use: CameraLinkMachine.WiFi) async { uses.withLock { $0.append(use) } }
    }

    private let name = "VID_20260401_120001_00_001.mp4"

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 15: A clip comes over the camera's network, and the host's own is back`()
        async throws
    {
        let rig = try Rig()
        try rig.onCard(name)
        let episode = try rig.wait("ep_20260401_120000_000001")
        let report = await rig.ingest.bring(episode, cameras: rig.camera())
        #expect(report.failed.isEmpty && report.placed.count == 1)
        #expect(try rig.isSame(episode, "wrist.mp4", as: name))
        #expect(try Files.list(rig.home.episode(episode)) == ["wrist.mp4"])
        #expect(rig.network.active == "home-uuid")
        #expect(rig.network.state.withLock { $0.profiles.isEmpty })
        #expect(!Files.exists("\(rig.home.path)/wifi.json"))
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 15: A network that can't be joined costs a bounded time, and nothing stays`()
        async throws
    {
        let rig = try Rig()
        rig.network.state.withLock { $0.refusesToJoin = true }
        let episode = try rig.wait("ep_20260401_120000_000001")
        let report = await rig.ingest.bring(episode, cameras: rig.camera())
        #expect(report.placed.isEmpty && report.failed.count == 1)
        #expect(report.failed.first?.contains("Secrets were required") == true)
        #expect(rig.network.state.withLock { $0.joins } == 2)
        #expect(rig.network.active == "home-uuid")
        // It still waits.
        #expect(try Files.list(rig.home.episode(episode)) == ["wrist.pending.json"])
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 15: After a kill in the camera's network the next start puts the old one back`()
        async throws
    {
        let rig = try Rig()
        let network = CameraNetwork(tool: rig.network, path: "\(rig.home.path)/wifi.json")
        _ = try network.join("GO 3S EMU001.OSC", password: "88888888", interface: nil)
        #expect(rig.network.active == "camera")
        // A kill -9 here. The first try to return fails; the journal stays.
        rig.network.state.withLock { $0.refusesToReturn = true }
        await rig.again().restoreNetwork()
        #expect(Files.exists("\(rig.home.path)/wifi.json"))
        rig.network.state.withLock { $0.refusesToReturn = false }
        await rig.again().restoreNetwork()
        #expect(rig.network.active == "home-uuid" && !Files.exists("\(rig.home.path)/wifi.json"))
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1))) func `A download that breaks off goes on where it was`() async throws {
        let rig = try Rig()
        try rig.onCard(name)
        rig.server.breakDownloads(after: 90_000)
        let episode = try rig.wait("ep_20260401_120000_000001")
        let report = await rig.ingest.bring(episode, cameras: rig.camera())
        #expect(report.failed.isEmpty)
        #expect(try rig.isSame(episode, "wrist.mp4", as: name))
        // No byte came twice: 400,000 in pieces of 90,000.
        let begins = rig.server.requests.filter { $0.contains("/DCIM/") }.map { $0.split(separator: " ").last ?? "" }
        #expect(begins == ["0", "90000", "180000", "270000", "360000"])
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1))) func `A download that was killed goes on at the next ingest`() async throws {
        let rig = try Rig()
        try rig.onCard(name)
        let episode = try rig.wait("ep_20260401_120000_000001")
        let whole = try Files.read("\(rig.folder.path)/card/DCIM/Camera01/\(name)")
        try AtomicFile.write(Array(whole.prefix(123_456)), to: rig.file(episode, "wrist.mp4.part"))
        let report = await rig.ingest.bring(episode, cameras: rig.camera())
        #expect(report.failed.isEmpty)
        #expect(try rig.isSame(episode, "wrist.mp4", as: name))
        #expect(rig.server.requests.contains("GET /DCIM/Camera01/\(name) 123456"))
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1))) func `The ways are tried in their order: a mounted card needs no network`()
        async throws
    {
        let rig = try Rig()
        try rig.onCard(name)
        let episode = try rig.wait("ep_20260401_120000_000001")
        let report = await rig.ingest.bring(episode, cameras: rig.camera(ways: [.usb, .wifi]))
        #expect(report.failed.isEmpty)
        #expect(try rig.isSame(episode, "wrist.mp4", as: name))
        #expect(rig.network.state.withLock { $0.calls.isEmpty } && rig.server.requests.isEmpty)
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 12: Two takes of one camera get two files, whichever is ingested first`()
        async throws
    {
        let rig = try Rig()
        try rig.onCard(name, seed: 1)
        let other = "VID_20260401_120026_00_002.mp4"
        try rig.onCard(other, seed: 2)
        let first = try rig.wait("ep_20260401_120000_000001")
        let second = try rig.wait("ep_20260401_120025_000002", start: Self.noon + .seconds(25))
        #expect(await rig.ingest.bring(second, cameras: rig.camera()).failed.isEmpty)
        #expect(await rig.ingest.bring(first, cameras: rig.camera()).failed.isEmpty)
        #expect(try rig.isSame(first, "wrist.mp4", as: name))
        #expect(try rig.isSame(second, "wrist.mp4", as: other))
        // A third take doesn't get what the others have.
        let third = try rig.wait("ep_20260401_120010_000003", start: Self.noon + .seconds(10))
        let report = await rig.again().bring(third, cameras: rig.camera())
        #expect(report.placed.isEmpty)
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 9: Clips of cameras without an identity are never taken for one camera's`()
        async throws
    {
        let rig = try Rig()
        try rig.onCard(name)
        let episode = try rig.wait("ep_20260401_120000_000001", camera: "", path: "/DCIM/Camera01/\(name)")
        _ = try rig.wait("ep_20260401_120000_000001", stream: "ego", camera: "", start: nil)
        var cameras = rig.camera()
        cameras.merge(rig.camera("ego")) { one, _ in one }
        let report = await rig.ingest.bring(episode, cameras: cameras)
        #expect(try rig.isSame(episode, "wrist.mp4", as: name))
        #expect(report.placed.count == 1 && report.placed.first?.hasPrefix("wrist") == true)
        #expect(!Files.exists(rig.file(episode, "ego.mp4")))
        rig.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 16: The camera that waits is kept awake while another's clip is fetched`()
        async throws
    {
        let rig = try Rig()
        try rig.onCard(name)
        let episode = try rig.wait("ep_20260401_120000_000001")
        _ = try rig.wait("ep_20260401_120000_000001", stream: "ego", camera: "go3s:B")
        var cameras = rig.camera()
        cameras.merge(rig.camera("ego")) { one, _ in one }
        _ = await rig.ingest.bring(episode, cameras: cameras)
        for (_, camera) in cameras {
            guard let camera = camera as? FakeCamera else { continue }
            #expect(camera.awake.withLock { $0 } == 1)
            #expect(Set(camera.uses.withLock { $0 }) == [.own, .other, .none])
            #expect(camera.uses.withLock { $0.last } == CameraLinkMachine.WiFi.none)
        }
        rig.server.stop()
    }

    @Test func `The colon in a connection's name is none between fields`() {
        #expect(CameraNetwork.fields("u1:wlan0:Lab\\: 5 GHz") == ["u1", "wlan0", "Lab: 5 GHz"])
        #expect(CameraNetwork.fields("") == [""])
    }

    @Test func `Mounts are read as the kernel writes them`() {
        let mount = MassStorage.Mount("36 35 8:17 / /media/GO\\0403S rw,nosuid - vfat /dev/sdb1 rw")
        #expect(mount?.device == "8:17" && mount?.folder == "/media/GO 3S")
        #expect(MassStorage.Mount("garbage") == nil)
        #expect(MassStorage.Mount("36 35 8:17 /sub /x rw - vfat /dev/sdb1 rw") == nil)
    }

    // MARK: The agent's take

    @Test(.timeLimit(.minutes(1))) func `A take with a camera leaves what is needed for its clip`() async throws {
        var access = ClipAccess()
        access.ways = []
        let camera = FakeCamera(StreamID(unchecked: "wrist"), access)
        let fixture = try await AgentFixture(devices: [FakeDevice("imu"), camera])
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        var events = fixture.agent.events.makeAsyncIterator()
        let commit = try await fixture.start(plan, lead: 0.3)
        _ = commit
        _ = try await events.wait(for: .stateChanged)
        try await fixture.ask(
            .stop(StopCommand(take: plan.take, stop: commit.start + .milliseconds(300), reason: "operator")))
        let finished = try await events.wait(for: .takeFinished)
        #expect(finished.stop?.streams.contains { $0.id.rawValue == "wrist" } == true)
        let folder = fixture.episode(plan)
        #expect(Files.exists("\(folder)/wrist.pending.json"))
        #expect(!Files.exists("\(folder)/wrist.pending.tentative.json"))
        let manifest = try HostManifest.read("\(folder)/manifest.json")
        let entry = try #require(manifest.streams.first { $0.id.rawValue == "wrist" })
        #expect(entry.status == .pending && entry.acknowledgedStart != nil)
        // The list is answered, and says why the clip isn't in it.
        let answer = try await fixture.ask(.ingest(IngestRequest(episode: plan.episode)))
        guard case .fileList(let list) = answer else { return #expect(Bool(false)) }
        #expect(list.files.contains { $0.path == "wrist.pending.json" })
        await fixture.agent.shutDown(reason: "the end")
    }
}
