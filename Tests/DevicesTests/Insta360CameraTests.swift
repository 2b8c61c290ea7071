internal import Platform
internal import Protocol
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Devices

/// The camera against its emulator, over a socket of packets.
@Suite(.serialized) struct Insta360CameraTests {
    /// An emulated camera at a socket, and a device that talks to it with short patience.
    private struct Rig {
        let folder: TemporaryFolder
        let socket: SocketPeripheral
        let camera: Go3SCamera
        let recordings = Recordings()

        init(_ faults: [Go3SScript.Fault] = [], claims: CameraClaims = CameraClaims(), stream: String = "wrist")
            async throws
        {
            folder = try TemporaryFolder()
            var script = Go3SScript()
            script.faults = faults
            let (made, recordings) = (script, recordings)
            socket = SocketPeripheral(path: "\(folder.path)/cam.sock") {
                let peripheral = Go3SPeripheral(made) { HostClock.wall }
                peripheral.onRecording = { recordings.add($0) }
                return peripheral
            }
            try await socket.begin()
            camera = Self.camera("unix:\(folder.path)/cam.sock", stream, claims)
        }

        static func camera(_ word: String, _ stream: String, _ claims: CameraClaims) -> Go3SCamera {
            guard let target = CameraTarget(word) else { preconditionFailure("no target") }
            var options = Go3SCamera.Options(target: target, authorizationID: "test")
            options.patience = .seconds(5)
            options.confirmation = .seconds(1)
            options.question = .milliseconds(500)
            options.start = CaptureRetryPolicy(
                patience: [.milliseconds(600), .milliseconds(800), .milliseconds(1000)], pauses: [.milliseconds(20)])
            options.stop = CaptureRetryPolicy(
                patience: [.milliseconds(800), .milliseconds(1500), .milliseconds(1500), .milliseconds(1500)],
                pauses: [.milliseconds(20)])
            options.statusPoll = .milliseconds(600)
            return Go3SCamera(
                StreamID(unchecked: stream), options, central: LowEnergyCentral(radios: [SocketRadio()]),
                claims: claims)
        }

        func commands() async -> [UInt16] { await socket.with { ($0 as? Go3SPeripheral)?.commands ?? [] } }

        func isRecording() async -> Bool { await socket.with { ($0 as? Go3SPeripheral)?.isRecording ?? false } }

        func end() async {
            await camera.close()
            await socket.end()
        }
    }

    private final class Recordings: Sendable {
        private let state = Mutex<[Go3SRecording]>([])
        var all: [Go3SRecording] { state.withLock { $0 } }
        func add(_ recording: Go3SRecording) { state.withLock { $0.append(recording) } }
    }

