internal import Episode
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// The shapes of our small files, against the documented keys of SyncField.
@Suite struct ManifestTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func value(_ name: String) throws -> JSONValue {
        try JSONText.decode(JSONValue.self, from: try Files.read("\(folder.path)/\(name)"))
    }

    @Test func syncPoint() throws {
        var point = SyncPoint(
            sdkVersion: "0.1.0", host: "bench", monotonic: Timestamp(nanoseconds: 9_007_199_254_740_993),
            wall: Timestamp(nanoseconds: 1_775_921_370_123_456_789))
        point.role = .leader
        point.session = "kitchen"
        let take = UniqueID.random()
        point.note(
            ChirpReport(
                take: take, moment: .start, emitted: Timestamp(nanoseconds: 9_007_199_554_740_993), source: .hardware),
            spec: ChirpPreset.ultrasonic.startSpec)
        point.note(
            ChirpReport(take: take, moment: .stop, emitted: Timestamp(nanoseconds: 5), source: .silent), spec: nil)
        try point.write(to: "\(folder.path)/sync_point.json")
        #expect(
            String(decoding: try Files.read("\(folder.path)/sync_point.json"), as: UTF8.self) == """
                {
                  "chirp_spec" : {
                    "amplitude" : 0.8,
                    "duration_ms" : 500,
                    "envelope_ms" : 15,
                    "from_hz" : 17000,
                    "to_hz" : 19000
                  },
                  "chirp_start_ns" : 9007199554740993,
                  "chirp_start_source" : "hardware",
                  "chirp_stop_source" : "silent",
                  "host_id" : "bench",
                  "iso_datetime" : "2026-04-11T15:29:30Z",
                  "monotonic_ns" : 9007199254740993,
                  "role" : "leader",
                  "sdk_version" : "0.1.0",
                  "session_id" : "kitchen",
                  "timestamp_ms" : 1775921370123,
                  "wall_clock_ns" : 1775921370123456789
                }

                """)
    }

    @Test func theClocksAreReadTogether() throws {
        let before = HostClock.now
        let point = SyncPoint.now(host: HostID(unchecked: "bench"))
        #expect(point.monotonic >= before && point.monotonic <= HostClock.now)
        #expect(try #require(point.clockReading) >= .zero)
        // A machine's boot time runs from the same origin and never behind.
        #expect(try #require(point.boottimeNanoseconds) >= before.nanoseconds)
    }

    /// Every documented key of the Swift dialect is there, with its type; `streams` is an array.
    @Test func hostManifest() throws {
        let description = StreamDescription(
            id: StreamID(unchecked: "cam"), kind: .video, deviceKind: "v4l2", deviceIdentity: "usb-1", label: "left",
            nominalRate: 30, video: VideoFormat(encoding: .mjpeg, width: 640, height: 480),
            capabilities: StreamCapabilities(producesFile: true), timestampSource: "driver")
        var stream = ManifestStream(description)
        stream.frameCount = 300
        stream.status = .truncated
        stream.truncatedAt = Timestamp(nanoseconds: 9_007_199_254_740_993)
        for number in 0..<(ManifestStream.gapLimit + 5) {
            let start = Timestamp<HostTime>(nanoseconds: Int64(number) * 10)
            stream.add(.init(from: start, to: start + .nanoseconds(3), cause: "overrun"))
        }
        var manifest = HostManifest(
            host: HostID(unchecked: "bench"), role: .follower, streams: [stream], status: .finished)
        manifest.leader = HostID(unchecked: "desk")
        try manifest.write(to: "\(folder.path)/manifest.json")
        let text = try value("manifest.json")
        #expect(text["host_id"] == .string("bench"))
        #expect(text["role"] == .string("follower"))
        #expect(text["sdk_version"]?.string != nil)
        #expect(text["leader_host_id"] == .string("desk"))
        let entry = try #require(text["streams"]?.array?.first)
        #expect(entry["stream_id"] == .string("cam"))
        #expect(entry["kind"] == .string("video"))
        #expect(entry["file_path"] == .string("cam.mp4"))
        #expect(entry["frame_count"] == .integer(300))
        #expect(entry["status"] == .string("truncated"))
        #expect(entry["truncated_at_ns"] == .integer(9_007_199_254_740_993))
        #expect(
            entry["capabilities"]
                == .object([
                    "produces_file": .bool(true), "provides_audio_track": .bool(false), "requires_ingest": .bool(false),
                    "supports_precise_timestamps": .bool(true),
                ]))
        #expect(entry["gaps"]?.array?.count == ManifestStream.gapLimit)
        #expect(entry["gap_count"] == .integer(1_005))
        #expect(entry["gap_length_ns"] == .integer(3_015))
        #expect(try HostManifest.read("\(folder.path)/manifest.json") == manifest)
    }
}
