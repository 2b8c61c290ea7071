internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

/// The devices against the kernel's own drivers, inside the guest of `Tests/Lab/run drivers` and nowhere else.
///
/// The guest has one vivid camera and one snd-aloop card, and names them in the environment.
@Suite(
    .enabled(if: ProcessInfo.processInfo.environment["DOWNBEAT_DRIVER_LAB"] != nil), .serialized,
    .timeLimit(.minutes(3)))
struct DriverLabTests {
    private let node = ProcessInfo.processInfo.environment["DOWNBEAT_DRIVER_LAB"] ?? ""
    private let id = StreamID(unchecked: "lab")

    /// For the lab's table: "figure camera_frames 150".
    private func figure(_ name: String, _ value: Any) { print("figure \(name) \(value)") }

    private func run(_ arguments: String...) {
        // `Process` would wait for what the command leaves in the background too.
        let words = arguments.map { "'\($0)'" }.joined(separator: " ")
        #expect(system(words) == 0, "\(words)")
    }

    // MARK: Camera

    private func camera() -> V4L2Camera {
        var options = V4L2Camera.Options(device: "platform:vivid-000")
        (options.wish.width, options.wish.height, options.wish.rate) = (640, 360, 30)
        options.wish.format = .yuyv
        return V4L2Camera(id, options)
    }

    /// 5 s of a camera.
    private func film(_ camera: V4L2Camera) async throws -> EmulatedCollector.Content {
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        let content = await sink.wait { content in
            guard let first = content.samples.first, let last = content.samples.last else { return false }
            return last.arrival - first.arrival >= .seconds(5)
        }
        await camera.close()
        return content
    }

    private func lost(_ content: EmulatedCollector.Content) -> Int64 {
        content.events.reduce(0) { sum, event in
            if case .lost(let count, _) = event { sum + count } else { sum }
        }
    }

    /// What the driver's counter says, from the first delivered frame to the last.
    private func missing(_ content: EmulatedCollector.Content) -> Int64 {
        let sequences = content.samples.compactMap(\.sequence)
        guard let first = sequences.first, let last = sequences.last else { return 0 }
        // The counter has 32 bits.
        return (last - first) & 0xFFFF_FFFF + 1 - Int64(sequences.count)
    }

    @Test func `A camera is listed with what it can do`() {
        let cameras = V4L2CameraKind.attached()
        // The metadata node beside it isn't listed.
        #expect(cameras.map(\.identity) == [node])
        #expect(cameras.first?.abilities.contains { $0.hasPrefix("yuyv: ") && $0.contains("640x360 at") } == true)
        for camera in cameras { figure("camera", "\(camera.identity) | \(camera.label)") }
    }

    @Test func `A camera films at its rate, with the driver's stamps, and misses what the driver missed`() async throws
    {
        let camera = camera()
        let description = try await camera.open()
        #expect(description.timestampSource == "driver, CLOCK_MONOTONIC, end of frame")
        #expect(description.video == VideoFormat(encoding: .yuyv, width: 640, height: 360, bytesPerLine: 1280))
        figure("camera_label", description.label)
        let content = try await film(camera)
        let frames = content.samples
        let first = try #require(frames.first)
        let last = try #require(frames.last)
        let rate = Double(frames.count - 1) / (last.capture - first.capture).seconds
        figure("camera_frames", frames.count)
        figure("camera_rate", rate)
        figure("camera_lost", lost(content))
        figure("camera_uncertainty_ms_max", frames.map(\.uncertainty.milliseconds).max() ?? -1)
        figure("camera_notes", content.events.compactMap { if case .note(let text) = $0 { text } else { nil } })
        let waits = frames.map { ($0.arrival - $0.capture).milliseconds }
        figure("camera_arrival_after_stamp_ms_min", waits.min() ?? -1)
        figure("camera_arrival_after_stamp_ms_max", waits.max() ?? -1)
        #expect(abs(rate - 30) < 1)
        #expect(frames.count >= 145)
        #expect(lost(content) == missing(content))
        // vivid itself leaves frames out where its own thread is late, as in an emulated machine it is.
        #expect(lost(content) <= 5)
        #expect(frames.allSatisfy { $0.device?.nanoseconds == $0.capture.nanoseconds })
        // vivid stamps the end of a frame nine tenths of a period after it was made, which may be in the future.
        #expect(waits.allSatisfy { $0 > -30 && $0 < 500 })
        #expect(frames.allSatisfy { $0.arrival - $0.capture >= -$0.uncertainty })
        #expect(zip(frames, frames.dropFirst()).allSatisfy { $0.capture < $1.capture })
        for frame in frames {
            guard case .frame(let bytes, true) = frame.payload else {
                Issue.record("a frame that is no key frame")
                return
            }
            #expect(bytes.count == 640 * 360 * 2)
        }
        #expect(first.payload.bytes != last.payload.bytes, "the picture moves")
    }

