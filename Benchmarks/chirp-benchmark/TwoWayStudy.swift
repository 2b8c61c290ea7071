internal import AcousticScenes
internal import Acoustics
internal import Protocol
internal import TestSupport
internal import Timing

/// Offsets and distances of two to six hosts in simulated rooms, from samples to solution.
enum TwoWayStudy {
    static func run(trials: Int, seed: Int, separation: Double = 0.02) {
        var (offsets, distances, sigmas): ([Double], [Double], [Double]) = ([], [], [])
        var (inside, insideDistance, missing, falseRed) = (0, 0, 0, 0)
        for trial in 0..<trials {
            var random = SeededGenerator(seed: UInt64(seed) &* 1_000_003 &+ UInt64(trial))
            let take = AcousticTake(hosts: 2 + trial % 5, separation: separation, &random)
            guard let solution = take.solve(&random) else {
                missing += 1
                continue
            }
            for a in take.hosts.indices {
                for b in take.hosts.indices where b > a {
                    guard let pair = solution.pair(take.hosts[a].id, take.hosts[b].id), pair.kind == .twoWay else {
                        missing += 1
                        continue
                    }
                    let error = (pair.offset.seconds - take.trueOffset(a, b, solution)) * 1e6
                    let distance =
                        (pair.distance - take.hosts[a].microphone.distance(to: take.hosts[b].microphone)) * 100
                    offsets.append(abs(error))
                    distances.append(abs(distance))
                    sigmas.append(pair.offsetUncertainty.seconds * 1e6)
                    if abs(error) <= 2 * pair.offsetUncertainty.seconds * 1e6 { inside += 1 }
                    if abs(distance) <= 2 * pair.distanceUncertainty * 100 { insideDistance += 1 }
                    let bound = Double.random(in: 10e-6...150e-6, using: &random)
                    let clock = ClockStatement(
                        first: pair.first, second: pair.second,
                        offset: .seconds(
                            take.trueOffset(a, b, solution, from: pair) + .random(in: -bound...bound, using: &random)),
                        bound: .seconds(bound))
                    if AcousticWitness().compare(clock, with: pair).opinion == .disagree { falseRed += 1 }
                }
            }
        }
        let count = Double(max(offsets.count, 1))
        line(
            "two-way, speakers %.0f cm from their microphones: %.0f takes, %.0f pairs, %.0f missing, %.0f false alarms of the witness",
            separation * 100, Double(trials), count, Double(missing), Double(falseRed))
        line(
            "  offset: median %.1f  p95 %.1f  max %.1f µs; said ±%.1f; within 2 sigma %.1f %%", offsets.quantile(0.5),
            offsets.quantile(0.95), offsets.max() ?? .nan, sigmas.quantile(0.5), 100 * Double(inside) / count)
        line(
            "  distance: median %.2f  p95 %.2f  max %.2f cm; within 2 sigma %.1f %%", distances.quantile(0.5),
            distances.quantile(0.95), distances.max() ?? .nan, 100 * Double(insideDistance) / count)
        let whole = missing == 0
        // Only a speaker beside its microphone can reach the goals: the other row is told, and not judged.
        guard separation <= 0.03 else { return }
        line(
            "chirp offset_p95_us=%.1f goal=100 \(offsets.quantile(0.95) <= 100 && whole ? "pass" : "fail")",
            offsets.quantile(0.95))
        line(
            "chirp distance_p95_cm=%.2f goal=3 \(distances.quantile(0.95) <= 3 && whole ? "pass" : "fail")",
            distances.quantile(0.95))
        line("chirp false_red=%.0f goal=0 \(falseRed == 0 && whole ? "pass" : "fail")", Double(falseRed))
    }
}
