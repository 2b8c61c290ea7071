internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct EpisodeMergerTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A host's real episode of 2 s: camera, microphone and sensor, whose clock is `offset` before the rig's.
    private func writeHost(_ name: String, role: HostRole, offset: Int64, camera: String = "cam") throws {
        let path = "\(folder.path)/hosts/\(name)"
        try Files.makeFolder(path)
        let start = Timestamp<HostTime>(nanoseconds: 100_000_000_000 - offset)
        let stamps = try TimestampLog(path: "\(path)/\(camera).timestamps.jsonl", clockDomain: name)
        let video = try VideoFileWriter(
            path: "\(path)/\(camera).mp4", format: VideoFormat(encoding: .yuyv, width: 64, height: 48),
            nominalRate: 30)
        let sensor = try SensorLog(path: "\(path)/imu.jsonl", clockDomain: name, channels: ["ax", "ay"])
        let sound = try WAVWriter(
            path: "\(path)/mic.wav", format: AudioFormat(encoding: .s16, rate: 48_000, channels: 1))
        let blocks = try TimestampLog(path: "\(path)/mic.timestamps.jsonl", clockDomain: name)
        for number in 0..<60 {
            let capture = start + .nanoseconds(Int64(number) * 33_333_333)
            let bytes = TestPicture.yuyv(width: 64, height: 48, stride: 128, number: number)
            try video.append(bytes, capture: capture, isKey: false)
            try stamps.append(frame: Int64(number), capture: capture, uncertainty: .milliseconds(1), device: nil)
        }
        for number in 0..<200 {
            try sensor.append(
                frame: Int64(number), capture: start + .milliseconds(Int64(number) * 10), uncertainty: .milliseconds(1),
                values: [0.5, Double(number)], device: nil)
        }
        for number in 0..<20 {
            try sound.append([UInt8](repeating: 0, count: 9_600))
            try blocks.append(
                frame: Int64(number) * 4_800, capture: start + .milliseconds(Int64(number) * 100),
                uncertainty: .microseconds(200), device: nil)
        }
        try video.finish()
        try stamps.finish()
        try sensor.finish()
        try sound.finish()
        try blocks.finish()
        var manifest = HostManifest(
            host: HostID(unchecked: name), role: role,
            streams: [
                entry(camera, .video, 30, 60), entry("mic", .audio, 48_000, 96_000), entry("imu", .sensor, 100, 200),
            ],
            status: .finished)
        manifest.task = "pour"
        try manifest.write(to: "\(path)/manifest.json")
        var point = SyncPoint(host: name, monotonic: start, wall: Timestamp(nanoseconds: 1_775_921_370_123_456_789))
        point.role = role
        try point.write(to: "\(path)/sync_point.json")
    }

    private func entry(_ id: String, _ kind: StreamKind, _ rate: Double, _ count: Int64) -> ManifestStream {
        var stream = ManifestStream(
            StreamDescription(
                id: StreamID(unchecked: id), kind: kind, deviceKind: "test", deviceIdentity: "1", label: id,
                nominalRate: rate, capabilities: StreamCapabilities(producesFile: kind != .sensor),
                timestampSource: "test"), status: .completed)
        stream.frameCount = count
        return stream
    }

    private func plan(_ clocks: [String: Int64]) -> MergePlan {
        var plan = MergePlan(session: "kitchen", episode: "ep_20260411_152930_a1b2c3")
        plan.start = Timestamp(nanoseconds: 100_000_000_000)
        plan.stop = Timestamp(nanoseconds: 102_000_000_000)
        for (host, offset) in clocks {
            plan.clocks[HostID(unchecked: host)] = ClockSeries(
                ClockMapping<HostTime, RigTime>(
                    reference: Timestamp(nanoseconds: 101_000_000_000 - offset), offset: .nanoseconds(offset), skew: 0,
                    bound: .microseconds(20), skewBound: 1e-6))
        }
        return plan
    }

    /// Three hosts with the same stream ids: the request is, word for word, what the interface's publication has.
    @Test func theRequestOfThreeHosts() throws {
        try writeHost("desk 2", role: .leader, offset: 3_600_000_000_000)
        try writeHost("bench", role: .follower, offset: -7)
        try writeHost("nord.é", role: .follower, offset: 0)
        let result = try EpisodeMerger.merge(
            folder: folder.path, plan: plan(["desk 2": 3_600_000_000_000, "bench": -7, "nord.é": 0]))
        let text = String(decoding: try Files.read("\(folder.path)/sync_request.json"), as: UTF8.self)
        #expect(
            text == """
                {
                  "hosts" : [
                    {
                      "host_id" : "bench",
                      "streams" : [
                        {
                          "path" : "/data/bench.cam.mp4",
                          "stream_id" : "bench.cam"
                        },
                        {
                          "stream_id" : "bench.imu",
                          "stream_type" : "sensor"
                        }
                      ]
                    },
                    {
                      "host_id" : "desk 2",
                      "streams" : [
                        {
                          "is_primary" : true,
                          "path" : "/data/desk 2.cam.mp4",
                          "stream_id" : "desk 2.cam"
                        },
                        {
                          "stream_id" : "desk 2.imu",
                          "stream_type" : "sensor"
                        }
                      ]
                    },
                    {
                      "host_id" : "nord.é",
                      "streams" : [
                        {
                          "path" : "/data/nord.é.cam.mp4",
                          "stream_id" : "nord.é.cam"
                        },
                        {
                          "stream_id" : "nord.é.imu",
                          "stream_type" : "sensor"
                        }
                      ]
                    }
                  ],
                  "timestamps_dir" : "/timestamps"
                }

                """)
        #expect(
            try Files.list("\(folder.path)/data")
                == [
                    "bench.cam.mp4", "bench.mic.wav", "desk 2.cam.mp4", "desk 2.mic.wav", "nord.é.cam.mp4",
                    "nord.é.mic.wav",
                ])
        #expect(
            try Files.list("\(folder.path)/timestamps").filter { $0.hasPrefix("bench") }
                == [
                    "bench.cam.timestamps.jsonl", "bench.imu.jsonl", "bench.mic.timestamps.jsonl",
                    "bench.sync_point.json",
                ])
        // Second names, not copies.
        #expect(try inode("data/bench.cam.mp4") == inode("hosts/bench/cam.mp4"))
        #expect(result.manifest.leader == "desk 2")
        #expect(result.manifest.task == "pour")
        #expect(result.manifest.streams.allSatisfy { $0.isAligned })
        // All cameras began at T0 of the rig, though the clocks of the hosts are an hour apart.
        for stream in result.manifest.streams {
            #expect(stream.firstRig == Timestamp(nanoseconds: 100_000_000_000))
            // 20 µs, 1 s at 1 ppm, and a nanosecond of rounding.
            #expect((stream.firstBound ?? .zero) >= .microseconds(21))
            #expect((stream.firstBound ?? .zero) <= .microseconds(22))
        }
        let report = try EpisodeVerifier.verify(folder: folder.path)
        #expect(report.findings == [])
        #expect(report.containerFrames == ["bench.cam": 60, "desk 2.cam": 60, "nord.é.cam": 60])

        let figures = VerdictFigures(result.manifest, aggregated: result.aggregated)
        let verdict = VerdictRules().judge(figures)
        #expect(verdict.color == .green, "\(verdict.sentences)")
    }

    private func inode(_ path: String) throws -> Int {
        let values = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/\(path)")
        return try #require(values[.systemFileNumber] as? Int)
    }

    /// Merging again gives the same bytes, also after somebody put other files there.
    @Test func mergingTwiceIsMergingOnce() throws {
        try writeHost("bench", role: .leader, offset: 0)
        try Fixture.write(Fixture.swift, to: "\(folder.path)/hosts/phone")
        try Fixture.write(Fixture.python, to: "\(folder.path)/hosts/studio")
        let plan = plan(["bench": 0])
        _ = try EpisodeMerger.merge(folder: folder.path, plan: plan)
        let first = try EpisodeFiles.list(folder.path).map { [$0.path, $0.sha256] }
        try AtomicFile.write("old", to: "\(folder.path)/data/old.mp4")
        try Files.remove("\(folder.path)/timestamps/bench.imu.jsonl")
        _ = try EpisodeMerger.merge(folder: folder.path, plan: plan)
        #expect(try EpisodeFiles.list(folder.path).map { [$0.path, $0.sha256] } == first)
    }

    /// Other programs' episodes beside ours: what can't be aligned says so, and what a server would refuse is left out.
    @Test func hostsOfOtherPrograms() throws {
        try writeHost("bench", role: .leader, offset: 0)
        var phone = Fixture.swift
        phone["imu.jsonl"] = Fixture.rows(2) {
            #"{"channels":{"x":\#($0)},"frame":\#($0),"timestamp_ns":\#(900 + $0)}"#
        }
        try Fixture.write(phone, to: "\(folder.path)/hosts/phone")
        var studio = Fixture.python
        studio["ego_cam.timestamps.jsonl"] =
            "\u{FEFF}{\"frame_number\":1,\"capture_ns\":20,\"extra\": 1}\r\n{\"frame_number\":0,\"capture_ns\":10}\r\n{\"fra"
        try Fixture.write(studio, to: "\(folder.path)/hosts/studio")
        var plan = plan(["bench": 0])
        plan.failures[HostID(unchecked: "gone")] = (.unreachable, "no answer for 30 s; is it switched on?")
        let result = try EpisodeMerger.merge(folder: folder.path, plan: plan)

        // Old keys are renamed, rows ordered, torn ends left out; the originals stay.
        let imu = try Files.read("\(folder.path)/timestamps/phone.imu.jsonl")
        #expect(
            String(decoding: imu, as: UTF8.self)
                == #"{"capture_ns":900,"channels":{"x":0},"frame_number":0}"# + "\n"
                + #"{"capture_ns":901,"channels":{"x":1},"frame_number":1}"# + "\n")
        #expect(try Files.read("\(folder.path)/hosts/phone/imu.jsonl") == Array((phone["imu.jsonl"] ?? "").utf8))
        #expect(
            String(
                decoding: try Files.read("\(folder.path)/timestamps/studio.ego_cam.timestamps.jsonl"), as: UTF8.self)
                == "{\"frame_number\":0,\"capture_ns\":10}\n{\"frame_number\":1,\"capture_ns\":20,\"extra\": 1}\n")

        let streams = Dictionary(uniqueKeysWithValues: result.manifest.streams.map { ($0.id, $0) })
        #expect(streams["phone.cam_ego"]?.isAligned == false)
        #expect(streams["phone.cam_ego"]?.firstRig == nil)
        #expect(streams["phone.cam_wrist"]?.isPending == true)
        #expect(streams["bench.cam"]?.isAligned == true)
        let inRequest = try #require(result.request).hosts.flatMap { $0.streams.map(\.id) }
        #expect(
            inRequest
                == ["bench.cam", "bench.imu", "phone.cam_ego", "phone.imu", "studio.ego_cam", "studio.ego_cam.left"])
        let missing = try #require(result.aggregated.hosts.first { $0.id == "gone" })
        #expect(missing.status == .unreachable)
        let text = String(decoding: try Files.read("\(folder.path)/aggregated_manifest.json"), as: UTF8.self)
        #expect(text.contains("\"error\" : null"))
        #expect(text.contains("\"leader_episode\" : \"ep_20260411_152930_a1b2c3\""))

        let verdict = VerdictRules().judge(VerdictFigures(result.manifest, aggregated: result.aggregated))
        #expect(verdict.color == .red)
        #expect(verdict.sentences.contains { $0.contains("gone") && $0.contains("no answer") })
        #expect(verdict.hosts.first { $0.id == "bench" }?.color == .green)
    }

    /// A host whose program died with stamps ahead of its frames: the merged stamps are those of the frames there are.
    @Test func aRecoveredHostHasAsManyStampsAsFrames() throws {
        try writeHost("bench", role: .leader, offset: 0)
        let host = "\(folder.path)/hosts/bench"
        let more = (60..<80).map { "{\"frame_number\":\($0),\"capture_ns\":\(103_000_000_000 + $0)}\n" }.joined()
        try AtomicFile.write(
            try Files.read("\(host)/cam.timestamps.jsonl") + Array(more.utf8), to: "\(host)/cam.timestamps.jsonl")
        var manifest = try HostManifest.read("\(host)/manifest.json")
        manifest.status = .recording
        for index in manifest.streams.indices { manifest.streams[index].status = .recording }
        try manifest.write(to: "\(host)/manifest.json")
        #expect(try EpisodeRecovery.recover(folder: host, host: HostID(unchecked: "bench")) != nil)

        let result = try EpisodeMerger.merge(folder: folder.path, plan: plan(["bench": 0]))
        let camera = try #require(result.manifest.streams.first { $0.id == "bench.cam" })
        #expect(camera.frameCount == 60)
        #expect(camera.rows == 60)
        #expect(camera.last == Timestamp(nanoseconds: 100_000_000_000 + 59 * 33_333_333))
        #expect(try RowFile.read("\(folder.path)/timestamps/bench.cam.timestamps.jsonl").rows == 60)
        let check = try EpisodeVerifier.verify(folder: folder.path)
        #expect(check.findings == [])
        let figures = VerdictFigures(result.manifest, aggregated: result.aggregated, check: check)
        #expect(VerdictRules().judge(figures).color == .amber)
    }

    @Test func withoutVideoASensorIsThePrimary() throws {
        let files = [
            "imu.jsonl": Fixture.rows(3) { #"{"frame_number":\#($0),"capture_ns":\#($0),"channels":{"a":1}}"# }
        ]
        try Fixture.write(files, to: "\(folder.path)/hosts/a")
        let result = try EpisodeMerger.merge(folder: folder.path, plan: plan([:]))
        #expect(
            result.request?.hosts
                == [.init(id: "a", streams: [.init(id: "a.imu", isPrimary: true, type: "sensor")])])
    }

    @Test func anEmptyEpisodeHasNoRequest() throws {
        try AtomicFile.write("old", to: "\(folder.path)/sync_request.json")
        let result = try EpisodeMerger.merge(folder: folder.path, plan: plan([:]))
        #expect(result.request == nil)
        #expect(!Files.exists("\(folder.path)/sync_request.json"))
        let figures = VerdictFigures(result.manifest, aggregated: result.aggregated)
        #expect(VerdictRules().judge(figures).sentences.contains("nothing was recorded"))
    }

    /// A changed, a missing and an additional file are each named.
    @Test func theVerifierFindsWhatIsWrong() throws {
        try writeHost("bench", role: .leader, offset: 0)
        _ = try EpisodeMerger.merge(folder: folder.path, plan: plan(["bench": 0]))
        let host = "\(folder.path)/hosts/bench"
        var sound = try Files.read("\(host)/mic.wav")
        sound[500] ^= 1
        try AtomicFile.write(sound, to: "\(host)/mic.wav")
        try Files.remove("\(host)/sync_point.json")
        try AtomicFile.write("x", to: "\(host)/extra")
        try AtomicFile.write(
            try Files.read("\(host)/cam.timestamps.jsonl") + Array("{\"frame_number\":60,\"capture_ns\":9}\n".utf8),
            to: "\(folder.path)/timestamps/bench.cam.timestamps.jsonl")
        let findings = try EpisodeVerifier.verify(folder: folder.path).findings
        for part in [
            "mic.wav has another content", "sync_point.json is missing", "extra is in no manifest", "60 frames",
        ] {
            #expect(findings.contains { $0.contains(part) }, "\(findings)")
        }
    }

    @Test func clockRowsReadBack() throws {
        let path = "\(folder.path)/clock_sync.jsonl"
        let log = try ClockSyncLog(path: path)
        for second in 0..<10 {
            try log.append(
                ClockSyncRow(
                    host: "bench",
                    mapping: ClockMapping(
                        reference: Timestamp(nanoseconds: Int64(second) * 1_000_000_000),
                        offset: .seconds(-3_600) + .nanoseconds(Int64(second) * 20_000), skew: 20e-6,
                        bound: .microseconds(second == 4 ? 2 : 20), skewBound: 1e-6),
                    delay: .microseconds(40), state: "locked"))
        }
        try log.sync()
        let rows = try Files.read(path)
        #expect(rows.split(separator: 0x0A).count == 10)
        try AtomicFile.write(rows + Array("{\"host_id\":\"bench\",\"rig_ns\":1".utf8), to: path)
        let series = try #require(try ClockSyncLog.read(path)["bench"])
        // Host time of rig second 5, by the row of second 4, the best: 2 µs and a second at 1 ppm.
        let instant = Timestamp<HostTime>(nanoseconds: 5_000_000_000 - 3_600_000_000_000 + 100_000)
        let (time, bound) = try #require(series.rig(instant))
        #expect((time - Timestamp(nanoseconds: 5_000_000_000)).magnitude < .nanoseconds(10))
        #expect(bound > .microseconds(3) && bound < .microseconds(4))
    }
}
