internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct EpisodeReaderTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func read(_ files: [String: String]) throws -> EpisodeRecord {
        try Fixture.write(files, to: folder.path)
        return try EpisodeReader.read(folder.path)
    }

    private func says(_ record: EpisodeRecord, _ part: String) -> Bool {
        record.notes.contains { $0.text.contains(part) }
    }

    @Test func swiftEpisode() throws {
        let record = try read(Fixture.swift)
        #expect(record.dialect == .swift)
        #expect(record.host == "iphone")
        #expect(record.state == .finished)
        #expect(
            record.anchor == EpisodeRecord.Anchor(monotonic: 1_234_567_890_123_456_789, wall: 1_775_921_370_123_456_768)
        )
        #expect(record.streams.map(\.id) == ["cam_ego", "cam_wrist", "imu"])
        #expect(record.streams.map(\.kind) == [.video, .video, .sensor])
        let camera = record.streams[0]
        #expect(camera.media == "cam_ego.mp4")
        #expect(camera.rows?.rows == 3)
        #expect(camera.rows?.first == 1_234_567_890_200_000_001)
        #expect(camera.rows?.largestGap == 1_333_333_333)
        #expect(camera.rows?.isClean == true)
        #expect(camera.capabilities?.providesAudioTrack == true)
        let wrist = record.streams[1]
        #expect(wrist.isPending)
        #expect(wrist.acknowledgedStart?.nanoseconds == 1_234_567_890_300_000_000)
        #expect(record.streams[2].rows?.hasChannels == true)
        #expect(record.chirps.map(\.isCredible) == [true, true])
        #expect(record.chirps.map { $0.spec?.fromHz } == [17_000, 19_000])
        #expect(record.chirps.map(\.source) == [.softwareFallback, .hardware])
        #expect(says(record, "the clip is still on the camera"))
    }

    @Test func pythonEpisode() throws {
        let record = try read(Fixture.python)
        #expect(record.dialect == .python)
        #expect(record.role == "follower")
        #expect(record.session == "amber-tiger-042")
        #expect(record.leader == "desk")
        #expect(record.task == "pour")
        let streams = Dictionary(uniqueKeysWithValues: record.streams.map { ($0.id, $0) })
        // The path is absolute and of another machine.
        #expect(streams["ego_cam"]?.media == "ego_cam.mp4")
        #expect(streams["ego_cam"]?.rows?.rows == 2)
        #expect(streams["ego_cam"]?.nominalRate == 30)
        #expect(streams["ego_cam"]?.rows?.clockDomains == ["bench"])
        #expect(streams["ego_cam.left"]?.isUndeclared == true)
        #expect(streams["ego_cam.left"]?.kind == .video)
        #expect(streams["glove"]?.rows?.rows == 0)
        #expect(streams["host_audio"]?.media == nil)
        #expect(streams["session_log"] == nil)
        #expect(record.chirps.map(\.isCredible) == [false])
        #expect(says(record, "only a stop chirp"))
        #expect(says(record, "silent"))
        #expect(says(record, "no packet came"))
        #expect(says(record, "glove.jsonl has no rows"))
    }

    @Test func oldSwiftRowsAreFoundByTheirKeys() throws {
        var files = Fixture.swift
        // The version says nothing: 0.6.0 wrote 0.5.0.
        files["imu.jsonl"] = Fixture.rows(2) { #"{"channels":{"x":1},"frame":\#($0),"timestamp_ns":\#(900 + $0)}"# }
        let record = try read(files)
        #expect(record.dialect == .swiftOld)
        #expect(record.streams[2].rows?.hasOldKeys == true)
        #expect(record.streams[2].rows?.first == 900)
        #expect(says(record, "frame and timestamp_ns of SyncField Swift up to 0.4"))
    }

    @Test func firstPythonVersion() throws {
        let record = try read([
            "manifest.json": #"""
            {"sdk_version":"0.1.0","host_id":"pi","streams":{
              "cam":{"type":"video","timestamps_path":"/x/cam.timestamps.jsonl","path":"/x/take 1.mp4","frame_count":1},
              "arm":{"type":"sensor","sensor_path":"/x/arm.jsonl","frame_count":1}}}
            """#,
            "sync_point.json": #"""
            {"sdk_version":"0.1.0","monotonic_ns":1,"wall_clock_ns":2,"host_id":"pi","timestamp_ms":0,"iso_datetime":"x"}
            """#,
            "take 1.mp4": "media", "cam.timestamps.jsonl": #"{"frame_number":0,"capture_ns":5}"# + "\n",
            "arm.jsonl": #"{"capture_ns":5,"channels":{"joints":{"wrist":[1,2]}}}"# + "\n",
            "arm.timestamps.jsonl": #"{"frame_number":0,"capture_ns":5}"# + "\n",
        ])
        #expect(record.dialect == .pythonOld)
        #expect(record.streams.map(\.id) == ["arm", "cam"])
        #expect(record.streams[1].media == "take 1.mp4")
        #expect(record.streams[0].rows?.rows == 1)
    }

    @Test func kotlinIsToldByItsPendingFile() throws {
        var files = Fixture.swift
        files["cam_wrist.pending.json"] = #"{"stream_id":"cam_wrist","ble_uuid":"u","ble_ack_monotonic_ns":7}"#
        let record = try read(files)
        #expect(record.dialect == .kotlin)
        #expect(record.streams[1].acknowledgedStart?.nanoseconds == 7)
    }

    @Test func aCutClipHasItsPiecesInOrder() throws {
        var files = Fixture.swift
        files["cam_wrist.pending.json"] = nil
        for number in [1, 2, 10] { files["cam_wrist_seg\(number < 10 ? "0" : "")\(number).mp4"] = "piece" }
        let record = try read(files)
        #expect(
            record.streams.first { $0.id == "cam_wrist" }?.segments
                == ["cam_wrist_seg01.mp4", "cam_wrist_seg02.mp4", "cam_wrist_seg10.mp4"])
        #expect(record.streams.count == 3)
    }

    @Test(arguments: [
        // A follower that crashed: an anchor and a log only.
        (["sync_point.json", "session.log", "cam_ego.mp4", "cam_ego.timestamps.jsonl"], "it has no manifest", 1),
        (["imu.jsonl"], "its clock has no anchor", 1),
        ([], "its clock has no anchor", 0),
    ])
    func partsOfAnEpisode(names: [String], note: String, streams: Int) throws {
        let record = try read(Fixture.swift.filter { names.contains($0.key) })
        #expect(record.state == .crashed)
        #expect(record.dialect == .bare)
        #expect(record.streams.count == streams)
        #expect(says(record, note))
    }

    @Test(arguments: [
        // Start of the chirps, stop, the last sample of the fixture being 1234567891566666667.
        (1_234_567_890_000_000_000, Int64?.none, "an earlier take's"),
        (1_234_567_899_000_000_000, nil, "after the last sample"),
        (1_234_567_891_000_000_000, 1_234_567_890_900_000_000, "before the start chirp"),
    ])
    func chirpsThatCantBe(start: Int64, stop: Int64?, note: String) throws {
        var files = Fixture.swift
        let stopText = stop.map { ",\"chirp_stop_ns\":\($0),\"chirp_stop_source\":\"hardware\"" } ?? ""
        files["sync_point.json"] = """
            {"host_id":"iphone","monotonic_ns":1234567890123456789,"wall_clock_ns":1,"chirp_start_ns":\(start),
            "chirp_start_source":"hardware"\(stopText)}
            """
        let record = try read(files)
        #expect(record.chirps.allSatisfy { !$0.isCredible })
        #expect(says(record, note))
    }

    /// Nothing in a manifest or a sync point can stop the reading, wherever it is cut.
    @Test(arguments: ["manifest.json", "sync_point.json", "cam_wrist.pending.json"])
    func filesCutAnywhere(name: String) throws {
        let text = Array((Fixture.swift[name] ?? "").utf8)
        try Fixture.write(Fixture.swift, to: folder.path)
        for length in stride(from: 0, through: text.count, by: 7) {
            try AtomicFile.write(Array(text[..<length]), to: "\(folder.path)/\(name)")
            let record = try EpisodeReader.read(folder.path)
            #expect(record.streams.contains { $0.id == "cam_ego" })
        }
    }

    @Test(arguments: [
        "[]", "null", "{", "\"x\"", "{\"streams\":7}", "{\"streams\":[1,null,{},{\"stream_id\":3}]}",
        "{\"streams\":{\"\":{},\"a\":null,\"../../x\":{\"path\":\"../../../etc/passwd\"}}}",
        "{\"streams\":[{\"stream_id\":\"a\",\"frame_count\":1e400}],\"host_id\":5}",
        "{\"host_id\":\"x\",\"events\":[],\"status\":\"finished\",\"streams\":[{\"stream_id\":\"a\"}]}",
        String(repeating: "[", count: 100_000),
    ])
    func badManifestsBecomeNotes(text: String) throws {
        let record = try read(["manifest.json": text, "sync_point.json": text])
        #expect(!record.notes.isEmpty)
        #expect(record.streams.allSatisfy { $0.media == nil })
    }
}
