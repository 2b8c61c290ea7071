internal import Devices
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// The camera against scripted drivers.
@Suite(.timeLimit(.minutes(1))) struct V4L2CameraTests {
    private let id = StreamID(unchecked: "cam")

    private func camera(_ steps: [DriverStep]) -> V4L2Camera {
        V4L2Camera(id, V4L2Camera.Options(device: "script:0"), nodes: { [ScriptedCamera.node] }) { _ throws(Errno) in
            ScriptedCamera(steps)
        }
    }

    @Test func `The description says what was asked and what was got`() async throws {
        let camera = camera([])
        let description = try await camera.open()
        await camera.close()
        #expect(description.video == VideoFormat(encoding: .yuyv, width: 16, height: 16, bytesPerLine: 32))
        #expect(description.nominalRate == 25)
        #expect(description.deviceIdentity == "script:0")
        #expect(description.label.contains("asked for 1280x720, got 16x16"))
        #expect(description.label.contains("asked for 30 frames/s, got 25 frames/s"))
        #expect(description.timestampSource == "driver, CLOCK_MONOTONIC, end of frame")
    }

    @Test
    func `Lost, damaged and short frames are counted before the next good one, and an error ends the stream once`()
        async throws
    {
        // 0x40 is V4L2_BUF_FLAG_ERROR.
        let camera = camera([
            .frame(sequence: 0), .frame(sequence: 1), .frame(sequence: 4), .frame(sequence: 5, flags: 0x2040),
            .frame(sequence: 6, bytes: 100), .frame(sequence: 7), .failure(5), .frame(sequence: 8),
        ])
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        let content = await sink.wait { content in
            content.events.contains { if case .failed = $0 { true } else { false } }
        }
        await camera.close()
        #expect(content.samples.map(\.sequence) == [0, 1, 4, 7])
        #expect(
            content.samples.map { sample in
                guard case .frame(let bytes, let isKey) = sample.payload else { return false }
                return isKey && bytes.array == [UInt8](repeating: UInt8(sample.sequence ?? 0), count: 512)
            } == [true, true, true, true])
        let losses = content.events.compactMap { event -> Int64? in
            if case .lost(let count, _) = event { count } else { nil }
        }
        #expect(losses == [2, 2])
        let failures = content.events.compactMap { event -> String? in
            if case .failed(let sentence) = event { sentence } else { nil }
        }
        #expect(failures.count == 1)
        #expect(failures.first?.contains("camera 'Scripted' (/dev/video7) broke off its stream") == true)
        for sample in content.samples {
            #expect(sample.device?.nanoseconds == sample.capture.nanoseconds)
            #expect(sample.capture <= sample.arrival)
        }
    }

    @Test func `A damaged last frame is told at the stop`() async throws {
        let camera = camera([.frame(sequence: 0), .frame(sequence: 1, flags: 0x2040)])
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        _ = await sink.wait {
            $0.events.contains { if case .note(let text) = $0 { text.contains("damaged") } else { false } }
        }
        await camera.stop()
        #expect(sink.content.events.contains { if case .lost(1, _) = $0 { true } else { false } })
        await camera.close()
    }

    @Test func `A camera that is away is named with a cure`() async {
        let camera = V4L2Camera(id, V4L2Camera.Options(device: "B2"), nodes: { [ScriptedCamera.node] }) {
            _ throws(Errno) in throw .noDevice
        }
        await #expect {
            _ = try await camera.open()
        } throws: { error in
            "\(error)" == "cam: no camera 'B2' is attached; plug it in, or name 'script:0'"
        }
    }

    @Test func `The holder of a file is found`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/held"
        let file = try FileDescriptor(path: path, flags: 0o102)
        #expect(DeviceHolder.of(path).map(\.name) == ["this program itself"])
        #expect(DeviceHolder.of(path, except: file.rawValue).isEmpty)
        _ = file.rawValue
    }
}
