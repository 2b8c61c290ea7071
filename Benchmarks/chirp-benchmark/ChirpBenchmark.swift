internal import Glibc

/// Measures the acoustics: `white`, `rooms`, `twoway`, `speed`, `alarms`; `make` and `solve` for the peers.
@main struct ChirpBenchmark {
    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let number = { (index: Int, otherwise: Int) in
            arguments.count > index ? Int(arguments[index]) ?? otherwise : otherwise
        }
        switch arguments.first {
        case "white": WhiteNoiseStudy.run(trials: number(1, 100), seed: number(2, 1))
        case "rooms": RoomStudy.run(trials: number(1, 200), seed: number(2, 1))
        case "twoway":
            TwoWayStudy.run(trials: number(1, 20), seed: number(2, 1), separation: 0.2)
            TwoWayStudy.run(trials: number(1, 20), seed: number(2, 1))
        case "speed": StreamStudy.speed(seconds: number(1, 600))
        case "alarms": try StreamStudy.alarms(Array(arguments.dropFirst()))
        case "make" where arguments.count > 1:
            try PairStudy.make(arguments[1], pairs: number(2, 10), seed: number(3, 1))
        case "solve" where arguments.count > 1: try PairStudy.solve(arguments[1])
        default:
            print("usage: chirp-benchmark white|rooms|twoway [TRIALS [SEED]] | speed [SECONDS] | alarms WAV...")
            print("       chirp-benchmark make FOLDER [PAIRS [SEED]] | solve FOLDER")
            exit(2)
        }
    }
}
