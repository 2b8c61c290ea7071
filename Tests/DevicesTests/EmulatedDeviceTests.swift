internal import Devices
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@Suite(.timeLimit(.minutes(1))) struct EmulatedDeviceTests {
    static let id = StreamID(unchecked: "eye")

    static func camera(
        faults: EmulatedFaults = EmulatedFaults(), _ change: (inout EmulatedCamera.Options) -> Void = { _ in }
    ) -> EmulatedDevice<EmulatedCamera> {
        var options = EmulatedCamera.Options()
        (options.width, options.height) = (160, 120)
        change(&options)
        return EmulatedDevice(id, source: EmulatedCamera(options), faults: faults)
    }

    /// The code in a frame of a stream.
    static func code(_ sample: Sample, _ format: VideoFormat) -> PatternCode? {
        guard case .frame(let bytes, _) = sample.payload else { return nil }
        return PatternCode.read(
            luma: bytes.array, width: format.width, height: format.height, bytesPerLine: format.bytesPerLine,
            step: format.encoding == .yuyv ? 2 : 1)
    }

    @Test("every frame shows its number and time, in each format", arguments: EmulatedCamera.Format.allCases)
    func camera(_ format: EmulatedCamera.Format) async throws {
        let camera = Self.camera {
            $0.format = format
            $0.rate = 50
            $0.phaseMilliseconds = 7
        }
        let video = try #require(try await camera.open().video)
        // 160 × 120: two bytes a pixel packed, one and a half in planes.
        let size = format == .yuyv ? 38_400 : 28_800
        let collector = EmulatedCollector()
        await camera.start(collector)
        let content = await collector.wait(forSamples: 25)
        await camera.stop()
        var last: Sample?
        for sample in content.samples {
            guard case .frame(let bytes, _) = sample.payload else {
                Issue.record("not a frame")
                continue
            }
            #expect(bytes.count == size)
            let code = try #require(Self.code(sample, video))
            #expect(code.number == sample.sequence)
            let error = (sample.capture - Timestamp(nanoseconds: code.instant)).magnitude
            #expect(error <= sample.uncertainty)
            // Frames begin 7 ms after whole periods of 20 ms of the machine's clock, to the nanosecond.
            let room = RoomClock.ofThisProcess.room(Timestamp(nanoseconds: code.instant))
            #expect(abs(room.nanoseconds % 20_000_000 - 7_000_000) <= 1)
            #expect(sample.arrival >= Timestamp(nanoseconds: code.instant) + .milliseconds(10))
            if let last { #expect(sample.capture > last.capture) }
            last = sample
        }
    }

    @Test("the code is found again at every size, and a picture without one has none")
    func codes() {
        for (width, height) in [(160, 120), (320, 240), (640, 480), (1280, 720), (1920, 1080), (3840, 120)] {
            var picture = PatternPicture(encoding: .nv12, width: width, height: height, rate: 30)
            for number in [0, 1, 77, Int64.max] {
                let code = PatternCode(number: number, instant: 0x0123_4567_89ab_cdef)
                let bytes = picture.draw(code)
                #expect(PatternCode.read(luma: bytes, width: width, height: height, bytesPerLine: width) == code)
            }
        }
        let grey = [UInt8](repeating: 128, count: 640 * 480)
        #expect(PatternCode.read(luma: grey, width: 640, height: 480, bytesPerLine: 640) == nil)
        #expect(PatternCode.read(luma: [], width: 640, height: 480, bytesPerLine: 640) == nil)
        #expect(PatternCode.read(luma: grey, width: 8, height: 8, bytesPerLine: 8) == nil)
    }

    @Test(
        "the code survives real codecs at low quality", .enabled(if: Files.exists("/usr/bin/ffmpeg")),
        arguments: [["libx264", "-crf", "35", "-preset", "ultrafast"], ["mjpeg", "-q:v", "25"]])
    func codecs(_ codec: [String]) async throws {
        let folder = try TemporaryFolder()
        let (width, height) = (640, 480)
        var picture = PatternPicture(encoding: .yuv420p, width: width, height: height, rate: 30)
        let codes = (0..<45).map {
            PatternCode(number: $0 * 1_234_567, instant: 1_000_000_000_000_007 + $0 * 33_333_333)
        }
        try AtomicFile.write(codes.flatMap { picture.draw($0) }, to: "\(folder.path)/in.yuv")
        let raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p"]
        let quiet = ["-v", "error", "-y"]
        let encoded = try await ChildProcess.run(
            "/usr/bin/ffmpeg",
            quiet + raw + ["-s", "\(width)x\(height)", "-r", "30", "-i", "\(folder.path)/in.yuv", "-c:v"] + codec
                + ["\(folder.path)/video.mkv"])
        let decoded = try await ChildProcess.run(
            "/usr/bin/ffmpeg", quiet + ["-i", "\(folder.path)/video.mkv"] + raw + ["\(folder.path)/out.yuv"])
        try #require(encoded == 0 && decoded == 0)
        let bytes = try Files.read("\(folder.path)/out.yuv")
        let size = width * height * 3 / 2
        try #require(bytes.count == size * codes.count)
        for (index, code) in codes.enumerated() {
            let frame = Array(bytes[index * size..<(index + 1) * size])
            #expect(PatternCode.read(luma: frame, width: width, height: height, bytesPerLine: width) == code)
        }
    }

    @Test("the picture moves from frame to frame")
    func movement() {
        var picture = PatternPicture(encoding: .yuyv, width: 320, height: 240, rate: 30)
        let code = { (number: Int64) in PatternCode(number: number, instant: 0) }
        let frames = (0..<60).map { picture.draw(code($0)) }
        // Below the code, 8 + 5 × 8 rows of 640 bytes.
        let parts = frames.map { Array($0[(48 * 640)...]) }
        #expect(Set(parts).count > 50)
        // No trail: the picture of a number is the same, whatever was drawn before.
        var fresh = PatternPicture(encoding: .yuyv, width: 320, height: 240, rate: 30)
        #expect(fresh.draw(code(59)) == frames[59])
    }

    @Test("a device keeps its pace: the count after a second is the rate's, without drift")
    func pace() async throws {
        let camera = Self.camera { $0.rate = 100 }
        _ = try await camera.open()
        let collector = EmulatedCollector()
        await camera.start(collector)
        let content = await collector.wait(forSamples: 101)
        await camera.stop()
        let lost = content.events.reduce(Int64(0)) {
            if case .lost(let count, _) = $1 { $0 + count } else { $0 }
        }
        let (first, last) = (try #require(content.samples.first), try #require(content.samples.last))
        let frames = (last.sequence ?? 0) - (first.sequence ?? 0)
        #expect(frames == Int64(content.samples.count) - 1 + lost)
        let error = (last.capture - first.capture - .milliseconds(10) * frames).magnitude
        #expect(error <= first.uncertainty + last.uncertainty)
    }

    @Test("the IMU feels the motion at the instants that its counter says")
    func imu() async throws {
        var options = EmulatedIMU.Options()
        options.rate = 500
        options.skewPPM = 800
        options.counterStart = 12
        options.seed = 99
        let imu = EmulatedDevice(Self.id, source: EmulatedIMU(options))
        let description = try await imu.open()
        let opened = HostClock.now
        #expect(description.sensor?.channels.map(\.name) == EmulatedIMU.channels)
        #expect(description.sensor?.channels.map(\.unit).prefix(3) == ["m/s^2", "m/s^2", "m/s^2"])
        let collector = EmulatedCollector()
        await imu.start(collector)
        let content = await collector.wait(forSamples: 500)
        await imu.stop()
        let motion = EmulatedMotion(seed: 99)
        for sample in content.samples {
            guard case .values(let values) = sample.payload, let device = sample.device else {
                Issue.record("not a row")
                continue
            }
            // The stamp is off by at most its uncertainty; the fastest the motion changes is, by the amplitudes and
            // frequencies of its sines, below 2π × (2·0.9 + 1·1.8 + 0.67·2.7) = 34 m/s² a second.
            let near = motion.values(at: RoomClock.ofThisProcess.room(sample.capture))
            for (value, other) in zip(values, near) {
                #expect(abs(value - other) <= 34 * sample.uncertainty.seconds)
            }
            #expect(device.nanoseconds % 1000 == 0)
        }
        let (first, last) = (try #require(content.samples.first), try #require(content.samples.last))
        let (a, b) = (try #require(first.device), try #require(last.device))
        // The counter runs 800 ppm fast, and says exactly 2 ms for each row, to its microsecond.
        let rows = (last.sequence ?? 0) - (first.sequence ?? 0)
        #expect(((b - a) - .milliseconds(2) * rows).magnitude <= .microseconds(1))
        let host = (last.capture - first.capture).seconds
        #expect(abs((b - a).seconds - host * 1.0008) <= 2 * last.uncertainty.seconds)
        #expect(a.nanoseconds >= 12_000_000_000)
        #expect((first.capture - opened).seconds > -0.001)
    }

    @Test("after stop nothing reaches the sink, and a device starts again, many times")
    func stopping() async throws {
        let camera = Self.camera { $0.rate = 240 }
        _ = try await camera.open()
        for round in 0..<30 {
            let collector = EmulatedCollector()
            await camera.start(collector)
            if round % 3 != 0 { _ = await collector.wait(forSamples: round % 4 + 1) }
            await camera.stop()
            let count = collector.content.samples.count
            // The next start comes at once; whatever the last round left behind would land in its sink.
            let next = EmulatedCollector()
            let started = HostClock.now
            await camera.start(next)
            let content = await next.wait(forSamples: 2)
            await camera.stop()
            #expect(content.samples.allSatisfy { $0.capture >= started - $0.uncertainty })
            #expect(collector.content.samples.count == count)
        }
        await camera.close()
    }

    @Test("dropped frames are told and missing in the sequence")
    func drops() async throws {
        let camera = Self.camera(faults: EmulatedFaults(dropPercent: 30)) { $0.rate = 240 }
        _ = try await camera.open()
        let collector = EmulatedCollector()
        await camera.start(collector)
        let content = await collector.wait { $0.samples.last.map { ($0.sequence ?? 0) >= 240 } ?? false }
        await camera.stop()
        let numbers = content.samples.compactMap(\.sequence)
        #expect(numbers == numbers.sorted())
        let lost = content.events.reduce(Int64(0)) {
            if case .lost(let count, _) = $1 { $0 + count } else { $0 }
        }
        #expect(lost == (numbers.last ?? 0) + 1 - Int64(numbers.count))
        // 241 trials at 0.3: mean 72, standard deviation 7.1; 5 of them. More only if this machine stalls.
        #expect(lost > 36)
    }

    @Test("a stall is silent, and its end tells what was lost")
    func stall() async throws {
        let faults = EmulatedFaults(stallAfter: 0.2, stallFor: 0.3)
        let camera = Self.camera(faults: faults) { $0.rate = 100 }
        _ = try await camera.open()
        let collector = EmulatedCollector()
        let started = HostClock.now
        await camera.start(collector)
        let content = await collector.wait {
            $0.events.contains { if case .lost(30..., _) = $0 { true } else { false } }
        }
        await camera.stop()
        let stalled = content.samples.filter {
            let age = ($0.capture - started).seconds
            return age > 0.25 && age < 0.45
        }
        #expect(stalled.isEmpty)
    }

    @Test("a device that fails says so once, and is silent from then on")
    func failure() async throws {
        let camera = Self.camera(faults: EmulatedFaults(failAfter: 0.25)) { $0.rate = 100 }
        _ = try await camera.open()
        let collector = EmulatedCollector()
        let started = HostClock.now
        await camera.start(collector)
        let content = await collector.wait { !$0.events.isEmpty }
        guard case .failed = content.events.last else {
            Issue.record("\(content.events)")
            return
        }
        #expect(content.samples.allSatisfy { $0.capture < started + .milliseconds(300) })
        await camera.stop()
        #expect(collector.content.samples.count == content.samples.count)
    }

    @Test("a microphone's lost blocks are a gap of the right length")
    func gaps() async throws {
        var options = EmulatedMicrophone.Options()
        options.rate = 8000
        options.channels = 2
        let faults = EmulatedFaults(stallAfter: 0.1, stallFor: 0.2)
        let microphone = EmulatedDevice(Self.id, source: EmulatedMicrophone(options), faults: faults)
        let description = try await microphone.open()
        #expect(description.audio == AudioFormat(encoding: .s16, rate: 8000, channels: 2))
        let collector = EmulatedCollector()
        await microphone.start(collector)
        let content = await collector.wait { !$0.events.isEmpty && $0.samples.count > 10 }
        await microphone.stop()
        guard case .gap(let from, let to, _) = content.events.first else {
            Issue.record("\(content.events)")
            return
        }
        // 0.2 s in blocks of 20 ms, 160 frames of 4 bytes.
        #expect(abs((to - from).seconds - 0.2) < 0.021)
        for sample in content.samples {
            guard case .audio(let bytes, let frames) = sample.payload else { continue }
            #expect((bytes.count, frames) == (640, 160))
            #expect(sample.arrival >= sample.capture + .milliseconds(20) - sample.uncertainty)
            #expect(sample.device?.nanoseconds == (sample.sequence ?? 0) * 125_000)
        }
    }
}
