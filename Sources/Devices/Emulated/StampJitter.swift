internal import Timing

/// The error of a stamp: normal, and never beyond a limit that is told as the sample's uncertainty.
struct StampJitter: Sendable {
    /// Four standard deviations, but less than half a period, so that stamps never change their order.
    let limit: Interval
    private let deviation: Double
    private var noise: SeededNoise

    /// - Parameters:
    ///   - microseconds: the standard deviation.
    ///   - period: between samples, ns.
    ///   - seed: the same seed gives the same errors.
    init(microseconds: Double, period: Double, seed: UInt64) {
        deviation = microseconds * 1000
        limit = .seconds(min(4 * deviation, 0.45 * period) / 1e9)
        noise = SeededNoise(seed: seed)
    }

    /// What may be told as the uncertainty: the limit, and a microsecond for the rounding.
    var uncertainty: Interval { limit + .microseconds(1) }

    mutating func next() -> Interval {
        let error = Interval.seconds(noise.normal() * deviation / 1e9)
        return min(max(error, -limit), limit)
    }
}
