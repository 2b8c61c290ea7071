internal import Platform
internal import TestSupport

/// The estimator against simulated clocks and paths under all conditions together: a table, and a line for each figure.
enum MatrixMeasurement {
    /// True when all figures reach their goals.
    static func run(takes: UInt64) -> Bool {
        var matrix = ClockMatrix()
        var shown = 0
        matrix.run(seeds: 0..<takes) { failure in
            shown += 1
            if shown <= 20 { StandardOutput.write("  \(failure)\n") }
        }
        StandardOutput.write(
            "path                        takes  estimates  over  worst error/bound  error p50/p95 µs   bound p50/p99 µs\n"
        )
        for one in matrix.classes.sorted(by: { $0.name < $1.name }) {
            let (errors, bounds) = (one.errors.sorted(), one.bounds.sorted())
            let columns = [
                one.name.padded(27), "\(one.takes)".padded(6), "\(one.estimates)".padded(10),
                "\(one.violations)".padded(5), "\(rounded(one.worstRatio, 1000))".padded(18),
                "\(micro(errors.quantile(0.5)))/\(micro(errors.quantile(0.95)))".padded(18),
                "\(micro(bounds.quantile(0.5)))/\(micro(bounds.quantile(0.99)))",
            ]
            StandardOutput.write(columns.joined(separator: " ") + "\n")
        }
        let (over, beyond) = matrix.classes.reduce(into: (0, 0)) {
            $0.0 += $1.overChange
            $0.1 += $1.overChangeBeyond
        }
        StandardOutput.write(
            "beside these: \(over) looks ahead over a change of the rate or a jump that no exchange had told yet; "
                + "\(beyond) of them were beyond the bound, as they must be\n")
        let hours = (0..<3).map { ClockMatrix.hour(seed: $0) }
        let residual = hours.map { $0.map { Double(max($0.live, $0.smoothed)) / 1000 } ?? .infinity }.max() ?? .infinity
        StandardOutput.write("clock-matrix_worst_error_over_bound=\(rounded(matrix.worstRatio, 10_000))\n")
        var isPass = true
        for (name, figure, goal, most) in [
            ("estimates", Double(matrix.estimates), 10_000, false),
            ("errors_over_bound", Double(matrix.violations), 0, true),
            ("residual_1h_us", rounded(residual, 1000), 100, true),
        ] as [(String, Double, Double, Bool)] {
            let passes = most ? figure <= goal : figure >= goal
            isPass = isPass && passes
            StandardOutput.write("clock-matrix_\(name) figure=\(figure) goal=\(goal) \(passes ? "pass" : "fail")\n")
        }
        return isPass
    }

    private static func rounded(_ value: Double, _ scale: Double) -> Double { (value * scale).rounded() / scale }

    private static func micro(_ nanoseconds: Int64?) -> String {
        nanoseconds.map { "\(($0 + 50) / 100 / 10).\(($0 + 50) / 100 % 10)" } ?? "-"
    }
}
