internal import Devices
internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

/// What cameras do wrong, down to the files: reports of our list by their numbers, read by ffprobe.
@Suite(.timeLimit(.minutes(2))) struct CameraFilesTests {
    private static let id = StreamID(unchecked: "cam")
    private static let period = 1.0 / 30

    private static func description(_ encoding: VideoFormat.Encoding = .mjpeg, width: Int = 64) -> StreamDescription {
        var description = StreamDescription(
            id: id, kind: .video, deviceKind: "v4l2", deviceIdentity: "S1", label: "x", nominalRate: 30,
            video: VideoFormat(
                encoding: encoding, width: width, height: 48, bytesPerLine: encoding == .yuyv ? 2 * width : 0),
            capabilities: StreamCapabilities(producesFile: true),
            timestampSource: "driver, CLOCK_MONOTONIC, end of frame")
        description.lossMethod = .sequence
        return description
    }

    /// A picture of one colour, which ffmpeg made: 64x48 or 32x48.
    private static func jpeg(width: Int) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        _ = try Outside.run([
            "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=red:size=\(width)x48", "-frames:v", "1",
            "\(folder.path)/one.jpg",
        ])
        return try Files.read("\(folder.path)/one.jpg")
    }

    private static func frame(_ seconds: Double, _ bytes: [UInt8], _ number: Int64, _ flags: SampleFlags = []) -> Sample
    {
        let at = Samples.at(seconds)
        return Sample(
            payload: .frame(FrameBytes(bytes), isKey: true), capture: at, uncertainty: .milliseconds(1), arrival: at,
            device: Timestamp(nanoseconds: at.nanoseconds), sequence: number, flags: flags)
    }

    private static func epoch(_ number: Int, _ seconds: Double, _ cause: String, _ description: StreamDescription)
        -> DeviceEvent
    {
        .epoch(StreamEpoch(number: number, start: Samples.at(seconds), cause: cause, description: description))
    }

    /// A take from 10 s on, for so long; `feed` plays the device.
    private func take(
        _ description: StreamDescription = description(), seconds: Double, in folder: TemporaryFolder,
        before: (SampleRing) -> Void = { _ in }, feed: (SampleRing) -> Void
    ) async throws -> ManifestStream {
        let recorder = StreamRecorder(Self.id) { _ in }
        before(recorder.ring)
        try await recorder.prepare(
            description, WriterPlace(folder: folder.path, clockDomain: "left"), start: Samples.at(10),
            stop: Samples.at(10 + seconds))
        feed(recorder.ring)
        return try #require(await recorder.finish())
    }

    /// Of the container, by ffprobe, in seconds.
    private func stamps(_ path: String) throws -> [Double] {
        try Outside.run([
            "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0",
            path,
        ]).split(separator: "\n").compactMap { Double($0.trimmingCharacters(in: CharacterSet(charactersIn: ", "))) }
    }

    private func duration(_ path: String) throws -> Double {
        let text = try Outside.run([
            "ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path,
        ])
        return try #require(Double(text.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    @Test func `C1 #16 C4 #107 a camera that halves its rate gives a video as long as the take`() async throws {
        let folder = try TemporaryFolder()
        let picture = try Self.jpeg(width: 64)
        var last = 0.0
        let entry = try await take(seconds: 10, in: folder) { ring in
            for number in 0..<225 {
                last = number < 150 ? 10 + Double(number) / 30 : 15 + Double(number - 150) / 15
                ring.deliver(Self.frame(last, picture, Int64(number)))
            }
        }
        #expect(entry.dropped == 0)
        let path = "\(folder.path)/cam.mp4"
        // The last frame lasts a nominal frame; players have the first one at 0.
        #expect(abs(try duration(path) - (last - 10)) <= 1.5 * Self.period)
        let container = try stamps(path)
        #expect(container.count == 225)
        let rows = try Outside.stamps("\(folder.path)/cam.timestamps.jsonl")
        #expect(rows.count == 225)
        for (pts, row) in zip(container, rows) {
            #expect(abs(pts - container[0] - Double(row - rows[0]) / 1e9) < 0.0005)
        }
    }

    @Test func `C1 #8 C4 #103 equal stamps of the driver stay raw in the rows and rise in the container`() async throws
    {
        let folder = try TemporaryFolder()
        let picture = try Self.jpeg(width: 64)
        var intake = FrameIntake(
            FrameIntake.Shape(description: Self.description(), wholeSize: nil, askedRate: 30))
        let stuck = Samples.at(10.5)
        let entry = try await take(seconds: 4, in: folder) { ring in
            for number in UInt32(0)..<110 {
                let taken = Samples.at(10 + Double(number) * Self.period)
                let now = FrameStamper.Clocks(
                    monotonic: taken + .milliseconds(20), wall: 1_800_000_000_000_000_000, boottime: 0)
                let raw = (15..<65).contains(number) ? stuck : taken
                let buffer = V4L2Filled(
                    index: 0, bytesUsed: picture.count, flags: 0x2000, sequence: number,
                    stamp: Timestamp(nanoseconds: raw.nanoseconds))
                for output in intake.take(buffer, bytes: FrameBytes(picture + [UInt8(number)]), at: now) {
                    switch output {
                    case .sample(let sample): ring.deliver(sample)
                    case .event(let event): ring.report(event)
                    }
                }
            }
        }
        // The first of the fifty is later than the one before.
        #expect(entry.flagged?["ts_repeat"] == 49)
        let rows = try Outside.rows("\(folder.path)/cam.timestamps.jsonl")
        let raw = rows.map { ($0["device_timestamp_ns"] as? NSNumber)?.int64Value }
        #expect(raw[15..<65].allSatisfy { $0 == stuck.nanoseconds })
        #expect(rows.count { ($0["flags"] as? [String])?.contains("ts_repeat") == true } == 49)
        let container = try stamps("\(folder.path)/cam.mp4")
        #expect(container.count == 110)
        #expect(zip(container, container.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func `C1 #4 the manifest has the epochs of the take, and how losses were told`() async throws {
        let folder = try TemporaryFolder()
        let picture = try Self.jpeg(width: 64)
        var other = Self.description()
        other.lossMethod = .interval
        let entry = try await take(
            seconds: 2, in: folder,
            before: { ring in
                // Long before the take, and gone from the ring when it begins.
                ring.report(Self.epoch(0, 1, "the start", Self.description()))
                ring.report(Self.epoch(1, 5, "the driver's frame counter began anew", Self.description()))
                for number in Int64(0)..<150 {
                    ring.deliver(Self.frame(5 + Double(number) * Self.period, picture, number))
                }
            }
        ) { ring in
            for number in Int64(0)..<30 { ring.deliver(Self.frame(10 + Double(number) * Self.period, picture, number)) }
            ring.report(Self.epoch(2, 11, "the driver's frame counter stands still", other))
            for number in Int64(30)..<60 { ring.deliver(Self.frame(10 + Double(number) * Self.period, picture, 0)) }
            ring.report(Self.epoch(3, 12.5, "after the take", other))
        }
        #expect(entry.epochs?.map(\.number) == [1, 2])
        #expect(entry.epochs?.map(\.lossMethod) == [.sequence, .interval])
        #expect(entry.lossMethod == .interval)
        let text = String(decoding: try JSONText.encode(entry), as: UTF8.self)
        #expect(text.contains("\"loss_method\":\"interval\"") && text.contains("\"file_path\":\"cam.mp4\""))
    }

    @Test func `A camera that comes back as it was goes on in the same file`() async throws {
        let folder = try TemporaryFolder()
        let picture = try Self.jpeg(width: 64)
        let entry = try await take(seconds: 6, in: folder) { ring in
            ring.report(Self.epoch(0, 10, "the start", Self.description()))
            for number in Int64(0)..<60 { ring.deliver(Self.frame(10 + Double(number) * Self.period, picture, number)) }
            ring.report(.interrupted(since: Samples.at(12), cause: "unplugged"))
            ring.report(.gap(from: Samples.at(12), to: Samples.at(14), cause: "unplugged"))
            ring.report(Self.epoch(1, 14, "plugged in", Self.description()))
            for number in Int64(0)..<60 { ring.deliver(Self.frame(14 + Double(number) * Self.period, picture, number)) }
        }
        #expect(entry.frameCount == 120 && entry.dropped == 60 && entry.gapCount == 1)
        #expect(entry.epochs?.map(\.filePath) == ["cam.mp4", "cam.mp4"])
        #expect(try Outside.frames("\(folder.path)/cam.mp4") == 120)
        let container = try stamps("\(folder.path)/cam.mp4")
        #expect(abs(container[60] - container[59] - 2.0333) < 0.001)
    }

    @Test func `A camera that comes back with another format goes on in the next file`() async throws {
        let folder = try TemporaryFolder()
        let (wide, narrow) = (try Self.jpeg(width: 64), try Self.jpeg(width: 32))
        let entry = try await take(seconds: 6, in: folder) { ring in
            for number in Int64(0)..<60 { ring.deliver(Self.frame(10 + Double(number) * Self.period, wide, number)) }
            ring.report(.gap(from: Samples.at(12), to: Samples.at(14), cause: "unplugged"))
            ring.report(Self.epoch(1, 14, "plugged in", Self.description(width: 32)))
            for number in Int64(0)..<60 { ring.deliver(Self.frame(14 + Double(number) * Self.period, narrow, number)) }
        }
        #expect(entry.frameCount == 120)
        #expect(entry.epochs?.map(\.filePath) == ["cam_seg01.mp4"])
        #expect(try Outside.frames("\(folder.path)/cam.mp4") == 60)
        #expect(try Outside.frames("\(folder.path)/cam_seg01.mp4") == 60)
        let rows = try Outside.rows("\(folder.path)/cam.timestamps.jsonl")
        #expect(rows.map { ($0["frame_number"] as? NSNumber)?.int64Value } == (0..<120).map { Int64($0) })
        #expect(
            rows.map { ($0["segment"] as? NSNumber)?.intValue ?? 0 } == Array(repeating: 0, count: 60)
                + Array(repeating: 1, count: 60))
        #expect(
            rows.map { ($0["sequence"] as? NSNumber)?.int64Value } == (Array(0..<60) + Array(0..<60)).map { Int64($0) })
    }

    @Test func `A format that the first frame corrects makes no second file`() async throws {
        let folder = try TemporaryFolder()
        let picture = try Self.jpeg(width: 64)
        let entry = try await take(Self.description(.h264), seconds: 2, in: folder) { ring in
            ring.report(Self.epoch(0, 10, "the start", Self.description()))
            for number in Int64(0)..<30 { ring.deliver(Self.frame(10 + Double(number) * Self.period, picture, number)) }
        }
        #expect(entry.frameCount == 30)
        #expect(try Files.list(folder.path) == ["cam.mp4", "cam.timestamps.jsonl"])
        #expect(entry.description?.video?.encoding == .mjpeg)
    }

    @Test func `A loss that is found later is placed where it was`() async throws {
        let folder = try TemporaryFolder()
        let picture = try Self.jpeg(width: 64)
        let entry = try await take(seconds: 3, in: folder) { ring in
            for number in Int64(0)..<80 where number != 40 {
                ring.deliver(Self.frame(10 + Double(number) * Self.period, picture, 0))
                if number == 42 { ring.report(.lost(count: 1, before: Samples.at(10 + 41 * Self.period))) }
            }
        }
        #expect(entry.dropped == 1)
        let gap = try #require(entry.gaps.first)
        #expect(gap.to == Samples.at(10 + 41 * Self.period))
        #expect((gap.from - Samples.at(10 + 39 * Self.period)).magnitude < .milliseconds(1))
    }
}

