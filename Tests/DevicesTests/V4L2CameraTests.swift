internal import Devices
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

extension EmulatedCollector.Content {
    fileprivate var losses: [Int64] { events.compactMap { if case .lost(let count, _) = $0 { count } else { nil } } }
    fileprivate var failures: [String] { events.compactMap { if case .failed(let text) = $0 { text } else { nil } } }
    fileprivate var notes: [String] { events.compactMap { if case .note(let text) = $0 { text } else { nil } } }
    fileprivate var interruptions: [String] {
        events.compactMap { if case .interrupted(_, let cause) = $0 { cause } else { nil } }
    }
    fileprivate struct Gap {
        let from: Timestamp<HostTime>
        let to: Timestamp<HostTime>
        let cause: String
    }
    fileprivate var gaps: [Gap] {
        events.compactMap { event -> Gap? in
            if case .gap(let from, let to, let cause) = event { Gap(from: from, to: to, cause: cause) } else { nil }
        }
    }
    fileprivate var epochs: [StreamEpoch] {
        events.compactMap { if case .epoch(let epoch) = $0 { epoch } else { nil } }
    }
}

/// The camera against scripted drivers.
@Suite(.timeLimit(.minutes(1))) struct V4L2CameraTests {
    private let id = StreamID(unchecked: "cam")

    private func camera(_ machine: ScriptedMachine, device: String = "script:0") -> V4L2Camera {
        V4L2Camera(id, V4L2Camera.Options(device: device), machine: machine.machine)
    }

    private func camera(_ steps: [DriverStep]) -> V4L2Camera { camera(ScriptedMachine([DriverScript(steps)])) }

    private func frames(_ range: Range<UInt32>) -> [DriverStep] {
        range.map { .frame(sequence: $0, payload: CameraReportTests.jpeg($0 &+ 1000)) }
    }

    // MARK: Opening

    @Test func `C1 #28 what was asked and what was got stands in the description`() async throws {
        let camera = camera([])
        let description = try await camera.open()
        await camera.close()
        #expect(description.video == VideoFormat(encoding: .yuyv, width: 16, height: 16, bytesPerLine: 32))
        #expect(description.nominalRate == 25)
        #expect(description.deviceIdentity == "script:0")
        #expect(
            description.findings == [
                "asked for 1280x720, got 16x16", "asked for 30 frames/s, got 25 frames/s",
            ])
        #expect(
            description.settings == [
                StreamSetting("format", asked: nil, got: "yuyv"),
                StreamSetting("size", asked: "1280x720", got: "16x16"),
                StreamSetting("rate", asked: "30", got: "25"),
            ])
        #expect(description.timestampSource == "driver, CLOCK_MONOTONIC, end of frame")
    }

    @Test func `A camera that is away is named with a cure`() async {
        let camera = camera(ScriptedMachine([DriverScript()]), device: "B2")
        await #expect {
            _ = try await camera.open()
        } throws: { error in
            "\(error)" == "cam: no camera 'B2' is attached; plug it in, or name 'script:0'"
        }
    }

    @Test func `D-4 a camera that isn't there yet is waited for as long as the configuration says`() async throws {
        let machine = ScriptedMachine(nodes: [], [DriverScript(frames(0..<1))])
        var options = V4L2Camera.Options(device: "script:0")
        options.wait = .seconds(30)
        let camera = V4L2Camera(id, options, machine: machine.machine)
        async let opened = camera.open()
        machine.nodes = [ScriptedCamera.node]
        let description = try await opened
        #expect(description.deviceIdentity == "script:0")
        await camera.close()
    }

    @Test func `C1 #17 a camera that another program holds is named with it, at once`() async throws {
        var script = DriverScript()
        script.failures[.format] = 16
        let camera = camera(ScriptedMachine([script]))
        let begin = HostClock.now
        await #expect {
            _ = try await camera.open()
        } throws: { error in
            "\(error)".hasPrefix("cam: camera 'Scripted' (/dev/video7) is held by ")
                && "\(error)".hasSuffix("; close that program")
        }
        #expect(HostClock.now - begin < .seconds(2))
    }

    @Test func `A bus without room says what this and the other cameras ask of it`() async throws {
        let usb = USBPlace(bus: 91, port: "91-1", speed: 480, vendor: "046d", product: "082d")
        var nodes: [CameraNode] = []
        for number in 0..<2 {
            var node = CameraNode(path: "/dev/video\(number)", card: "C920", bus: "usb-\(number)")
            node.usb = usb
            nodes.append(node)
        }
        var good = DriverScript.mjpeg(frames(0..<1))
        // 30 frames/s of up to 600 kB and 300 kB.
        good.picture.sizeImage = 600_000
        let first = V4L2Camera(
            StreamID(unchecked: "left"), V4L2Camera.Options(device: "usb-0"),
            machine: ScriptedMachine(nodes: nodes, [good]).machine)
        _ = try await first.open()
        var bad = DriverScript.mjpeg([])
        bad.picture.sizeImage = 300_000
        bad.failures[.streamOn] = 28
        let second = V4L2Camera(
            StreamID(unchecked: "right"), V4L2Camera.Options(device: "usb-1"),
            machine: ScriptedMachine(nodes: nodes, [bad]).machine)
        _ = try await second.open()
        await #expect {
            try await second.start(EmulatedCollector())
        } throws: { error in
            "\(error)".contains(
                "no room left for camera 'C920' (/dev/video1): it asks for up to 9 MB/s on bus 91 (480 Mbit/s), where "
                    + "left asks for 18 MB/s already; put it on another USB controller")
        }
        await second.close()
        await first.close()
    }

    @Test func `D-5 a camera that is open and sends nothing never streams`() async throws {
        let camera = camera([])
        _ = try await camera.open()
        let begin = HostClock.now
        await #expect {
            try await camera.start(EmulatedCollector())
        } throws: { error in
            "\(error)".contains("is open and sends no frame for 3.")
        }
        #expect(HostClock.now - begin >= .seconds(3))
        // It can be tried again.
        await camera.close()
        _ = try await camera.open()
        await camera.close()
    }

    // MARK: Frames

    @Test func `C1 #11 Lost, damaged and short frames are counted before the next good one`() async throws {
        // 0x40 is V4L2_BUF_FLAG_ERROR; a raw picture with it, or with too few bytes, can't be encoded.
        let camera = camera([
            .frame(sequence: 0), .frame(sequence: 1), .frame(sequence: 4), .frame(sequence: 5, flags: 0x2040),
            .frame(sequence: 6, bytes: 100), .frame(sequence: 7),
        ])
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        let content = await sink.wait(forSamples: 4)
        await camera.close()
        #expect(content.samples.map(\.sequence) == [0, 1, 4, 7])
        #expect(
            content.samples.map { sample in
                guard case .frame(let bytes, let isKey) = sample.payload else { return false }
                return isKey && bytes.array == [UInt8](repeating: UInt8(sample.sequence ?? 0), count: 512)
            } == [true, true, true, true])
        #expect(content.losses == [2, 2])
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
        #expect(sink.content.losses == [1])
        await camera.close()
    }

    // MARK: Trouble

    @Test func `C1 #20 #22 C4 #110 an unplugged camera is one event and a gap, and the replugged one goes on`()
        async throws
    {
        let node = CameraNode(path: "/dev/video7", card: "Scripted", bus: "script:0", serial: "S1")
        var again = node
        again.path = "/dev/video9"
        let first = DriverScript.mjpeg(frames(0..<5) + [DriverStep](repeating: .failure(19), count: 10_000))
        let machine = ScriptedMachine(nodes: [node], [first, .mjpeg(frames(0..<5))])
        let camera = camera(machine, device: "S1")
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        _ = await sink.wait { !$0.interruptions.isEmpty }
        // The length of the gap: longer than a frame.
        try await Task.sleep(for: .milliseconds(50))
        machine.plug([again])
        let content = await sink.wait(forSamples: 10)
        await camera.close()
        #expect(content.interruptions.count == 1)
        #expect(content.interruptions.first?.contains("camera 'Scripted' (/dev/video7) was unplugged") == true)
        #expect(content.failures.isEmpty && content.losses.isEmpty)
        #expect(content.epochs.map(\.number) == [0, 1])
        #expect(content.epochs.last?.cause == "it was opened again after it had broken off")
        let gap = try #require(content.gaps.first)
        #expect(content.gaps.count == 1)
        // From when the next frame was due to when one came.
        #expect(gap.from == content.samples[4].capture + .nanoseconds(33_333_333))
        #expect(gap.to == content.samples[5].capture)
        // Never the same picture again in the place of what is lost.
        let pictures = content.samples.compactMap {
            if case .frame(let bytes, _) = $0.payload { bytes.array } else { nil }
        }
        #expect(zip(pictures[..<5], pictures[1..<5]).allSatisfy { $0 != $1 })
        #expect(content.samples.map(\.sequence) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    }

    @Test func `A camera that never comes back leaves a gap up to the stop, and can be opened again`() async throws {
        let machine = ScriptedMachine([.mjpeg(frames(0..<5) + [.failure(19)]), .mjpeg(frames(0..<3))])
        let camera = camera(machine)
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        machine.nodes = []
        _ = await sink.wait { !$0.interruptions.isEmpty }
        // The length of the gap: longer than a frame.
        try await Task.sleep(for: .milliseconds(50))
        await camera.stop()
        let gap = try #require(sink.content.gaps.first)
        #expect(gap.from == sink.content.samples[4].capture + .nanoseconds(33_333_333))
        #expect(HostClock.now - gap.to < .seconds(5))
        // Nothing of it is left open: a start without an open is refused, and a new open works.
        machine.nodes = [ScriptedCamera.node]
        await #expect(throws: DeviceError.self) { try await camera.start(sink) }
        await camera.close()
        _ = try await camera.open()
        try await camera.start(sink)
        await camera.close()
    }

    @Test func `D-6 D-23 a silent camera is closed, left alone for 2 s, and opened again`() async throws {
        let machine = ScriptedMachine([.mjpeg(frames(0..<5)), .mjpeg(frames(0..<5))])
        let camera = camera(machine)
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        let content = await sink.wait(forSamples: 10)
        await camera.close()
        #expect(content.interruptions.count == 1)
        #expect(content.interruptions.first?.hasPrefix("no frame came for 1.") == true)
        let gap = try #require(content.gaps.first)
        #expect(gap.to - gap.from >= .milliseconds(2900))
        #expect(machine.calls.filter { $0 == "on" || $0 == "off" } == ["on", "off", "on", "off"])
        #expect(machine.connects == 2)
    }

    @Test func `A node that only says that something is wrong doesn't keep the thread busy`() async throws {
        let machine = ScriptedMachine([.mjpeg(frames(0..<3) + [.hangup]), .mjpeg(frames(0..<3))])
        let camera = camera(machine)
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        let content = await sink.wait(forSamples: 6)
        await camera.close()
        #expect(content.interruptions.count == 1)
        #expect(content.interruptions.first?.contains("broke off its stream") == true)
    }

    @Test func `C1 #19 a stop lets go of everything, however often it is called`() async throws {
        let machine = ScriptedMachine([.mjpeg(frames(0..<3))])
        let camera = camera(machine)
        let before = try Files.list("/proc/self/fd").count
        _ = try await camera.open()
        try await camera.start(EmulatedCollector())
        for _ in 0..<3 { await camera.stop() }
        for _ in 0..<3 { await camera.close() }
        #expect(machine.calls.filter { $0 == "off" } == ["off"])
        // Other suites' descriptors come and go; a leak here would be one for each round.
        for _ in 0..<100 {
            _ = try await camera.open()
            await camera.close()
        }
        #expect(try Files.list("/proc/self/fd").count < before + 50)
    }

    @Test func `After a break the frames that can't be decoded are counted and not kept`() async throws {
        // Rec. H.264: SPS, PPS and an IDR slice; a slice that refers to others.
        let key: [UInt8] = [0, 0, 0, 1, 0x67, 0x42, 0, 0, 1, 0x68, 0xCE, 0, 0, 1, 0x65, 0x88]
        let other: [UInt8] = [0, 0, 0, 1, 0x41, 0x9A]
        func script(_ payloads: [[UInt8]]) -> DriverScript {
            var script = DriverScript.mjpeg(
                payloads.enumerated().map {
                    .frame(sequence: UInt32($0.offset), payload: $0.element + [UInt8($0.offset)])
                })
            script.offers[0].fourCC = FourCC(.h264)
            script.picture.fourCC = FourCC(.h264)
            return script
        }
        var first = script([key, other])
        first.steps.append(.failure(19))
        let machine = ScriptedMachine([first, script([other, other, key, other])])
        let camera = camera(machine)
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        let content = await sink.wait(forSamples: 4)
        await camera.close()
        #expect(content.samples.map(\.sequence) == [0, 1, 2, 3])
        #expect(content.losses == [2])
    }

    @Test func `The holder of a file is found`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/held"
        let file = try FileDescriptor(path: path, flags: 0o102)
        #expect(DeviceHolder.of(path).map(\.name) == ["this program itself"])
        #expect(DeviceHolder.of(path, except: file.rawValue).isEmpty)
        _ = file.rawValue
    }

    // MARK: Choosing

    @Test func `A camera is described so that a person can choose it`() throws {
        var node = CameraNode(
            path: "/dev/video4", card: "HD Pro Webcam C920", bus: "usb-0000:00:14.0-2", serial: "A1B2",
            links: [
                "/dev/v4l/by-id/usb-046d_C920_A1B2-video-index0", "/dev/v4l/by-path/pci-usb-0:2-video-index0",
            ])
        node.usb = USBPlace(bus: 1, port: "1-2", speed: 480, vendor: "046d", product: "082d", release: "0011")
        var script = DriverScript()
        func size(_ width: Int, _ height: Int, _ rates: [Double]) -> V4L2Offer.Size {
            V4L2Offer.Size(width: width...width, height: height...height, rates: rates)
        }
        script.offers = [
            V4L2Offer(fourCC: FourCC(.yuyv), sizes: [size(640, 480, [30]), size(1920, 1080, [5])]),
            V4L2Offer(fourCC: FourCC(.mjpeg), sizes: [size(640, 480, [30]), size(1920, 1080, [15, 30])]),
            // 'Y16 ', linux/videodev2.h.
            V4L2Offer(fourCC: FourCC(rawValue: 0x2036_3159), sizes: []),
        ]
        script.controls = [
            V4L2Control(
                id: 1, title: "Power Line Frequency", kind: .menu, range: 0...2, fallback: 2,
                menu: [0: "Disabled", 1: "50 Hz", 2: "60 Hz"])
        ]
        let entry = AttachedCameras.entry(
            node, among: [node], port: ScriptedCamera(script), holders: ["process 712 (cheese)"])
        #expect(
            entry.abilities == ["yuyv: 640x480 at 30; 1920x1080 at 5", "mjpeg: 640x480 at 30; 1920x1080 at 15, 30"])
        let camera = try #require(entry.camera)
        #expect(camera.names.prefix(2) == ["A1B2", node.links[0]])
        #expect(
            camera.configuration
                == "{ id: \"cam_hd_pro_webcam_c920\", kind: \"v4l2\", device: \"\(node.links[0])\", format: \"mjpeg\", "
                + "width: 1920, height: 1080, rate: 30 },")
        // What is pasted is legal.
        let line = try #require(camera.configuration)
        var reader = try ConfigReader(file: "pasted", text: Array(line.dropLast().utf8))
        _ = try DeviceCatalog.device(from: &reader, in: Surroundings(host: HostID(unchecked: "h")))
        // The documented shape.
        let text = String(decoding: try JSONText.encode(entry), as: UTF8.self)
        for part in [
            "\"node\":\"/dev/video4\"", "\"serial\":\"A1B2\"", "\"mbit_per_s\":480", "\"id\":\"046d:082d\"",
            "{\"format\":\"mjpeg\",\"fourcc\":\"MJPG\",\"sizes\":[{\"height\":480,\"rates\":[30],\"width\":640}",
            "{\"fourcc\":\"Y16 \",\"sizes\":[]}", "\"holders\":[\"process 712 (cheese)\"]",
            "\"menu\":{\"0\":\"Disabled\",\"1\":\"50 Hz\",\"2\":\"60 Hz\"},\"min\":0,\"name\":\"power_line_frequency\"",
        ] {
            #expect(text.contains(part), "\(part) in \(text)")
        }
    }
}
