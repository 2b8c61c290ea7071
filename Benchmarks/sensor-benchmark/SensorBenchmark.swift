internal import Devices
internal import Glibc
internal import Platform
internal import Timing

/// `sensor-benchmark FOLDER RATE`: a left and a right glove of schema 6 at sockets in a folder, until SIGINT or SIGTERM.
@main
struct SensorBenchmark {
    static func main() async throws {
        Signals.block()
        let words = CommandLine.arguments
        guard words.count == 3, let rate = Double(words[2]), rate > 0 else {
            StandardError.write("usage: sensor-benchmark FOLDER RATE\n")
            exit(2)
        }
        let gloves = [GloveSide.left, .right].map { side in
            SocketPeripheral(path: "\(words[1])/\(side.rawValue).sock") {
                var script = GloveScript(side: side)
                (script.schema, script.rate, script.samplesPerPacket) = (6, rate, 3)
                script.skewPPM = side == .left ? 80 : -120
                return GlovePeripheral(script, at: HostClock.now)
            }
        }
        for glove in gloves { try await glove.begin() }
        StandardOutput.write("ready\n")
        for await _ in try Signals.stream(on: EventLoop(name: "signals")) { break }
        for glove in gloves { await glove.end() }
    }
}