    @Test func `Losses that the driver makes are counted exactly`() async throws {
        run("v4l2-ctl", "-d", node, "-c", "percentage_of_dropped_buffers=20")
        let content = try await film(camera())
        run("v4l2-ctl", "-d", node, "-c", "percentage_of_dropped_buffers=0")
        figure("lossy_frames", content.samples.count)
        figure("lossy_lost_told", lost(content))
        figure("lossy_lost_by_counter", missing(content))
        #expect(lost(content) == missing(content))
        // 20 % of about 150, and four standard deviations of a binomial are 20.
        #expect((10...50).contains(lost(content)))
    }

    @Test func `A counter that wraps loses nothing`() async throws {
        run("v4l2-ctl", "-d", node, "-c", "wrap_sequence_number=1")
        let content = try await film(camera())
        run("v4l2-ctl", "-d", node, "-c", "wrap_sequence_number=0")
        let sequences = content.samples.compactMap(\.sequence)
        figure("wrap_from_to", "\(sequences.first ?? -1) \(sequences.last ?? -1)")
        figure("wrap_lost", lost(content))
        #expect((sequences.first ?? 0) > 4_294_000_000 && (sequences.last ?? .max) < 1000)
        #expect(lost(content) <= 5)
        #expect(lost(content) == missing(content))
    }

    @Test func `A damaged frame is left out and counted`() async throws {
        let camera = camera()
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        _ = await sink.wait(forSamples: 10)
        run("v4l2-ctl", "-d", node, "-c", "inject_v4l2_buf_flag_error=1")
        _ = await sink.wait { $0.events.contains { if case .lost = $0 { true } else { false } } }
        let content = await sink.wait(forSamples: 40)
        await camera.close()
        figure("damaged_lost", lost(content))
        #expect(lost(content) >= 1)
        #expect(lost(content) == missing(content))
    }

    @Test(arguments: ["inject_fatal_streaming_error", "disconnect"])
    func `A camera that breaks ends its stream with one sentence`(control: String) async throws {
        let camera = camera()
        _ = try await camera.open()
        let sink = EmulatedCollector()
        try await camera.start(sink)
        _ = await sink.wait(forSamples: 10)
        run("v4l2-ctl", "-d", node, "-c", "\(control)=1")
        let content = await sink.wait { $0.events.contains { if case .failed = $0 { true } else { false } } }
        await camera.close()
        let sentences = content.events.compactMap { if case .failed(let text) = $0 { text } else { nil } }
        #expect(sentences.count == 1)
        figure(control, sentences.first ?? "")
        let cause = control == "disconnect" ? "was unplugged" : "broke off its stream"
        #expect(sentences.first?.contains(cause) == true)
        guard control == "disconnect" else { return }
        // Only a new binding brings vivid back.
        run("sh", "-c", "cd /sys/bus/platform/drivers/vivid && echo vivid.0 >unbind && echo vivid.0 >bind")
        run("udevadm", "settle")
        #expect(try await film(self.camera()).samples.count > 100)
    }