    @Test(.timeLimit(.minutes(1))) func `A clip is begun and ended, with an anchor that its truth lies by`()
        async throws
    {
        let rig = try await Rig()
        let description = try await rig.camera.open()
        #expect(description.label.contains("GO 3S EMU001") && description.label.contains("80 %"))
        #expect(description.capabilities.requiresIngest && description.capabilities.providesAudioTrack)
        let before = HostClock.now
        let start = try await rig.camera.startClip()
        #expect(start.acknowledged >= before && start.acknowledged <= HostClock.now)
        #expect(start.uncertainty > .zero && start.uncertainty < .milliseconds(500))
        #expect(start.cameraName == "GO 3S EMU001")
        let stop = await rig.camera.stopClip()
        #expect(stop.failure == nil)
        #expect(stop.path?.hasPrefix("/DCIM/Camera01/VID_") == true)
        // The command was on its way for two round trips' halves; the emulator's first frame comes 180 ms after it.
        let recording = try #require(rig.recordings.all.first)
        let told = recording.begin - .milliseconds(180)
        #expect(told >= before && told <= start.acknowledged)
        #expect(start.acknowledged - start.uncertainty * 2 <= told)
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `The answer to the start is lost: it isn't started twice`() async throws {
        let rig = try await Rig([.startAnswerLost(1)])
        _ = try await rig.camera.open()
        let start = try await rig.camera.startClip()
        // The truth lies in the anchor's doubt, which is wide now.
        #expect(start.uncertainty >= .milliseconds(250))
        #expect(await rig.commands().filter { $0 == 4 }.count == 1)
        #expect(await rig.isRecording())
        _ = await rig.camera.stopClip()
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `The answer to the stop is lost: it has stopped all the same`() async throws {
        let rig = try await Rig([.stopAnswerLost(1)])
        _ = try await rig.camera.open()
        _ = try await rig.camera.startClip()
        let stop = await rig.camera.stopClip()
        #expect(stop.failure == nil && stop.path == nil)
        #expect(await rig.commands().filter { $0 == 5 }.count == 1)
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `8.1 item 11: A stop without a path is a good stop`() async throws {
        let rig = try await Rig([.noPath])
        _ = try await rig.camera.open()
        _ = try await rig.camera.startClip()
        #expect(await rig.camera.stopClip().failure == nil)
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `A busy camera is asked again, and one that only says yes too`() async throws {
        for fault in [Go3SScript.Fault.busy(2), .startsNothing(1)] {
            let rig = try await Rig([fault])
            _ = try await rig.camera.open()
            _ = try await rig.camera.startClip()
            #expect(await rig.isRecording())
            _ = await rig.camera.stopClip()
            await rig.end()
        }
        let rig = try await Rig([.busy(9)])
        _ = try await rig.camera.open()
        let error = await #expect(throws: DeviceError.self) { _ = try await rig.camera.startClip() }
        #expect(error?.cause.contains("busy") == true)
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1)))
    func `8.1 item 10: The link is lost in the take: it is made again, and the camera stopped`()
        async throws
    {
        let rig = try await Rig([.disconnect(after: 0.2, seconds: 0.7)])
        _ = try await rig.camera.open()
        _ = try await rig.camera.startClip()
        try await EventLoop(name: "test").sleep(for: .milliseconds(400))
        let stop = await rig.camera.stopClip()
        #expect(stop.failure == nil && stop.path != nil)
        #expect(await rig.isRecording() == false)
        #expect(await rig.socket.with { ($0 as? Go3SPeripheral)?.connections } == 2)
        await rig.end()
    }

    @Test(
        "8.1 item 21: Each refusal of its permission is told by name", .timeLimit(.minutes(1)),
        arguments: [
            (CameraAuthorization.required, CameraAuthorization.timedOut, "in time"),
            (.required, .rejected, "rejected"), (.required, .connectedByOtherDevice, "another device"),
            (.rejected, .rejected, "rejected"), (.systemBusy, .systemBusy, "busy"),
            (.connectedByOtherDevice, .rejected, "another device"), (.pending, .rejected, "still waits"),
        ] as [(CameraAuthorization, CameraAuthorization, String)])
    func permission(_ first: CameraAuthorization, _ then: CameraAuthorization, _ words: String) async throws {
        let rig = try await Rig([.permission(first, then: then)])
        let error = await #expect(throws: DeviceError.self) { _ = try await rig.camera.open() }
        #expect(error?.cause.contains(words) == true)
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `A person says yes on the camera`() async throws {
        let rig = try await Rig([.permission(.required, then: .granted)])
        _ = try await rig.camera.open()
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `8.1 item 14: Two streams never get one camera`() async throws {
        let claims = CameraClaims()
        let rig = try await Rig(claims: claims)
        _ = try await rig.camera.open()
        let other = Rig.camera("unix:\(rig.folder.path)/cam.sock", "ego", claims)
        let error = await #expect(throws: DeviceError.self) { _ = try await other.open() }
        #expect(error?.cause.contains("belongs to stream 'wrist'") == true)
        await rig.camera.close()
        _ = try await other.open()
        await other.close()
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `8.1 item 17: Each of two cameras hears of its own end`() async throws {
        let claims = CameraClaims()
        let one = try await Rig(claims: claims)
        let two = try await Rig(claims: claims, stream: "ego")
        _ = try await one.camera.open()
        _ = try await two.camera.open()
        _ = try await one.camera.startClip()
        _ = try await two.camera.startClip()
        #expect(await one.camera.stopClip().path != nil)
        #expect(await two.camera.stopClip().path != nil)
        await one.end()
        await two.end()
    }

    @Test(.timeLimit(.minutes(1))) func `A camera that records for somebody else isn't touched`() async throws {
        let rig = try await Rig()
        _ = try await rig.camera.open()
        _ = try await rig.camera.startClip()
        await rig.camera.close()
        // As after a crash: a new device object of another program, or of this one after a restart.
        let other = Rig.camera("unix:\(rig.folder.path)/cam.sock", "wrist", CameraClaims())
        let error = await #expect(throws: DeviceError.self) { _ = try await other.open() }
        #expect(error?.cause.contains("records already") == true)
        #expect(await rig.isRecording())
        await other.expectStrayClip()
        _ = try await other.open()
        #expect(await rig.isRecording() == false)
        await other.close()
        await rig.end()
    }

    @Test(.timeLimit(.minutes(1))) func `8.1 item 9: A camera that isn't there is said to be so, by its name`()
        async throws
    {
        let folder = try TemporaryFolder()
        let camera = Rig.camera("unix:\(folder.path)/none.sock", "wrist", CameraClaims())
        let error = await #expect(throws: DeviceError.self) { _ = try await camera.open() }
        #expect(error?.code == .notFound && error?.cause.contains("none.sock") == true)
        await camera.close()
    }

    @Test func `The words of a target are told apart`() throws {
        let named = try #require(CameraTarget("1TEBJJ"))
        func heard(_ name: String) -> Advertisement {
            Advertisement(peer: .socket("x"), name: name, arrival: Timestamp(nanoseconds: 0))
        }
        #expect(named.matches(heard("GO 3S 1TEBJJ")) && !named.matches(heard("GO 3S 1TEBJ")))
        #expect(!named.matches(heard("GO 3S X1TEBJJ")))
        #expect(CameraTarget("") == nil)
        #expect(CameraTarget("C0:FF:EE:00:00:01")?.peer != nil)
    }
}
