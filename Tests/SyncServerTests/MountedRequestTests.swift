internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

@testable internal import SyncServer

@Suite(.timeLimit(.minutes(1))) struct MountedRequestTests {
    private func fixture() throws -> ServerFixture {
        let fixture = try ServerFixture()
        try fixture.rows("cam.timestamps.jsonl", (0..<5).map { $0 * 100 }, in: "timestamps/take")
        try fixture.rows("imu.jsonl", (0..<50).map { $0 * 10 }, in: "timestamps/take")
        try fixture.file("cam.mp4", "video", in: "data")
        return fixture
    }

    private let streams =
        "[{\"stream_id\":\"cam\",\"path\":\"/data/cam.mp4\",\"is_primary\":true},"
        + "{\"stream_id\":\"imu\",\"stream_type\":\"sensor\"}]"

    @Test("The published body is aligned from the mounted folders")
    func published() throws {
        let fixture = try fixture()
        let answer = try fixture.post(
            json: "{\"hosts\":[{\"host_id\":\"mac\",\"streams\":\(streams)}],\"timestamps_dir\":\"/timestamps/take\"}")
        #expect(answer.status == 200, "\(answer.text)")
        let job = try fixture.ended(answer)
        #expect(job["status"]?.string == "complete")
        let map = try fixture.get("/api/v1/jobs/\(job["job_id"]?.string ?? "")/download/frame_map.jsonl")
        // Frame i is at 100 i, which is row 10 i of the IMU, exactly.
        #expect(map.text.split(separator: "\n").count == 5)
        #expect(
            map.text.contains(
                "{\"frame\":4,\"original_frame\":4,\"primary_time_sec\":0.0000004,\"streams\":{\"imu\":{\"frame\":40,\"delta_ms\":0.0}}}"
            ))
    }

    @Test("The first published body, without hosts, is taken too; its first stream leads")
    func oldest() throws {
        let fixture = try fixture()
        let answer = try fixture.post(
            json: "{\"streams\":[{\"path\":\"/data/cam.mp4\",\"stream_id\":\"cam\"},{\"stream_id\":\"imu\"}],"
                + "\"timestamps_dir\":\"/timestamps/take/\",\"alignment_mode\":\"timestamp\"}")
        #expect(try fixture.ended(answer)["status"]?.string == "complete")
    }

    @Test(
        "What doesn't fit is refused in one sentence",
        arguments: [
            ("{}", "'hosts' is missing"),
            ("{\"hosts\":[{\"streams\":[]}]}", "hosts[0] has no host_id"),
            ("{\"hosts\":[{\"host_id\":\"a\"}]}", "host 'a' has no list of streams"),
            ("{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{}]}]}", "hosts[0].streams[0] has no stream_id"),
            ("{\"hosts\":[],\"timestamps_dir\":\"/etc\"}", "'/etc' doesn't lie in /timestamps"),
            ("{\"hosts\":[],\"timestamps_dir\":\"/timestamps/../..\"}", "doesn't lie in /timestamps"),
            ("{\"hosts\":[],\"timestamps_dir\":\"/timestamps/none\"}", "isn't there"),
            ("{\"hosts\":[]}", "no stream was sent"),
            (
                "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"cam\",\"path\":\"/data/../x\"}]}]}",
                "the path of stream 'cam': '/data/../x' doesn't lie in /data"
            ),
            (
                "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"cam\",\"is_primary\":true},"
                    + "{\"stream_id\":\"imu\",\"is_primary\":true}]}],\"timestamps_dir\":\"/timestamps/take\"}",
                "2 streams are primary (cam, imu)"
            ),
            (
                "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"cam\"},{\"stream_id\":\"imu\"}]}],"
                    + "\"timestamps_dir\":\"/timestamps/take\"}", "no stream is the primary one"
            ),
            (
                "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"cam\",\"path\":\"/data/no.mp4\","
                    + "\"is_primary\":true},{\"stream_id\":\"imu\"}]}],\"timestamps_dir\":\"/timestamps/take\"}",
                "there is no file 'no.mp4'"
            ),
            (
                "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"cam\",\"is_primary\":true},"
                    + "{\"stream_id\":\"glove\"}]}],\"timestamps_dir\":\"/timestamps/take\"}",
                "neither glove.timestamps.jsonl nor glove.jsonl is in /timestamps/take"
            ),
        ])
    func refusals(_ body: String, _ says: String) throws {
        let answer = try fixture().post(json: body)
        #expect(answer.status == 422)
        #expect(answer.detail.contains(says), "\(answer.detail)")
    }

    @Test("Two hosts without a common clock are refused with the reason; with the clock series they are aligned")
    func twoHosts() throws {
        let fixture = try ServerFixture()
        // Host b's clock is 3,600 s ahead: it shows 3600.0 s when a's shows 0.
        let hour: Int64 = 3_600_000_000_000
        try fixture.rows("a.cam.timestamps.jsonl", (0..<10).map { $0 * 100_000_000 }, in: "timestamps/take")
        try fixture.rows(
            "b.cam.timestamps.jsonl", (0..<10).map { hour + 7_000_000 + $0 * 100_000_000 }, in: "timestamps/take")
        let body =
            "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"a.cam\",\"is_primary\":true}]},"
            + "{\"host_id\":\"b\",\"streams\":[{\"stream_id\":\"b.cam\"}]}],\"timestamps_dir\":\"/timestamps/take\"}"
        let refused = try fixture.ended(try fixture.post(json: body))
        #expect(refused["status"]?.string == "failed")
        #expect(refused["error"]?.string?.contains("the hosts a, b have no common clock") == true)
        #expect(refused["error"]?.string?.contains("no clock_sync.jsonl was given") == true)

        // a = rig + 1000 ns; b = rig + 1000 ns + 3600 s, known to 2 µs.
        try fixture.file(
            "clock_sync.jsonl",
            "{\"host_id\":\"a\",\"rig_ns\":0,\"offset_ns\":1000,\"skew\":0,\"skew_bound\":0,\"bound_ns\":500}\n"
                + "{\"host_id\":\"b\",\"rig_ns\":0,\"offset_ns\":\(hour + 1000),\"skew\":0,\"skew_bound\":0,\"bound_ns\":2000}\n",
            in: "timestamps/take")
        let job = try fixture.ended(try fixture.post(json: body))
        #expect(job["status"]?.string == "complete", "\(job)")
        let base = "/api/v1/jobs/\(job["job_id"]?.string ?? "")/download"
        // Frames 1 to 9 of a lie between b's first (7 ms) and a's last; b's frame i is 7 ms after a's.
        let lines = try fixture.get("\(base)/frame_map.jsonl").text.split(separator: "\n")
        #expect(lines.count == 9)
        #expect(
            lines.first.map(String.init)
                == "{\"frame\":0,\"original_frame\":1,\"primary_time_sec\":0.1,\"streams\":"
                + "{\"b.cam\":{\"frame\":1,\"delta_ms\":7.0}}}")
        let report = try fixture.get("\(base)/sync_report.json").json
        #expect(report["alignment"]?["method"]?.string == "clock_series")
        #expect(report["summary"]?["primary_host"]?.string == "a")
        // Each side's bound and the nanosecond that rounding may take: 0.5 + 2 µs.
        #expect(report["streams"]?["b.cam"]?["clock_bound_ms"]?.double == 0.002502)
        #expect(report["streams"]?["b.cam"]?["offset_ms"]?.double == 7)

        // The manifest's mapping does the same.
        try Files.remove("\(fixture.path)/timestamps/take/clock_sync.jsonl")
        try fixture.file(
            "manifest.json",
            // From host to rig: what is to be added.
            "{\"hosts\":[{\"host_id\":\"a\",\"clock\":{\"reference\":0,\"offset\":-1000,\"skew\":0,\"bound\":500,"
                + "\"skewBound\":0}},{\"host_id\":\"b\",\"clock\":{\"reference\":0,\"offset\":\(-hour - 1000),"
                + "\"skew\":0,\"bound\":2000,\"skewBound\":0}}]}",
            in: "timestamps/take")
        let mapped = try fixture.ended(try fixture.post(json: body))
        #expect(mapped["status"]?.string == "complete", "\(mapped)")
        let other = try fixture.get("/api/v1/jobs/\(mapped["job_id"]?.string ?? "")/download/sync_report.json").json
        #expect(other["alignment"]?["method"]?.string == "clock_mapping")
        #expect(other["streams"]?["b.cam"]?["clock_bound_ms"]?.double == 0.002502)
        #expect(other["streams"]?["b.cam"]?["offset_ms"]?.double == 7)

        // Rows without a bound align too, and no bound is claimed.
        try fixture.file(
            "clock_sync.jsonl",
            "{\"host_id\":\"a\",\"rig_ns\":0,\"offset_ns\":1000}\n"
                + "{\"host_id\":\"b\",\"rig_ns\":0,\"offset_ns\":\(hour + 1000)}\n", in: "timestamps/take")
        let unbound = try fixture.ended(try fixture.post(json: body))
        let open = try fixture.get("/api/v1/jobs/\(unbound["job_id"]?.string ?? "")/download/sync_report.json").json
        #expect(open["streams"]?["b.cam"]?["clock_bound_ms"] == .null)
        #expect(open["streams"]?["b.cam"]?["confidence"] == nil)
    }
}
