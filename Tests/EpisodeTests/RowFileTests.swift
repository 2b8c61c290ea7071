internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct RowFileTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func read(_ text: String) throws -> (report: RowReport, rows: [StampRow]) {
        let path = "\(folder.path)/x.timestamps.jsonl"
        try AtomicFile.write(text, to: path)
        var rows: [StampRow] = []
        let report = try RowFile.read(path) { rows.append($0) }
        return (report, rows)
    }

    /// Cut at every byte, the whole lines before the cut come out, and what follows is torn or nothing.
    @Test func cutAtEveryByte() throws {
        let lines = [
            #"{"frame_number":0,"capture_ns":100,"clock_domain":"h","channels":{"a":[1,{"b":"}\"{"}],"c":-1.5e3}}"#,
            #"{"frame_number":1,"capture_ns":200,"device_timestamp_ns":5}"#,
            #"{"frame_number":2,"capture_ns":300,"uncertainty_ns":7}"#,
        ]
        let whole = Array(lines.map { $0 + "\n" }.joined().utf8)
        let path = "\(folder.path)/cut.jsonl"
        for length in 0...whole.count {
            try AtomicFile.write(Array(whole[..<length]), to: path)
            var captures: [Int64] = []
            let report = try RowFile.read(path) { captures.append($0.capture) }
            let part = String(decoding: whole[..<length], as: UTF8.self)
            let complete = part.utf8.filter { $0 == 0x0A }.count
            let rest = part.split(separator: "\n", omittingEmptySubsequences: false).last.map(String.init) ?? ""
            // A last line that only lacks its line feed is whole.
            let restIsRow = lines.contains(rest)
            #expect(captures == (0..<complete + (restIsRow ? 1 : 0)).map { Int64($0 + 1) * 100 })
            #expect(report.malformed == 0)
            #expect(report.isTorn == (!rest.isEmpty && !restIsRow))
        }
    }

    @Test func numbersAreExact() throws {
        let (report, rows) = try read(
            #"{"frame_number":9007199254740993,"capture_ns":9223372036854775807}"# + "\n"
                + #"{"capture_ns":-9223372036854775808,"frame_number":9007199254740994}"# + "\n"
                + #"{"frame_number":9007199254740995,"capture_ns":1.5e18}"# + "\n"
                + #"{"frame_number":9007199254740996,"capture_ns":9223372036854775808}"# + "\n"
                + #"{"frame_number":9007199254740996,"capture_ns":1e300}"# + "\n")
        #expect(rows.map(\.capture) == [.max, .min, 1_500_000_000_000_000_000])
        #expect(rows[0].frame == 9_007_199_254_740_993)
        #expect(report.inexactStamps == 1)
        #expect(report.malformed == 2)
        #expect(report.largestGap == .max)
        #expect(report.rate == nil)
    }

    @Test func byteOrderMarkAndCarriageReturns() throws {
        let (report, rows) = try read(
            "\u{FEFF}{\"frame_number\":0,\"capture_ns\":1}\r\n\r\n{\"frame_number\":1,\"capture_ns\":2}\r\n")
        #expect(rows.map(\.capture) == [1, 2])
        #expect(report.hasByteOrderMark)
        #expect(report.hasCarriageReturns)
        #expect(report.malformed == 0)
    }

    /// Frames 0…9 of 10 ns each in another order, one twice, one missing, one from before the recording.
    @Test func disorderAndDuplicates() throws {
        let order = [-1, 3, 1, 2, 0, 9, 8, 8, 5, 4, 7]
        let (report, rows) = try read(
            order.map { "{\"frame_number\":\($0),\"capture_ns\":\(1_000 + $0 * 10)}\n" }.joined())
        #expect(rows.count == 10)
        #expect(report.previewRows == 1)
        #expect(report.duplicates == 1)
        #expect(report.missingFrames == 1)
        #expect(report.disordered > 0)
        #expect(report.first == 1_000)
        #expect(report.last == 1_090)
        #expect(report.largestGap == 20)
        #expect(report.largestGapStart == 1_050)
        #expect(!report.isClean)
    }

    @Test(arguments: [
        "x", "[]", "{", "{}", "{\"capture_ns\"}", "{\"capture_ns\":}", "{\"capture_ns\":1", "{\"capture_ns\":1}}",
        "{\"capture_ns\":\"1\"}", "{\"capture_ns\":null}", "{\"capture_ns\":-}", "{\"capture_ns\":1,}",
        "{\"capture_ns\":1 \"a\":2}", "{\"channels\":[[[", "{\"channels\":]}", "{\"a\":\"\\", "{\"a\":\"\u{1}\"}",
        "{\"capture_ns\":99999999999999999999}", "{\"capture_ns\":1e999}", "\u{0}\u{0}\u{0}", "{\"a\":{\"b\":1}",
    ])
    func malformedLinesAreCounted(line: String) throws {
        let (report, rows) = try read(line + "\n{\"frame_number\":1,\"capture_ns\":5}\n")
        #expect(rows.map(\.capture) == [5])
        #expect(report.malformed == 1)
        #expect(report.firstMalformed?.hasPrefix("line 1: ") == true)
    }

    /// Random bytes, and rows with random bytes in them, are counted or read; nothing stops.
    @Test func randomBytes() throws {
        var random = SeededGenerator(seed: 42)
        let alphabet = Array("{}[]\":,\\ntrue0123456789.eE+- capture_ns frame_number\n\u{0}é".utf8)
        let path = "\(folder.path)/random.jsonl"
        for _ in 0..<300 {
            let bytes = (0..<Int.random(in: 0...400, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            try AtomicFile.write(bytes, to: path)
            let report = try RowFile.read(path)
            #expect(report.bytes == Int64(bytes.count))
        }
        let row = Array(#"{"frame_number":12,"capture_ns":345,"channels":{"a":1.5},"clock_domain":"h"}"#.utf8)
        for _ in 0..<2_000 {
            var bytes = row
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            var scanner = RowScanner()
            bytes.withUnsafeBytes { _ = scanner.scan($0, line: 1) }
        }
    }

    @Test func aLineWithoutEndIsNotHeldInMemory() throws {
        let path = "\(folder.path)/long.jsonl"
        try AtomicFile.write(
            [UInt8](repeating: UInt8(ascii: "x"), count: 5 << 20) + Array("\n{\"capture_ns\":5}\n".utf8), to: path)
        var captures: [Int64] = []
        let report = try RowFile.read(path) { captures.append($0.capture) }
        #expect(captures == [5])
        #expect(report.malformed == 1)
    }

    /// What our writers write our reader reads, number for number.
    @Test func itReadsWhatWeWrite() throws {
        let path = "\(folder.path)/ours.jsonl"
        let log = try SensorLog(path: path, clockDomain: "h", channels: ["a", "b"])
        var random = SeededGenerator(seed: 9)
        var captures: [Int64] = []
        var at: Int64 = 1 << 60
        for number in 0..<10_000 {
            at += Int64.random(in: 1...5_000_000, using: &random)
            captures.append(at)
            try log.append(
                frame: Int64(number), capture: Timestamp(nanoseconds: at), uncertainty: .microseconds(5),
                values: [Double(bitPattern: random.next()), 1], device: Timestamp(nanoseconds: Int64(number) * 3))
        }
        try log.finish()
        var read: [StampRow] = []
        let report = try RowFile.read(path) { read.append($0) }
        #expect(read.map(\.capture) == captures)
        #expect(read.map(\.device) == (0..<10_000).map { Int64($0) * 3 })
        #expect(read.allSatisfy { $0.hasChannels && $0.uncertainty == 5_000 })
        #expect(report.isClean)
        #expect(report.clockDomains == ["h"])
    }
}
