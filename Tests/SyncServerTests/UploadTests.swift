internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

@testable internal import SyncServer

/// 2^53 + 1: the first whole number that a Double can't hold.
let beyondDouble: Int64 = 9_007_199_254_740_993

@Suite(.timeLimit(.minutes(1))) struct UploadTests {
    /// A camera at 30/s, a wrist camera at 25/s that begins 5 ms later, an IMU at 100/s that begins 1 ms later.
    private func take(_ fixture: ServerFixture) throws {
        try fixture.rows("cam_ego.timestamps.jsonl", (0..<10).map { beyondDouble + $0 * 33_333_333 })
        try fixture.rows("cam_wrist.timestamps.jsonl", (0..<8).map { beyondDouble + 5_000_000 + $0 * 40_000_000 })
        try fixture.rows("imu.jsonl", (0..<30).map { beyondDouble + 1_000_000 + $0 * 10_000_000 })
        try fixture.file("cam_ego.mp4", "ego")
        try fixture.file("cam_wrist.mp4", "wrist")
    }

    private func check(_ fixture: ServerFixture, _ job: JSONValue) throws {
        #expect(job["status"]?.string == "complete", "\(job)")
        #expect(job["result"]?["sync_report"]?.string == "sync_report.json")
        let id = job["job_id"]?.string ?? ""
        #expect(id.utf8.count == 8)
        // All streams cover 5 ms (wrist's first) to 285 ms (wrist's last): frames 1 to 8 of the camera, at i × 33.333333.
        let map = try fixture.get("/api/v1/jobs/\(id)/download/frame_map.jsonl")
        let lines = map.text.split(separator: "\n")
        #expect(lines.count == 8)
        // Frame 1 is at 33.333333: IMU row 3 is at 31, −2.333333 from it; wrist frame 1 is at 45, 11.666667 from it.
        #expect(
            lines.first.map(String.init)
                == "{\"frame\":0,\"original_frame\":1,\"primary_time_sec\":0.033333333,\"streams\":"
                + "{\"cam_wrist\":{\"frame\":1,\"delta_ms\":11.666667},\"imu\":{\"frame\":3,\"delta_ms\":-2.333333}}}")
        // Frame 8 is at 266.666664: IMU row 27 at 271 is 4.333336 from it, row 26 at 261 is 5.67; wrist frame 7 at 285 is
        // 18.333336 from it, frame 6 at 245 is 21.7.
        #expect(
            lines.last.map(String.init)
                == "{\"frame\":7,\"original_frame\":8,\"primary_time_sec\":0.266666664,\"streams\":"
                + "{\"cam_wrist\":{\"frame\":7,\"delta_ms\":18.333336},\"imu\":{\"frame\":27,\"delta_ms\":4.333336}}}")
        let report = try fixture.get("/api/v1/jobs/\(id)/download/sync_report.json").json
        let summary = try #require(report["summary"])
        #expect(summary["status"]?.string == "success")
        #expect(summary["total_synced_frames"]?.integer == 8)
        #expect(summary["primary_stream"]?.string == "cam_ego")
        // 7 × 33.333333 ms
        #expect(summary["synced_duration_sec"]?.double == 0.233333331)
        #expect(report["streams"]?["cam_ego"]?["role"]?.string == "primary")
        #expect(report["streams"]?["imu"]?["role"]?.string == "sensor")
        #expect(report["streams"]?["imu"]?["fps"]?.double == 100)
        #expect(report["streams"]?["cam_wrist"]?["original_frame_count"]?.integer == 8)
        #expect(report["streams"]?["cam_wrist"]?["offset_ms"]?.double == 5)
    }

    @Test("The README's form is aligned to the nanosecond, beyond 2^53 too")
    func readme() throws {
        let fixture = try ServerFixture()
        try take(fixture)
        let place = "\(fixture.path)/in"
        let answer = try fixture.upload([
            "files=@\(place)/cam_ego.mp4", "files=@\(place)/cam_wrist.mp4",
            "timestamp_files=@\(place)/cam_ego.timestamps.jsonl",
            "timestamp_files=@\(place)/cam_wrist.timestamps.jsonl",
            "timestamp_files=@\(place)/imu.jsonl", "stream_ids=cam_ego,cam_wrist,imu", "host_ids=mac,mac,mac",
            "primary_id=cam_ego",
        ])
        #expect(answer.status == 200)
        let job = try fixture.ended(answer)
        try check(fixture, job)
        #expect(job["hashes_verified"]?.bool == false)
    }

    @Test("The viewer's form, with the sensor's rows among the files and no hosts")
    func viewer() throws {
        let fixture = try ServerFixture()
        try take(fixture)
        let place = "\(fixture.path)/in"
        let answer = try fixture.upload([
            "stream_ids=cam_ego,cam_wrist,imu", "primary_id=cam_ego", "confidence_threshold=0.4", "reencode=true",
            "aggregation=nearest", "files=@\(place)/cam_ego.mp4", "files=@\(place)/cam_wrist.mp4",
            "files=@\(place)/imu.jsonl", "timestamp_files=@\(place)/cam_ego.timestamps.jsonl",
            "timestamp_files=@\(place)/cam_wrist.timestamps.jsonl",
        ])
        let job = try fixture.ended(answer)
        try check(fixture, job)
    }

    @Test("Announced hashes are verified and reported; the bytes on the disk are what was sent")
    func hashes() throws {
        let fixture = try ServerFixture()
        try take(fixture)
        let place = "\(fixture.path)/in"
        let files = ["cam_ego.mp4", "cam_ego.timestamps.jsonl", "imu.jsonl"]
        // By the system's own tool, not by ours.
        let hashes = try files.map { "\"\($0)\":\"\(try sha256sum("\(place)/\($0)"))\"" }.joined(separator: ",")
        let answer = try fixture.upload(
            files.map { "files=@\(place)/\($0)" }
                + ["stream_ids=cam_ego,imu", "primary_id=cam_ego", "sha256={\(hashes)};type=application/json"])
        let job = try fixture.ended(answer)
        #expect(job["status"]?.string == "complete")
        #expect(job["hashes_verified"]?.bool == true)
        #expect(job["files"]?.array?.count == 3)
        let id = job["job_id"]?.string ?? ""
        #expect(try Files.read("\(fixture.store)/jobs/\(id)/input/data/cam_ego.mp4") == Array("ego".utf8))
    }

    @Test("A wrong hash, or a file that was announced and didn't arrive, refuses the upload and leaves nothing")
    func wrongHashes() throws {
        let fixture = try ServerFixture()
        try take(fixture)
        let place = "\(fixture.path)/in"
        let base = [
            "files=@\(place)/cam_ego.timestamps.jsonl", "files=@\(place)/imu.jsonl", "stream_ids=cam_ego,imu",
            "primary_id=cam_ego",
        ]
        let wrong = try fixture.upload(base + ["sha256={\"imu.jsonl\":\"\(String(repeating: "0", count: 64))\"}"])
        #expect(wrong.status == 422)
        #expect(wrong.detail.contains("'imu.jsonl' arrived with sha256 \(try sha256sum("\(place)/imu.jsonl"))"))
        let missing = try fixture.upload(base + ["sha256={\"cam.mp4\":\"00\"}"])
        #expect(missing.status == 422)
        #expect(missing.detail.contains("'cam.mp4' was announced in sha256 and didn't arrive"))
        #expect(try Files.list("\(fixture.store)/jobs") == [])
        #expect(try Files.list("\(fixture.store)/incoming") == [])
    }

    struct Refused: Sendable {
        let forms: [String]
        let status: Int
        let says: String
    }

    /// `@` stands for the folder of the files.
    static let refused: [Refused] = [
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu", "primary_id=imu"], status: 422, says: "at least 2"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,cam_ego", "host_ids=a", "primary_id=imu"], status: 422,
            says: "stream_ids has 2 entries and host_ids 1"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,cam_ego", "primary_id=top"], status: 422,
            says: "primary_id 'top' isn't one of stream_ids"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,cam_ego"], status: 422, says: "primary_id is missing"),
        Refused(forms: ["files=@@/imu.jsonl"], status: 422, says: "stream_ids is missing"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,cam_ego", "primary_id=imu"], status: 422,
            says: "stream 'cam_ego' of host 'local_host' has no time stamps"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,imu", "primary_id=imu"], status: 422,
            says: "stream id 'imu' is there twice"),
        Refused(
            forms: [
                "files=@@/imu.jsonl", "timestamp_files=@@/old.jsonl", "stream_ids=imu,old", "primary_id=imu",
            ], status: 422, says: "load failed for old: 'capture_ns' is missing in line 1 of old.jsonl"),
        Refused(
            forms: [
                "files=@@/imu.jsonl", "files=@@/empty.jsonl", "stream_ids=imu,empty", "primary_id=imu",
            ], status: 422, says: "empty.jsonl has no row"),
        Refused(
            forms: ["files=@@/imu.jsonl", "files=@@/imu.jsonl", "stream_ids=imu,cam_ego", "primary_id=imu"],
            status: 422,
            says: "'imu.jsonl' was sent twice"),
        Refused(
            forms: ["files=@@/imu.jsonl;filename=../../evil.jsonl", "stream_ids=imu,b", "primary_id=imu"], status: 422,
            says: "file name '../../evil.jsonl' isn't legal"),
        Refused(
            forms: ["files=@@/imu.jsonl;filename=/etc/evil", "stream_ids=imu,b", "primary_id=imu"], status: 422,
            says: "isn't legal"),
        Refused(
            forms: ["files=@@/imu.jsonl;filename=..", "stream_ids=imu,b", "primary_id=imu"], status: 422,
            says: "isn't legal"),
        Refused(forms: ["files=text", "stream_ids=imu,b", "primary_id=imu"], status: 422, says: "has no file name"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=../imu,b", "primary_id=b"], status: 422,
            says: "can't be a file name"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,b", "primary_id=b", "aggregation=median"], status: 422,
            says: "aggregation 'median'"),
        Refused(
            forms: ["files=@@/imu.jsonl", "stream_ids=imu,b", "primary_id=b", "confidence_threshold=7"], status: 422,
            says: "confidence_threshold '7'"),
        Refused(forms: ["sync_request={", "files=@@/imu.jsonl"], status: 400, says: "sync_request isn't JSON"),
    ]

    @Test("What can't be worked with is refused in one sentence with what, where and the cure", arguments: refused)
    func refusals(_ row: Refused) throws {
        let fixture = try ServerFixture()
        try take(fixture)
        try fixture.file("old.jsonl", "{\"frame\":0,\"timestamp_ns\":5}\n")
        try fixture.file("empty.jsonl", "")
        let answer = try fixture.upload(row.forms.map { $0.replacing("@@", with: "@\(fixture.path)/in") })
        #expect(answer.status == row.status)
        #expect(answer.detail.contains(row.says), "\(answer.detail)")
        #expect(try Files.list("\(fixture.store)/jobs") == [])
        #expect(try Files.list("\(fixture.store)/incoming") == [])
        #expect(!Files.exists("\(fixture.path)/evil.jsonl"))
    }

    @Test("Names in other scripts, with dots, spaces, quotes and commas are legal and stay in their folder")
    func names() throws {
        let fixture = try ServerFixture()
        let ids = ["main lab.cam v1.2", "手首,imu \"x\""]
        for id in ids { try fixture.rows("\(id).jsonl", [0, 10, 20]) }
        let request = JSONValue.object([
            "hosts": .array([
                .object([
                    "host_id": .string("main lab"),
                    "streams": .array(
                        ids.enumerated().map { place, id in
                            .object(["stream_id": .string(id), "is_primary": .bool(place == 0)])
                        }),
                ])
            ])
        ])
        let text = String(decoding: try JSONText.encode(request), as: UTF8.self)
        try fixture.file("request.json", text)
        let answer = try fixture.curl(
            ["--form", "sync_request=<\(fixture.path)/in/request.json"]
                + ids.flatMap { id in
                    let name = id.replacing("\"", with: "\\\"")
                    return ["--form", "files=@\"\(fixture.path)/in/\(name).jsonl\""]
                }, "/api/v1/sync/upload")
        let job = try fixture.ended(answer)
        #expect(job["status"]?.string == "complete", "\(job)")
    }
}

/// The system's own tool, as a source that isn't ours.
func sha256sum(_ path: String) throws -> String {
    try run("/usr/bin/sha256sum", [path]).split(separator: " ").first.map(String.init) ?? ""
}
