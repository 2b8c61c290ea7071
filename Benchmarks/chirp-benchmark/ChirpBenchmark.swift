internal import Glibc

/// Measures the acoustics: `chirp-benchmark white|rooms|twoway|alarms|speed|arrivals …`.
@main struct ChirpBenchmark {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let number = { (index: Int, otherwise: Int) in arguments.count > index ? Int(arguments[index]) ?? otherwise : otherwise }
        switch arguments.first {
        case "white": WhiteNoiseStudy.run(trials: number(1, 100), seed: number(2, 1))
        case "rooms": RoomStudy.run(trials: number(1, 200), seed: number(2, 1))
        default:
            print("usage: chirp-benchmark white [TRIALS [SEED]] | rooms [TRIALS [SEED]]")
            exit(2)
        }
    }
}
