internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

/// Episodes as the other programs write them, by hand from their documented shapes.
enum Fixture {
    static func write(_ files: [String: String], to folder: String) throws {
        try Files.makeFolder(folder)
        for (name, text) in files { try AtomicFile.write(text, to: "\(folder)/\(name)") }
    }

    static func rows(_ count: Int, _ row: (Int) -> String) -> String {
        (0..<count).map { row($0) + "\n" }.joined()
    }

    /// SyncField Swift from 0.5 on: an array of streams, sorted keys, escaped slashes, no clock keys in rows.
    static let swift: [String: String] = [
        "manifest.json": #"""
        {
          "host_id" : "iphone",
          "role" : "single",
          "sdk_version" : "0.11.1",
          "streams" : [
            {
              "capabilities" : { "produces_file" : true, "provides_audio_track" : true, "requires_ingest" : false,
                "supports_precise_timestamps" : true },
              "file_path" : "cam_ego.mp4", "frame_count" : 3, "kind" : "video", "stream_id" : "cam_ego"
            },
            {
              "capabilities" : { "produces_file" : true, "provides_audio_track" : false, "requires_ingest" : true,
                "supports_precise_timestamps" : false },
              "file_path" : "clips\/cam_wrist.mp4", "frame_count" : 0, "kind" : "video", "stream_id" : "cam_wrist"
            },
            {
              "capabilities" : { "produces_file" : false, "provides_audio_track" : false, "requires_ingest" : false,
                "supports_precise_timestamps" : true },
              "file_path" : "imu.jsonl", "frame_count" : 2, "kind" : "sensor", "stream_id" : "imu"
            }
          ]
        }
        """#,
        "sync_point.json": #"""
        {
          "chirp_spec" : { "amplitude" : 0.8, "duration_ms" : 500, "envelope_ms" : 15, "from_hz" : 17000, "to_hz" : 19000 },
          "chirp_start_ns" : 1234567891323456789,
          "chirp_start_source" : "software_fallback",
          "chirp_stop_ns" : 1234567891423456789,
          "chirp_stop_source" : "hardware",
          "host_id" : "iphone",
          "iso_datetime" : "2026-04-11T15:29:30Z",
          "monotonic_ns" : 1234567890123456789,
          "sdk_version" : "0.11.1",
          "wall_clock_ns" : 1775921370123456768
        }
        """#,
        "session.log": #"""
        {"detail":"connected->recording","kind":"state","ts":"2026-04-11T15:29:30.000Z"}
        {"detail":"recording->stopping","kind":"state","ts":"2026-04-11T15:29:40.000Z"}

        """#,
        "cam_ego.mp4": "media",
        "cam_ego.timestamps.jsonl": """
        {"capture_ns":1234567890200000001,"frame_number":0,"uncertainty_ns":1000000}
        {"capture_ns":1234567891533333334,"frame_number":1,"uncertainty_ns":1000000}
        {"capture_ns":1234567891566666667,"frame_number":2,"uncertainty_ns":1000000}

        """,
        "imu.jsonl": """
        {"capture_ns":1234567890200000001,"channels":{"accel_x":-0.5,"nested":{"a":[1,"}"]}},"frame_number":0}
        {"capture_ns":1234567890210000001,"channels":{"accel_x":1e-3},"device_timestamp_ns":4294967295000,"frame_number":1}

        """,
        "cam_wrist.pending.json": """
        {"streamId":"cam_wrist","cameraFileURI":"unresolved://latest-video","bleUuid":"u","bleName":"GO 3S",
         "role":"right","bleAckMonotonicNs":1234567890300000000,"savedAt":"2026-04-11T15:29:41Z"}
        """,
        "events.jsonl": #"{"kind":"hand_near_edge","payload":{},"start_monotonic_ns":1,"end_monotonic_ns":2}"# + "\n",
    ]

    /// SyncField Python: an object of streams, absolute paths, an alias as key, and a side stream without an entry.
    static let python: [String: String] = [
        "manifest.json": #"""
        {
          "sdk_version": "0.8.14", "host_id": "bench", "session_id": "amber-tiger-042", "role": "follower",
          "leader_host_id": "desk", "task": "pour",
          "streams": {
            "ego_cam": {"kind": "video", "capabilities": {"provides_audio_track": false,
              "supports_precise_timestamps": true, "is_removable": false, "produces_file": true, "target_hz": 30.0,
              "live_preview": true, "supports_recording_reconnect": false}, "status": "completed", "frame_count": 2,
              "path": "/home/other/data/amber-tiger-042/bench/ep_20260411_172930_a1b2c3/ego_cam.mp4",
              "recording_anchor": null},
            "host_audio": {"kind": "audio", "capabilities": {"target_hz": null}, "status": "completed",
              "frame_count": 8820, "path": "C:\\data\\host_audio.wav", "recording_anchor": null},
            "glove": {"kind": "sensor", "capabilities": {"target_hz": 100}, "status": "failed", "frame_count": 0,
              "path": null, "error": "no packet came", "recording_anchor": null}
          },
          "session_config": null
        }
        """#,
        "sync_point.json": #"""
        {
          "sdk_version": "0.8.14", "monotonic_ns": 5000000000, "wall_clock_ns": 1775921370123456789,
          "host_id": "bench", "timestamp_ms": 1775921370123, "iso_datetime": "2026-04-11T17:29:30.123456",
          "session_id": "amber-tiger-042", "role": "follower",
          "chirp_stop_ns": 5050000000, "chirp_stop_source": "silent"
        }
        """#,
        "session_log.jsonl": #"{"kind":"state_transition","from":"connected","to":"preparing","at_ns":1}"# + "\n",
        "ego_cam.mp4": "media",
        "ego_cam.timestamps.jsonl": """
        {"frame_number":0,"capture_ns":5000100000,"clock_source":"host_monotonic","clock_domain":"bench","uncertainty_ns":5000000}
        {"frame_number":1,"capture_ns":5033433333,"clock_source":"host_monotonic","clock_domain":"bench","uncertainty_ns":5000000,"quest_native_ns":77}

        """,
        "ego_cam.left.timestamps.jsonl":
            "{\"frame_number\":0,\"capture_ns\":5000100000,\"clock_source\":\"host_monotonic\"}\n",
        "ego_cam.left.mp4": "media",
        "glove.jsonl": "",
    ]
}
