package import Timing

/// Tells lost frames from a driver's frame counter.
///
/// A counter that runs backwards, or ahead of what time allows, has begun anew; one that stands still counts nothing. A
/// frame that repeats a number, as a driver's that counts by time, takes the place of one that is missing after it.
package struct SequenceTracker: Sendable {
    package enum Finding: Sendable, Hashable {
        case continuous
        case lost(Int64)
        /// The counter began anew: nothing can be said of what lies between.
        case newEpoch
        /// The counter stands still; told once in a row.
        case noCounter
        /// After it stood still it counts again.
        case countsAgain
    }

    /// Frames beyond what the elapsed time explains that are still believed.
    private static let slack = 64.0
    package static let fewestRepeats: UInt32 = 3
    private let period: Interval?
    private var last: (sequence: UInt32, arrival: Timestamp<HostTime>)?
    /// Frames in a row that have repeated the last number.
    private var repeats: UInt32 = 0

    /// - Parameter rate: frames a second; nil when unknown, and then every step forward is believed.
    package init(rate: Double?) {
        period = rate.flatMap { $0 > 0 ? Interval.seconds(1 / $0) : nil }
    }

    package mutating func next(_ sequence: UInt32, arrival: Timestamp<HostTime>) -> Finding {
        defer { last = (sequence, arrival) }
        guard let last else { return .continuous }
        // Modulo 2^32, so that the counter's own wrap is a step of one.
        let step = sequence &- last.sequence
        if step == 0 {
            repeats = min(repeats + 1, Self.fewestRepeats + 1)
            return repeats == Self.fewestRepeats ? .noCounter : .continuous
        }
        let repeated = repeats
        repeats = 0
        // While it stood still nobody counted, so its next step says nothing of losses.
        if repeated >= Self.fewestRepeats { return .countsAgain }
        if step >= 1 << 31 { return .newEpoch }
        if let period, period > .zero {
            let elapsed = Double((arrival - last.arrival).nanoseconds) / Double(period.nanoseconds)
            if Double(step) > 2 * max(0, elapsed) + Self.slack { return .newEpoch }
        }
        let lost = max(0, Int64(step) - 1 - Int64(repeated))
        return lost == 0 ? .continuous : .lost(lost)
    }
}
