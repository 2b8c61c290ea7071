internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct RowTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The keys and their order are those of SyncField's Python dialect; our further keys come before the device's.
    @Test func aTimestampRow() throws {
        let path = "\(folder.path)/cam.timestamps.jsonl"
        let log = try TimestampLog(path: path, clockDomain: "lab-\"1\"\n")
        try log.append(
            frame: 0, capture: Timestamp(nanoseconds: 9_223_372_036_854_775_807), uncertainty: .microseconds(1000),
            device: nil)
        try log.append(
            frame: 1, capture: Timestamp(nanoseconds: -5), uncertainty: .zero,
            device: Timestamp(nanoseconds: 9_007_199_254_740_993),
            extra: [("rms", .number(0.25)), ("flags", .integer(3)), ("note", .string("é\t"))])
        try log.finish()
        let text = String(decoding: try Files.read(path), as: UTF8.self)
        let clock = #""clock_source":"host_monotonic","clock_domain":"lab-\"1\"\n""#
        #expect(
            text == #"{"frame_number":0,"capture_ns":9223372036854775807,\#(clock),"uncertainty_ns":1000000}"# + "\n"
                + #"{"frame_number":1,"capture_ns":-5,\#(clock),"uncertainty_ns":0,"rms":0.25,"flags":3,"#
                + #""note":"é\t","device_timestamp_ns":9007199254740993}"# + "\n")
        #expect(log.rows == 2)
        #expect(log.bytesWritten == Int64(text.utf8.count))
    }

    @Test func aSensorRow() throws {
        let path = "\(folder.path)/imu.jsonl"
        let log = try SensorLog(path: path, clockDomain: "h", channels: ["ax", "grip\"per", "n"])
        try log.append(
            frame: 7, capture: Timestamp(nanoseconds: 1_700_000_000_000_000_001), uncertainty: .milliseconds(5),
            values: [0.1, -9.80665, 550], device: Timestamp(nanoseconds: 4_294_967_295_000))
        try log.append(
            frame: 8, capture: Timestamp(nanoseconds: 2), uncertainty: .zero, values: [.nan, -.infinity, -0.0],
            device: nil)
        try log.finish()
        let clock = #""clock_source":"host_monotonic","clock_domain":"h","uncertainty_ns":"#
        #expect(
            String(decoding: try Files.read(path), as: UTF8.self)
                == #"{"frame_number":7,"capture_ns":1700000000000000001,\#(clock)5000000,"channels":"#
                + #"{"ax":0.1,"grip\"per":-9.80665,"n":550},"device_timestamp_ns":4294967295000}"# + "\n"
                + #"{"frame_number":8,"capture_ns":2,\#(clock)0,"channels":"#
                + #"{"ax":null,"grip\"per":null,"n":-0.0}}"# + "\n")
        #expect(log.nonNumbers == 2)
    }

    @Test func aRowWithAnotherNumberOfValuesIsRefused() throws {
        let log = try SensorLog(path: "\(folder.path)/x.jsonl", clockDomain: "h", channels: ["a", "b"])
        #expect(throws: EpisodeError.self) {
            try log.append(
                frame: 0, capture: Timestamp(nanoseconds: 0), uncertainty: .zero, values: [1], device: nil)
        }
        #expect(log.rows == 0)
        #expect(throws: EpisodeError.self) {
            try SensorLog(path: "\(folder.path)/y.jsonl", clockDomain: "h", channels: ["a", "a"])
        }
    }

    /// Any finite number reads back as the same bits.
    @Test func numbersReadBackTheSame() throws {
        var random = SeededGenerator(seed: 11)
        var values: [Double] = [
            .leastNonzeroMagnitude, .greatestFiniteMagnitude, .pi, 1e16, 1e15, 9_007_199_254_740_992, 1e-7, 100,
        ]
        for _ in 0..<20_000 {
            let value = Double(bitPattern: random.next())
            if value.isFinite { values.append(value) }
        }
        for value in values {
            var bytes: [UInt8] = []
            bytes.appendJSON(value)
            let back = try JSONText.decode([Double].self, from: [0x5B] + bytes + [0x5D])
            #expect(back == [value])
        }
    }

    @Test func integersAreExact() {
        for value: Int64 in [0, 7, 10, -1, -10, 9_007_199_254_740_993, .max, .min] {
            var bytes: [UInt8] = []
            bytes.appendJSON(value)
            #expect(String(decoding: bytes, as: UTF8.self) == String(value))
        }
    }

    /// A full disk leaves whole lines only.
    @Test func aFullDiskLeavesWholeLines() throws {
        guard let disk = try TinyDisk(bytes: 16 << 10, in: folder) else { return }
        let path = "\(disk.path)/full.timestamps.jsonl"
        let log = try TimestampLog(path: path, clockDomain: "h")
        let error = #expect(throws: SystemError.self) {
            for number in 0..<10_000 {
                try log.append(
                    frame: Int64(number), capture: Timestamp(nanoseconds: Int64(number)), uncertainty: .zero,
                    device: nil)
            }
            try log.finish()
        }
        #expect(error?.errno == .noSpace)
        let bytes = try Files.read(path)
        #expect(bytes.last == 0x0A)
        #expect(bytes.count > 8_192)
    }

    @Test(arguments: [
        // `date -u -d @<seconds>`
        (Int64(0), "19700101_000000", "1970-01-01T00:00:00.000Z"),
        (1_775_921_370_123_456_789, "20260411_152930", "2026-04-11T15:29:30.123Z"),
        (951_782_399_999_000_000, "20000228_235959", "2000-02-28T23:59:59.999Z"),
        (951_782_400_000_000_000, "20000229_000000", "2000-02-29T00:00:00.000Z"),
        (4_107_542_400_000_000_000, "21000301_000000", "2100-03-01T00:00:00.000Z"),
        (-1_000_000, "19691231_235959", "1969-12-31T23:59:59.999Z"),
    ])
    func datesAreGregorianAndUTC(nanoseconds: Int64, compact: String, iso: String) {
        let utc = UTC(Timestamp(nanoseconds: nanoseconds))
        #expect(utc.compact == compact)
        #expect(utc.isoMilliseconds == iso)
        let name = EpisodeLayout.newEpisode(at: Timestamp(nanoseconds: nanoseconds))
        #expect(EpisodeID.isLegal(name.rawValue))
        #expect(name.rawValue.hasPrefix("ep_\(compact)_"))
    }

    @Test func aSessionLogLine() throws {
        let path = "\(folder.path)/session.log"
        do {
            let log = try SessionLog(path: path)
            try log.append(
                kind: "state", detail: "connected->recording", at: Timestamp(nanoseconds: 1_775_921_370_123_456_789))
        }
        let again = try SessionLog(path: path)
        try again.append(kind: "state", detail: "recording->stopping", at: Timestamp(nanoseconds: 0))
        #expect(
            String(decoding: try Files.read(path), as: UTF8.self)
                == #"{"detail":"connected->recording","kind":"state","ts":"2026-04-11T15:29:30.123Z"}"# + "\n"
                + #"{"detail":"recording->stopping","kind":"state","ts":"1970-01-01T00:00:00.000Z"}"# + "\n")
    }
}
