internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct EpisodeRecoveryTests {
    let folder: TemporaryFolder
    let host = HostID(unchecked: "bench")

    init() throws { folder = try TemporaryFolder() }

    private func description(_ id: String, _ kind: StreamKind) -> StreamDescription {
        StreamDescription(
            id: StreamID(unchecked: id), kind: kind, deviceKind: "test", deviceIdentity: "1", label: id,
            nominalRate: 30, capabilities: StreamCapabilities(producesFile: kind != .sensor), timestampSource: "test")
    }

    /// An episode whose writers were dropped without an end, as by a kill: 2 s of all kinds.
    private func writeKilledEpisode() throws {
        let path = folder.path
        let format = VideoFormat(encoding: .yuyv, width: 64, height: 48)
        let stamps = try TimestampLog(path: "\(path)/cam.timestamps.jsonl", clockDomain: host.rawValue)
        let video = try VideoFileWriter(
            path: "\(path)/cam.mp4", format: format, nominalRate: 30, beforeFragment: { try stamps.flush() })
        for number in 0..<60 {
            let capture = Timestamp<HostTime>(nanoseconds: 10_000_000_000 + Int64(number) * 33_333_333)
            let bytes = TestPicture.yuyv(width: 64, height: 48, stride: 128, number: number)
            try video.append(bytes, capture: capture, isKey: false)
            try stamps.append(frame: Int64(number), capture: capture, uncertainty: .zero, device: nil)
        }
        try stamps.flush()
        let sound = try WAVWriter(
            path: "\(path)/mic.wav", format: AudioFormat(encoding: .s16, rate: 48_000, channels: 1))
        for _ in 0..<190 { try sound.append([UInt8](repeating: 1, count: 960)) }
        let imu = try SensorLog(path: "\(path)/imu.jsonl", clockDomain: host.rawValue, channels: ["a"])
        for number in 0..<200 {
            try imu.append(
                frame: Int64(number), capture: Timestamp(nanoseconds: 10_000_000_000 + Int64(number) * 10_000_000),
                uncertainty: .zero, values: [1.5], device: nil)
        }
        try imu.flush()
        var manifest = HostManifest(
            host: host, role: .leader,
            streams: [
                ManifestStream(description("cam", .video)), ManifestStream(description("mic", .audio)),
                ManifestStream(description("imu", .sensor)),
            ], status: .recording)
        manifest.task = "pour"
        try manifest.write(to: "\(path)/manifest.json")
        var point = SyncPoint(
            host: host.rawValue, monotonic: Timestamp(nanoseconds: 9_999_000_000), wall: Timestamp(nanoseconds: 1))
        point.role = .leader
        try point.write(to: "\(path)/sync_point.json")
    }

    private func append(_ bytes: [UInt8], _ name: String) throws {
        try AtomicFile.write(try Files.read("\(folder.path)/\(name)") + bytes, to: "\(folder.path)/\(name)")
    }

    @Test func aKilledEpisodeIsRepaired() throws {
        try writeKilledEpisode()
        try append(Array(#"{"frame_number":60,"captu"#.utf8), "cam.timestamps.jsonl")
        try append([UInt8](repeating: 0, count: 4_096), "imu.jsonl")
        try append([0, 0, 1, 0, 0x6D, 0x6F, 0x6F, 0x66, 1, 2, 3], "cam.mp4")
        try append([7], "mic.wav")
        try AtomicFile.write("half", to: "\(folder.path)/manifest.json.part")

        let report = try #require(try EpisodeRecovery.recover(folder: folder.path, host: host))
        let manifest = report.manifest
        #expect(manifest.status == .recovered)
        #expect(manifest.task == "pour")
        #expect(!Files.exists("\(folder.path)/manifest.json.part"))
        let streams = Dictionary(uniqueKeysWithValues: manifest.streams.map { ($0.id.rawValue, $0) })
        // Two fragments of 29 frames were whole: 0.95 s at 30 frames a second are over with the 29th.
        #expect(streams["cam"]?.frameCount == 58)
        #expect(Int64(try MediaTools.packetCount("\(folder.path)/cam.mp4")) == 58)
        #expect(try MediaTools.decodedFrames("\(folder.path)/cam.mp4").complaints.isEmpty)
        #expect(streams["mic"]?.frameCount == 91_200)
        #expect(try MediaTools.entry("stream=duration_ts", "\(folder.path)/mic.wav") == "91200")
        #expect(streams["imu"]?.frameCount == 200)
        #expect(streams["imu"]?.first?.nanoseconds == 10_000_000_000)
        #expect(streams["imu"]?.last?.nanoseconds == 11_990_000_000)
        #expect(try RowFile.read("\(folder.path)/cam.timestamps.jsonl").isClean)
        // The rows of the two frames that were in no whole fragment are cut off and told.
        #expect(try RowFile.read("\(folder.path)/cam.timestamps.jsonl").rows == 58)
        #expect(streams["cam"]?.last?.nanoseconds == 11_899_999_981)  // 10 s + 57 × 33 333 333 ns
        #expect(report.sentences.contains { $0.contains("58 frames; 2 more") && $0.contains("66 ms") })
        #expect(manifest.streams.allSatisfy { $0.status == .recovered })

        // A second run finds nothing to do and changes nothing.
        let before = try EpisodeFiles.list(folder.path)
        #expect(try EpisodeRecovery.recover(folder: folder.path, host: host) == nil)
        #expect(try EpisodeFiles.list(folder.path) == before)
    }

    @Test(arguments: [nil, "", "{\"host_id\":", "\0\0\0\0"])
    func theManifestIsMadeAnew(text: String?) throws {
        try writeKilledEpisode()
        try Files.remove("\(folder.path)/manifest.json")
        if let text { try AtomicFile.write(text, to: "\(folder.path)/manifest.json") }
        let report = try #require(
            try EpisodeRecovery.recover(folder: folder.path, host: HostID(unchecked: "someone")))
        #expect(report.manifest.host == host)
        #expect(report.manifest.role == .leader)
        #expect(report.manifest.streams.map(\.id.rawValue).sorted() == ["cam", "imu", "mic"])
        #expect(try HostManifest.read("\(folder.path)/manifest.json") == report.manifest)
        #expect(Files.exists("\(folder.path)/manifest.json.broken") == (text != nil))
    }

    /// Cut at every byte, a file of lines is left with exactly its whole lines.
    @Test func linesCutAtEveryByte() throws {
        let whole = Array(Fixture.rows(4) { #"{"frame_number":\#($0),"capture_ns":\#($0 * 100)}"# }.utf8)
        let path = "\(folder.path)/x.jsonl"
        for length in 0...whole.count {
            try AtomicFile.write(Array(whole[..<length]), to: path)
            let expected = whole[..<length].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
            #expect(try TornTail.wholeLength(ofLines: path) == Int64(expected))
        }
    }

    /// Cut anywhere, the video is readable to its last whole fragment afterwards.
    @Test func fragmentsCutAnywhere() throws {
        try writeKilledEpisode()
        let whole = try Files.read("\(folder.path)/cam.mp4")
        let path = "\(folder.path)/cut.mp4"
        var counts: Set<Int64> = []
        for length in stride(from: whole.count, through: 0, by: -311) {
            try AtomicFile.write(Array(whole[..<length]), to: path)
            guard let kept = try TornTail.wholeLength(ofFragments: path) else { continue }
            try AtomicFile.write(Array(whole[..<Int(kept)]), to: path)
            let probe = try ContainerProbe(path: path)
            #expect(probe.tornPackets == 0)
            counts.insert(probe.videoPackets)
        }
        #expect(counts == [0, 29, 58])
    }

    @Test func aFinishedEpisodeIsLeftAlone() throws {
        let manifest = HostManifest(host: host, role: .follower, streams: [], status: .finished)
        try manifest.write(to: "\(folder.path)/manifest.json")
        try AtomicFile.write("{torn", to: "\(folder.path)/x.jsonl")
        #expect(try EpisodeRecovery.recover(folder: folder.path, host: host) == nil)
        #expect(Files.size("\(folder.path)/x.jsonl") == 5)
    }
}
