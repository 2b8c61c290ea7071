internal import Episode
internal import Platform
internal import TestSupport
internal import Testing
internal import Timing

/// The standard library's digits are the judge: they are the shortest by another algorithm.
@Suite struct ShortestDecimalTests {
    /// As a row of a sensor's file has it.
    private func texts(_ values: [Double]) throws -> [String] {
        let folder = try TemporaryFolder()
        let log = try SensorLog(path: "\(folder.path)/x.jsonl", clockDomain: "h", channels: ["v"])
        for value in values {
            try log.append(
                frame: 0, capture: Timestamp(nanoseconds: 0), uncertainty: .zero, values: [value], device: nil)
        }
        try log.finish()
        let lines = String(decoding: try Files.read("\(folder.path)/x.jsonl"), as: UTF8.self).split(separator: "\n")
        return lines.map { line in
            let start = line.firstRange(of: "\"v\":")?.upperBound ?? line.startIndex
            return String(line[start...].dropLast(2))
        }
    }

    private func check(_ values: [Double]) throws {
        for (value, text) in zip(values, try texts(values)) {
            let isWhole = value.magnitude < 0x1p53 && value.rounded(.towardZero) == value
            let expected = isWhole && !(value == 0 && value.sign == .minus) ? String(Int64(value)) : value.description
            #expect(text == expected)
        }
    }

    @Test func `The edges of the format`() throws {
        let edges = [
            0, -0.0, 1, 0.1, 0.3, 1.5, 1e-4, 9.999e-5, 1e-5, 123_456_789.123456, 899_999_999.999999, 1e15, 1e16, 1e17,
            1e22,
            1e23, 9_007_199_254_740_991, 9_007_199_254_740_992, 9_007_199_254_740_994, 18_014_398_509_481_984,
            4_503_599_627_370_495.5, .leastNonzeroMagnitude, .leastNormalMagnitude, .leastNormalMagnitude.nextDown,
            .greatestFiniteMagnitude, 9.5e-3, 1.2345678901234567e-7,
        ]
        try check(edges + edges.map { -$0 })
        #expect(try texts([.nan, .infinity, -.infinity]) == ["null", "null", "null"])
    }

    @Test func `Each power of two and its neighbours`() throws {
        for exponent in -1074...1023 {
            let power = Double(sign: .plus, exponent: exponent, significand: 1)
            try check([power.nextDown, power, power.nextUp])
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>) func `Random numbers of every kind`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var values: [Double] = []
        for _ in 0..<4000 {
            let bits = Double(bitPattern: generator.next())
            if bits.isFinite { values.append(bits) }
            let value = Double.random(in: -20...20, using: &generator)
            values += [value, (value * 1e5).rounded() / 1e5, value * 1e-4, value * 1e17, value * 6.1e-5.rounded(.up)]
        }
        try check(values)
    }

    @Test func `Whole numbers of every length`() throws {
        let folder = try TemporaryFolder()
        let log = try SensorLog(path: "\(folder.path)/x.jsonl", clockDomain: "h", channels: ["v"])
        var numbers: [Int64] = [.min, .max, 0, -1]
        var power: Int64 = 1
        for _ in 0..<18 {
            numbers += [power - 1, power, power + 1, -power]
            power *= 10
        }
        for number in numbers {
            try log.append(
                frame: number, capture: Timestamp(nanoseconds: number), uncertainty: .nanoseconds(number), values: [1],
                device: Timestamp(nanoseconds: number))
        }
        try log.finish()
        let lines = String(decoding: try Files.read("\(folder.path)/x.jsonl"), as: UTF8.self).split(separator: "\n")
        for (line, number) in zip(lines, numbers) {
            #expect(
                line == """
                    {"frame_number":\(number),"capture_ns":\(number),"clock_source":"host_monotonic","clock_domain":"h",\
                    "uncertainty_ns":\(number),"channels":{"v":1},"device_timestamp_ns":\(number)}
                    """)
        }
    }
}
