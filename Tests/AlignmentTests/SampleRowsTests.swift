internal import Platform
internal import TestSupport
internal import Testing

@testable internal import Alignment

@Suite struct SampleRowsTests {
    private func load(_ text: String) throws -> SampleRows {
        let folder = try TemporaryFolder()
        try AtomicFile.write(text, to: "\(folder.path)/imu.jsonl")
        return try SampleRows.load(
            "\(folder.path)/imu.jsonl",
            stream: AlignmentStream(id: "imu", host: "a", rows: "imu.jsonl", isSensor: true))
    }

    @Test("Stamps up to 2^62 are exact, whatever stands around them")
    func exact() throws {
        let rows = try load(
            "\u{FEFF}{\"a\":{\"capture_ns\":1,\"x\":\"}\\\"\"},\"capture_ns\": 9007199254740993 ,\"clock_domain\":\"h\"}\r\n"
                + "\n{\"channels\":[1.5e3,{\"y\":[]}],\"frame_number\":7,\"capture_ns\":4611686018427387903}\n")
        #expect(rows.times == [9_007_199_254_740_993, 4_611_686_018_427_387_903])
        #expect(rows.clockDomains == ["h"])
    }

    @Test("A broken last line is left out, a broken line before it isn't")
    func torn() throws {
        let rows = try load("{\"capture_ns\":1}\n{\"capture_ns\":2}\n{\"capture_")
        #expect(rows.times == [1, 2])
        #expect(rows.isTorn)
        #expect(throws: SampleRows.LoadError.self) { try load("{\"capture_ns\":1}\n{\"cap\n{\"capture_ns\":3}\n") }
    }

    @Test("Rows out of order are sorted with their frame numbers; numbers that don't rise are counted anew")
    func order() throws {
        let rows = try load(
            "{\"capture_ns\":10,\"frame_number\":1}\n{\"capture_ns\":5,\"frame_number\":0}\n"
                + "{\"capture_ns\":20,\"frame_number\":2}\n")
        #expect(rows.times == [5, 10, 20])
        #expect(rows.frames == [0, 1, 2])
        #expect(rows.disorder == 1)
        let restarted = try load(
            "{\"capture_ns\":1,\"frame_number\":5}\n{\"capture_ns\":2,\"frame_number\":0}\n")
        #expect(restarted.frames == [0, 1])
        #expect(restarted.framesAreCounted)
    }

    @Test(
        "A row that has no usable time is named with its line",
        arguments: [
            ("{\"timestamp_ns\":1}\n", "Sensor load failed for imu: 'capture_ns' is missing in line 1 of imu.jsonl"),
            ("{\"capture_ns\":1}\n{\"x\":1}\n", "'capture_ns' is missing in line 2"),
            ("{\"capture_ns\":1.5}\n", "'capture_ns' in line 1 of imu.jsonl isn't a whole number"),
            ("{\"capture_ns\":\"1\"}\n", "isn't a whole number"),
            ("{\"capture_ns\":9223372036854775808}\n", "isn't a whole number"),
            ("{\"capture_ns\":-9223372036854775808}\n", "isn't a whole number of ns below 2^62"),
            ("", "imu.jsonl has no row"), ("nonsense", "imu.jsonl has no row"),
        ])
    func refusals(_ text: String, _ says: String) throws {
        let error = #expect(throws: SampleRows.LoadError.self) { try load(text) }
        #expect(error?.description.contains(says) == true, "\(error?.description ?? "")")
    }

    @Test("No bytes make the row scanner fail in another way than by saying no", arguments: 0..<20)
    func garbage(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("{}[]\":,\\ 0123456789-.eEtruefalsnc".utf8)
        for _ in 0..<500 {
            let bytes =
                Array("{\"capture_ns\":".utf8)
                + (0..<Int.random(in: 0..<40, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            _ = bytes.withUnsafeBytes { RowScan.members(["capture_ns"], of: $0) }
        }
    }
}
