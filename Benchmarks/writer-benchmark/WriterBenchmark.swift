internal import Episode
internal import Glibc
internal import Platform
internal import Timing

/// Rows a second and core of our sensor file: `writer-benchmark INPUT OUTPUT`.
///
/// INPUT has a row of six numbers in each line, which the peer reads too. Prints "rows seconds", with the process' own
/// time on the processor.
@main
struct WriterBenchmark {
    static func main() throws {
        guard CommandLine.arguments.count == 4, let repeats = Int(CommandLine.arguments[3]) else {
            StandardError.write("usage: writer-benchmark INPUT OUTPUT REPEATS\n")
            exit(2)
        }
        let text = String(decoding: try Files.read(CommandLine.arguments[1]), as: UTF8.self)
        let rows = text.split(separator: "\n").map { $0.split(separator: " ").compactMap { Double($0) } }
        let log = try SensorLog(
            path: CommandLine.arguments[2], clockDomain: "left-pc", channels: ["ax", "ay", "az", "gx", "gy", "gz"])
        let begin = processorSeconds()
        var frame: Int64 = 0
        for _ in 0..<repeats {
            for values in rows {
                let capture = 8_412_345_678_901_234 + frame * 1_000_000
                try log.append(
                    frame: frame, capture: Timestamp(nanoseconds: capture), uncertainty: .nanoseconds(500_000),
                    values: values, device: Timestamp(nanoseconds: frame * 1_000_000))
                frame += 1
            }
        }
        try log.flush()
        StandardOutput.write("\(frame) \(processorSeconds() - begin)\n")
    }

    private static func processorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