@Suite(.timeLimit(.minutes(1))) struct InterruptionTests {
    @Test func `An interruption is told at once, with its cause, and its end`() {
        var watch = StallWatch(rate: 30, start: Samples.at(0))
        #expect(watch.look(lastArrival: Samples.at(1), at: Samples.at(1.1)) == nil)
        #expect(
            watch.look(lastArrival: Samples.at(1), interruption: "unplugged", at: Samples.at(1.2))
                == .interrupted(cause: "unplugged"))
        #expect(watch.look(lastArrival: Samples.at(1), interruption: "unplugged", at: Samples.at(9)) == nil)
        #expect(watch.isStalled)
        #expect(
            watch.look(lastArrival: Samples.at(1), interruption: "held by cheese", at: Samples.at(9.5))
                == .interrupted(cause: "held by cheese"))
        #expect(watch.look(lastArrival: Samples.at(9.9), at: Samples.at(10)) == .recovered(after: .seconds(8.9)))
    }

    @Test func `A strict take doesn't begin while a device is away`() async throws {
        let device = FakeDevice("cam")
        let fixture = try await AgentFixture(devices: [device])
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(chirp: .off)
        try await fixture.ask(.arm(plan))
        device.deliver()
        device.report(.interrupted(since: HostClock.now, cause: "cam: the camera was unplugged"))
        #expect(try await events.wait(for: .streamStalled).message == "cam: the camera was unplugged")
        #expect(try await fixture.status().streams.first?.state == .stalled)
        let start = HostClock.now + .milliseconds(500)
        let commit = Commit(take: plan.take, start: start, bound: .microseconds(20), limit: start + .seconds(30))
        let refusal = await #expect(throws: Refusal.self) { try await fixture.ask(.commit(commit)) }
        #expect(refusal?.message.hasSuffix("host left: cam: the camera was unplugged") == true)
        #expect(try Files.list(fixture.home.episodes).isEmpty)
    }

    @Test func `Others go on while a device is away, and the start chirp doesn't wait for it`() async throws {
        let (good, away) = (FakeDevice("good"), FakeDevice("away"))
        let fixture = try await AgentFixture(devices: [good, away])
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        let plan = fixture.plan(policy: .warn, chirp: .off)
        let commit = try await fixture.start(plan, lead: 0.2)
        away.report(.interrupted(since: HostClock.now, cause: "unplugged"))
        // Told first: an interruption that is over before the agent looks, some times a second, is only a gap.
        #expect(try await events.wait(for: .streamStalled).stream?.rawValue == "away")
        for i in 0..<10 { good.deliver(at: commit.start + .milliseconds(Int64(i) * 10)) }
        _ = try await events.wait(for: .allStreaming)
        away.report(.gap(from: commit.start, to: commit.start + .milliseconds(500), cause: "unplugged"))
        away.deliver(at: commit.start + .milliseconds(500))
        #expect(try await events.wait(for: .streamRecovered).stream?.rawValue == "away")
        let stop = commit.start + .seconds(1)
        try await fixture.ask(.stop(StopCommand(take: plan.take, stop: stop, reason: "duration")))
        let report = try #require(try await events.wait(for: .takeFinished).stop)
        #expect(report.streams.map(\.samples) == [10, 1])
        #expect(report.streams.map(\.dropped) == [0, 50])
        let log = String(decoding: try Files.read(fixture.episode(plan) + "/session.log"), as: UTF8.self)
        #expect(log.contains("stream_stalled") && log.contains("stream_recovered"))
    }
}
