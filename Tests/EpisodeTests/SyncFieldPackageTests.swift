internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// SyncField's own readers take our files: its Python package in an environment of its own, made once.
@Suite(.serialized) struct SyncFieldPackageTests {
    @Test(.timeLimit(.minutes(3)))
    func itsTypesParseEveryRow() throws {
        guard let python = try Self.python() else { return }
        let folder = try TemporaryFolder()
        try Self.writeEpisode(in: folder.path)
        let result = try MediaTools.run(python, ["-c", Self.script, folder.path])
        #expect(result.status == 0, "\(result.errors)")
        #expect(
            result.output == """
                cam ü.timestamps.jsonl 300
                imu.jsonl 500
                mic.timestamps.jsonl 20
                sync_point.json 9007199254740993

                """)
    }

    private static let script = #"""
        # Parses our files with the types of the Python package syncfield; prints how many rows each has.

        import json
        import sys
        from pathlib import Path

        from syncfield.types import FrameTimestamp, SensorSample, SyncPoint

        folder = Path(sys.argv[1])
        for path in sorted(folder.rglob("*.jsonl")):
            kind = FrameTimestamp if path.name.endswith(".timestamps.jsonl") else SensorSample
            rows = 0
            for line in path.read_text(encoding="utf-8").splitlines():
                data = json.loads(line, parse_constant=lambda word: sys.exit(f"{path}: {word} is no JSON"))
                row = kind.from_dict(data)
                assert type(row.frame_number) is int and type(row.capture_ns) is int, (path, line)
                assert type(row.uncertainty_ns) is int and row.clock_source == "host_monotonic", (path, line)
                again = row.to_dict()
                # What the type gives back is what we wrote, key for key and in the same order.
                assert list(again) == list(data) and again == data, (path, line, again)
                rows += 1
            print(path.name, rows)
        for path in sorted(folder.rglob("*sync_point.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            names = ["monotonic_ns", "wall_clock_ns", "host_id", "timestamp_ms", "iso_datetime"]
            point = SyncPoint(**{name: data[name] for name in names})
            assert type(point.monotonic_ns) is int and point.to_dict() == {name: data[name] for name in names}
            print(path.name, point.monotonic_ns)
        """#

    private static func writeEpisode(in folder: String) throws {
        let domain = "capture \"north\" é"
        let camera = try TimestampLog(path: "\(folder)/cam ü.timestamps.jsonl", clockDomain: domain)
        for number in 0..<300 {
            let capture = Timestamp<HostTime>(nanoseconds: 9_007_199_254_740_993 + Int64(number) * 33_333_333)
            try camera.append(frame: Int64(number), capture: capture, uncertainty: .milliseconds(1), device: nil)
        }
        try camera.finish()
        let sound = try TimestampLog(path: "\(folder)/mic.timestamps.jsonl", clockDomain: domain)
        for number in 0..<20 {
            try sound.append(
                frame: Int64(number) * 4_800, capture: Timestamp(nanoseconds: Int64(number) * 100_000_000),
                uncertainty: .microseconds(200), device: Timestamp(nanoseconds: Int64(number)),
                extra: [("rms", .number(0.125)), ("peak", .number(0.5))])
        }
        try sound.finish()
        var random = SeededGenerator(seed: 5)
        let sensor = try SensorLog(path: "\(folder)/imu.jsonl", clockDomain: domain, channels: ["ax", "gyro.z", "n"])
        for number in 0..<500 {
            let values = [Double.random(in: -20...20, using: &random), Double(bitPattern: 1), Double(number)]
            try sensor.append(
                frame: Int64(number), capture: Timestamp(nanoseconds: Int64(number) * 2_000_000),
                uncertainty: .milliseconds(5), values: values,
                device: number % 2 == 0 ? Timestamp(nanoseconds: 4_294_967_295_000) : nil)
        }
        try sensor.finish()
        var point = SyncPoint(
            host: domain, monotonic: Timestamp(nanoseconds: 9_007_199_254_740_993),
            wall: Timestamp(nanoseconds: 1_775_921_370_123_456_789))
        point.role = .leader
        point.session = "s"
        point.chirpStart = Timestamp(nanoseconds: 9_007_199_754_740_993)
        point.chirpStartSource = .hardware
        point.chirpSpec = ChirpPreset.ultrasonic.startSpec
        try point.write(to: "\(folder)/sync_point.json")
    }

    /// The interpreter of the environment; nil, with a line that says why, when the package can't be had.
    private static func python() throws -> String? {
        let environment = ProcessInfo.processInfo.environment
        let cache =
            environment["XDG_CACHE_HOME"].map { "\($0)/downbeat" }
            ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.cache/downbeat"
        let folder = "\(cache)/python-syncfield-0.6.0"
        let python = "\(folder)/bin/python"
        if try MediaTools.run(python, ["-c", "import syncfield.types"]).status == 0 { return python }
        try Files.makeFolder(cache)
        try Files.removeTree(folder)
        let made = try MediaTools.run("python3", ["-m", "venv", folder])
        try #require(made.status == 0, "python3 -m venv failed: \(made.output)\(made.errors)")
        let installed = try MediaTools.run(
            python, ["-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "syncfield==0.6.0"])
        if installed.status == 0 { return python }
        // Only an index that can't be reached is no failure of ours.
        let complaint = installed.errors
        let isOffline = ["Connection", "connection", "Name or service", "resolution", "timed out", "Network"]
            .contains { complaint.contains($0) }
        try #require(isOffline, "pip failed: \(complaint)")
        print("skipped: the Python package syncfield 0.6.0 can't be fetched: \(complaint)")
        return nil
    }
}