    @Test func `A camera that another program holds is named with that program`() async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/v4l2-ctl")
        process.arguments = ["-d", node, "--stream-mmap=4", "--stream-count=100000"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        defer {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        // Its stream is on when the format can't be changed any more.
        var sentence = ""
        for _ in 0..<100 where sentence.isEmpty {
            let camera = camera()
            do {
                _ = try await camera.open()
                await camera.close()
                try await Task.sleep(for: .milliseconds(50))
            } catch { sentence = "\(error)" }
        }
        figure("busy", sentence)
        #expect(sentence.contains("is held by process \(process.processIdentifier) (v4l2-ctl)"))
    }

    // MARK: Sound

    private func microphone() -> ALSAMicrophone {
        var options = ALSAMicrophoneOptions(name: PCMName(card: "Loopback", device: 1))
        options.channels = 2
        return ALSAMicrophone(id, options)
    }

    @Test func `A microphone hears at its rate, with the card's stamps`() async throws {
        let microphone = microphone()
        let description = try await microphone.open()
        figure("microphone_label", description.label)
        #expect(description.audio == AudioFormat(encoding: .s16, rate: 48_000, channels: 2))
        #expect(description.timestampSource.hasPrefix("sound card (htstamp), CLOCK_MONOTONIC"))
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        let content = await sink.wait(forSamples: 250)
        await microphone.close()
        let blocks = content.samples
        let first = try #require(blocks.first)
        let last = try #require(blocks.last)
        let frames = blocks.dropLast().reduce(0) { $0 + $1.payload.frames }
        let rate = Double(frames) / (last.capture - first.capture).seconds
        figure("microphone_frames", blocks.reduce(0) { $0 + $1.payload.frames })
        figure("microphone_rate_hz", rate)
        figure("microphone_by_card_stamp", blocks.count { $0.device != nil })
        figure("microphone_uncertainty_ms_max", blocks.map(\.uncertainty.milliseconds).max() ?? -1)
        figure(
            "microphone_arrival_after_end_ms_max",
            blocks.map { ($0.arrival - $0.capture).milliseconds - 20 }.max() ?? -1)
        #expect(blocks.reduce(0) { $0 + $1.payload.frames } == 240_000)
        // The position moves in steps of a jiffy, 4 ms in 5 s are 0.08 %.
        #expect(abs(rate - 48_000) < 100)
        #expect(blocks.allSatisfy { $0.device != nil })
        #expect(blocks.allSatisfy { $0.arrival >= $0.capture })
        #expect(!content.events.contains { if case .gap = $0 { true } else { false } })
    }

    @Test func `An overrun is a gap of measured length`() async throws {
        let microphone = microphone()
        _ = try await microphone.open()
        let sink = StallingSink(after: 20, milliseconds: 2600)
        try await microphone.start(sink)
        let content = await sink.inner.wait { content in
            content.samples.count >= 60 && content.events.contains { if case .gap = $0 { true } else { false } }
        }
        await microphone.close()
        let gaps = content.events.compactMap { event -> Interval? in
            if case .gap(let from, let to, _) = event { to - from } else { nil }
        }
        figure("overrun_gap_ms", gaps.map(\.milliseconds))
        #expect(gaps.count == 1)
        // The sink slept 2600 ms, longer than the buffer's 2 s, and what was in it then is lost too.
        #expect(gaps.allSatisfy { $0 > .milliseconds(2500) && $0 < .milliseconds(3200) })
        // What lies between the blocks by their stamps is what was captured and the gap, and nothing else.
        let first = try #require(content.samples.first)
        let last = try #require(content.samples.last)
        let heard = Double(content.samples.dropLast().reduce(0) { $0 + $1.payload.frames }) / 48_000
        let total = (last.capture - first.capture).seconds
        figure("overrun_unexplained_ms", (total - heard - gaps.reduce(0) { $0 + $1.seconds }) * 1000)
        #expect(abs(total - heard - gaps.reduce(0) { $0 + $1.seconds }) < 0.03)
    }

    @Test func `A sound is heard when the speaker says it left`() async throws {
        let microphone = microphone()
        _ = try await microphone.open()
        let speaker = ALSASpeaker(name: PCMName(card: "Loopback", device: 0))
        #expect(try await speaker.open() == 48_000)
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        _ = await sink.wait(forSamples: 10)
        let wanted = HostClock.now + .milliseconds(1500)
        // Never zero, so that its first and its last sample can be seen; half a second as a chirp has.
        let sound = (0..<24_000).map { 0.25 + 0.5 * Float($0 % 100) / 100 }
        let emission = try await speaker.play(sound, at: wanted)
        let now = sink.content.samples.count
        let content = await sink.wait(forSamples: now + 15)
        await speaker.close()
        await microphone.close()
        var heard: [Int16] = []
        var onset: Timestamp<HostTime>?
        for block in content.samples {
            let left = block.payload.left
            if onset == nil, let place = left.firstIndex(where: { $0 != 0 }) {
                onset = block.capture + .seconds(Double(place) / 48_000)
            }
            heard += left
        }
        let first = try #require(heard.firstIndex { $0 != 0 })
        let expected = sound.map { Int16((Double($0) * 32_767).rounded()) }
        let same = zip(heard[first...], expected).count { $0 == $1 }
        let heardAt = try #require(onset)
        figure("speaker_source", emission.source.rawValue)
        figure("speaker_uncertainty_ms", emission.uncertainty.milliseconds)
        figure("speaker_emitted_after_wanted_ms", (emission.instant - wanted).milliseconds)
        figure("speaker_heard_after_emitted_ms", (heardAt - emission.instant).milliseconds)
        figure("speaker_identical_of_24000", same)
        #expect(emission.source == .hardware)
        #expect((emission.instant - wanted).magnitude < .milliseconds(25))
        // The card hands over what is played at its next tick: two steps of 4 ms, and as much on the other side.
        #expect((heardAt - emission.instant).magnitude < .milliseconds(25))
        #expect(same == 24_000)
        #expect(heard[(first + 24_000)...].allSatisfy { $0 == 0 })
    }

    @Test func `A microphone that is unplugged says so once, and goes on when it is there again`() async throws {
        let microphone = microphone()
        _ = try await microphone.open()
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        _ = await sink.wait(forSamples: 10)
        run("sh", "-c", "cd /sys/bus/platform/drivers/snd_aloop && (echo snd_aloop.0 >unbind &)")
        _ = await sink.wait { content in
            content.events.contains { if case .note(let text) = $0 { text.contains("was unplugged") } else { false } }
        }
        let before = sink.content.samples.count
        run("sh", "-c", "cd /sys/bus/platform/drivers/snd_aloop && sleep 1 && echo snd_aloop.0 >bind")
        let content = await sink.wait(forSamples: before + 50)
        await microphone.close()
        let sentences = content.events.compactMap { if case .note(let text) = $0 { text } else { nil } }
        figure("microphone_unplugged", sentences.joined(separator: " | "))
        #expect(sentences.count { $0.contains("was unplugged") } == 1)
        #expect(content.events.count { if case .gap = $0 { true } else { false } } == 1)
    }
}

extension Sample.Payload {
    fileprivate var bytes: [UInt8] {
        switch self {
        case .frame(let bytes, _): bytes.array
        case .audio(let bytes, _): bytes
        case .values: []
        }
    }

    fileprivate var frames: Int { if case .audio(_, let frames) = self { frames } else { 0 } }

    /// The first channel of 16-bit stereo.
    fileprivate var left: [Int16] {
        let bytes = bytes
        return stride(from: 0, to: bytes.count - 3, by: 4).map {
            Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
        }
    }
}
