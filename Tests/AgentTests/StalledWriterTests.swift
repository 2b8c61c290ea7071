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

/// The files of a stream on a disk that stands still from one sample on, until the test lets it go on.
private final class StallingWriter: StreamWriter {
    /// Shared with the test: the writer's thread waits in it, as in a write that doesn't come back.
    final class Disk: Sendable {
        let arrived = DispatchSemaphore(value: 0)
        let goOn = DispatchSemaphore(value: 0)
    }

    private let files: any StreamWriter
    private let disk: Disk
    private let stallsAt: Int
    private var count = 0

    init(_ files: any StreamWriter, _ disk: Disk, at sample: Int) {
        (self.files, self.disk, stallsAt) = (files, disk, sample)
    }

    func append(_ sample: Sample) throws -> Int64 {
        if count == stallsAt {
            disk.arrived.signal()
            disk.goOn.wait()
        }
        count += 1
        return try files.append(sample)
    }

    func interrupted() { files.interrupted() }
    func sync() throws { try files.sync() }
    func finish() throws { try files.finish() }
    var bytesWritten: Int64 { files.bytesWritten }
    var lastRefusal: String? { files.lastRefusal }
    var adjustedStamps: Int64? { files.adjustedStamps }
    var sound: SoundRecord? { files.sound }
    var notes: [String] { files.notes }
}

@Suite(.timeLimit(.minutes(1))) struct StalledWriterTests {
    /// A JPEG camera at 30 frames/s: 60 frames, then so many more while the disk stands still, then 60 more.
    private func record(
        stalledFrames: Int, limits: SampleRing.Limits, folder: TemporaryFolder
    ) async throws -> (entry: ManifestStream, written: Int, rows: [Int64]) {
        let jpeg = try Self.jpeg(in: folder)
        let stream = StreamID(unchecked: "cam")
        let disk = StallingWriter.Disk()
        let recorder = StreamRecorder(
            stream, limits: limits,
            writers: { StallingWriter(try StreamWriters.writer($0, $1), disk, at: 60) }, notify: { _ in })
        let description = StreamDescription(
            id: stream, kind: .video, deviceKind: "test", deviceIdentity: "1", label: "camera", nominalRate: 30,
            video: VideoFormat(encoding: .mjpeg, width: 320, height: 240),
            capabilities: StreamCapabilities(producesFile: true), timestampSource: "test")
        let start = HostClock.now
        let total = 60 + stalledFrames + 60
        func deliver(_ range: Range<Int>) {
            for number in range {
                let capture = start + .seconds(Double(number) / 30)
                recorder.ring.deliver(
                    Sample(
                        payload: .frame(FrameBytes(jpeg), isKey: true), capture: capture, uncertainty: .zero,
                        arrival: capture, sequence: Int64(1000 + number)))
            }
        }
        try await recorder.prepare(
            description, WriterPlace(folder: folder.path, clockDomain: "host"), start: start,
            stop: start + .seconds(Double(total) / 30))
        // In portions that the smallest ring holds: the writer may not have begun.
        for portion in [0..<30, 30..<60] {
            deliver(portion)
            await recorder.settle()
        }
        deliver(60..<61)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                disk.arrived.wait()
                continuation.resume()
            }
        }
        // The 61st frame is in the writer's hands, and as many as a batch has may be too.
        deliver(61..<61 + stalledFrames - 1)
        disk.goOn.signal()
        // The disk has caught up before the camera goes on.
        await recorder.settle()
        deliver(60 + stalledFrames..<total)
        await recorder.settle()
        let entry = try #require(await recorder.finish())
        let rows = try Outside.rows("\(folder.path)/cam.timestamps.jsonl")
        return (
            entry, try Outside.frames("\(folder.path)/cam.mp4"),
            try rows.map { row in
                let capture = try #require((row["capture_ns"] as? NSNumber)?.int64Value)
                return Int64((Double(capture - start.nanoseconds) * 30 / 1e9).rounded())
            }
        )
    }

    private static func jpeg(in folder: TemporaryFolder) throws -> [UInt8] {
        let path = "\(folder.path)/one.jpg"
        _ = try Outside.run([
            "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x240", "-frames:v", "1", "-q:v", "2", path,
        ])
        return try Files.read(path)
    }

    @Test("a disk that stands still for 1.8 s costs nothing, with the ring that every stream has")
    func shortStall() async throws {
        let folder = try TemporaryFolder()
        let (entry, written, rows) = try await record(
            stalledFrames: 54, limits: SampleRing.Limits(), folder: folder)
        #expect(entry.dropped == 0 && entry.gaps.isEmpty && entry.status == .completed)
        #expect(written == 174)
        #expect(rows == Array(0..<174))
    }

    @Test("a disk that stands still for 5 s costs what the ring can't hold: counted, and located to the frame")
    func longStall() async throws {
        let folder = try TemporaryFolder()
        // A ring of 2 s: 60 frames with what an entry itself takes.
        let size = try Self.jpeg(in: folder).count + 128
        try Files.remove("\(folder.path)/one.jpg")
        var limits = SampleRing.Limits()
        limits.takeBytes = 60 * size + size / 2
        let (entry, written, rows) = try await record(stalledFrames: 150, limits: limits, folder: folder)
        // 149 frames came while one was held; the newest 60 were kept.
        #expect(entry.dropped == 89)
        #expect(written == 270 - 89)
        #expect(rows == Array(0...60) + Array(150..<270))
        try #require(entry.gaps.count == 1)
        let gap = entry.gaps[0]
        #expect(gap.count == 89)
        #expect(gap.firstSequence == 1061 && gap.lastSequence == 1149)
        // From the 62nd to the 150th frame.
        #expect(abs((gap.to - gap.from).seconds - 88.0 / 30) < 1e-6)
        #expect(entry.status == .partial)
    }

    @Test("a camera without compression has a ring of two seconds, however much it delivers")
    func rawCameras() {
        let ring = SampleRing()
        // 4K YUYV at 30 frames/s: 498 MB/s, so 60 frames of 16.6 MB are more than the common limit of 256 MiB.
        let frame = FrameBytes([UInt8](repeating: 0, count: 3840 * 2160 * 2))
        ring.beginTake(at: Samples.at(0), bytesPerSecond: Double(frame.count) * 30) {}
        for number in 0..<60 {
            let capture = Samples.at(Double(number) / 30)
            ring.deliver(
                Sample(payload: .frame(frame, isKey: true), capture: capture, uncertainty: .zero, arrival: capture))
        }
        #expect(ring.take(atMost: 1).lost == nil)
    }
}
