#!/usr/bin/env python3
"""Writes messages.txt, the golden bytes of the wire, from the description of the format alone.

Header: 'D' 'B', version 1, zero, 16 bytes of command id, the kind in ASCII. Body: JSON, sorted keys, no spaces,
slashes as they are; keys without a value are left out. One line per frame: NAME header|body|binary HEX.
"""
import json
import pathlib

ID = bytes(range(16))
TAKE = "0123456789abcdef0123456789abcdef"
COORDINATOR = "f" * 32
STREAM = {
    "id": "cam ego", "kind": "video", "device_kind": "v4l2", "device_identity": "usb-ACME_CAM-A",
    "label": "ACME Cam", "nominal_rate": 29.97,
    "video": {"encoding": "yuyv", "width": 640, "height": 480, "bytes_per_line": 1280},
    "capabilities": {"produces_file": True, "provides_audio_track": False, "requires_ingest": False,
                     "supports_precise_timestamps": True},
    "timestamp_source": "driver, CLOCK_MONOTONIC, end of frame",
}
STATUS_OF_STREAM = {"id": "imu", "kind": "sensor", "state": "streaming", "samples": 1000, "rate": 99.5,
                    "nominal_rate": 100, "dropped": 2, "bytes": 123456, "first_ns": 9007199254740993,
                    "last_ns": 9007199264740993}
STATUS = {"state": "recording", "take": TAKE, "episode": "ep_20260411_152930_a1b2c3", "streams": [STATUS_OF_STREAM],
          "free_bytes": 1 << 40, "now_ns": 9223372036854775807}
PLAN = {"take": TAKE, "session": "Küche 7", "episode": "ep_20260411_152930_a1b2c3", "task": "pick / place",
        "participant": "p01", "role": "follower", "leader": "left-pc", "chirp": "ultrasonic", "plays_turn": True, "policy": "strict",
        "reserve_bytes": 2147483648, "start_timeout_ns": 45000000000, "arm_timeout_ns": 30000000000}
COMMIT = {"take": TAKE, "start_ns": 3600000000001, "bound_ns": 12345, "limit_ns": 7200000000000}
CHIRPED = {"take": TAKE, "moment": "start", "emitted_ns": 3601000000000, "source": "software_fallback"}
STOP = {"take": TAKE, "episode": "ep_20260411_152930_a1b2c3", "streams": [STATUS_OF_STREAM], "reason": "duration",
        "errors": ["cam ego: gone"]}
OUTCOME = {"stream": STREAM, "error": "busy"}

MESSAGES = [
    ("hello", {"coordinator": COORDINATOR, "name": "desk", "version": "0.1.0"}),
    ("lease", {"coordinator": COORDINATOR, "name": "desk", "length_ns": 10000000000}),
    ("heartbeat", {}),
    ("snapshot_request", {}),
    ("devices", {}),
    ("arm", PLAN),
    ("commit", COMMIT),
    ("abort", {"take": TAKE, "reason": "host right-pc is silent"}),
    ("chirp", {"take": TAKE, "moment": "stop", "at_ns": 3700000000000}),
    ("stop", {"take": TAKE, "stop_ns": 3800000000000, "reason": "operator"}),
    ("sound_check", {"take": TAKE, "plays": True, "probes": [
        {"preset": "custom", "at_ns": 3550000000000, "spec": {"from_hz": 16000, "to_hz": 20000.5, "duration_ms": 250,
                                                             "amplitude": 0.125, "envelope_ms": 10}}]}),
    ("ingest", {"episode": "ep_20260411_152930_a1b2c3"}),
    ("ingested", {"episode": "ep_20260411_152930_a1b2c3"}),
    ("chunk", {"episode": "ep_20260411_152930_a1b2c3", "path": "a b/é.mp4", "offset": 1048576, "length": 65536}),
    ("welcome", {"host_uuid": TAKE, "host": "left-pc", "version": "0.1.0", "clock_port": 7880, "bulk_port": 7879,
                 "clock_key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}),
    ("leased", {"coordinator": COORDINATOR, "until_ns": 3600000000000}),
    ("status", STATUS),
    ("snapshot", {"status": STATUS, "plan": PLAN, "commit": COMMIT, "chirps": [CHIRPED], "episodes": [
        {"episode": "ep_20260411_152930_a1b2c3", "session": "Küche 7", "take": TAKE, "progress": "finished",
         "bytes": 99}]}),
    ("device_list", {"attached": [{"kind": "v4l2", "identity": "usb-ACME_CAM-A", "label": "ACME Cam",
                                   "abilities": ["YUYV 640x480 at 30/s"]}], "streams": [OUTCOME]}),
    ("armed", {"take": TAKE, "streams": [OUTCOME], "free_bytes": 5, "bytes_per_second": 600000,
               "can_play_chirps": True}),
    ("committed", {"take": TAKE, "reason": ""}),
    ("aborted", {"take": TAKE, "reason": ""}),
    ("chirped", CHIRPED),
    ("sound_checked", {"take": TAKE, "source": "hardware", "hearings": [
        {"stream": "host_audio", "preset": "audible", "heard": True, "snr_db": 21.5, "noise_db": -61.25}]}),
    ("stopping", {"take": TAKE, "reason": ""}),
    ("file_list", {"episode": "ep_20260411_152930_a1b2c3", "files": [
        {"path": "cam ego.mp4", "size": 4294967296, "sha256": "00" * 32, "mtime_ns": 1775921370000000001}]}),
    ("acknowledged", {}),
    ("chunk_data", {"path": "cam ego.mp4", "offset": 0}),
    ("refused", {"code": "too_late", "message": "T0 is past"}),
    ("event", {"kind": "take_finished", "at_ns": 3900000000000, "take": TAKE, "message": "", "stop": STOP}),
]

lines = []
for kind, body in MESSAGES:
    header = b"DB\x01\x00" + ID + kind.encode()
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    lines += [f"{kind} header {header.hex()}", f"{kind} body {text.hex()}"]
    if kind == "chunk_data":
        lines.append(f"{kind} binary {bytes([0, 255, 10, 13]).hex()}")
pathlib.Path(__file__).with_name("messages.txt").write_text("\n".join(lines) + "\n")
