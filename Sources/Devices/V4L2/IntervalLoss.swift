package import Timing

/// Tells lost frames from the distances of their stamps, where the driver has no counter.
///
/// A distance of about n usual ones is n − 1 lost frames. What is usual is the median of the last distances, so a camera
/// that halves its rate in the dark is soon taken for a slower one and not for one that loses every other frame. A
/// suspected loss is therefore held back until the distances after it are short again.
package struct IntervalLoss: Sendable {
    /// Lost frames, found some frames later.
    package struct Finding: Sendable, Hashable {
        package var count: Int64
        /// The stamp of the frame after them.
        package var before: Timestamp<HostTime>
    }

    private static let window = 15
    /// As many long distances in a row are a new rate.
    private static let newRate = 4
    private var last: Timestamp<HostTime>?
    private var distances: [Int64] = []
    private var usual: Int64
    private var held: [Finding] = []

    /// - Parameter rate: frames a second; nil when unknown, and then the first frames tell it.
    package init(rate: Double?) {
        usual = rate.flatMap { $0 > 0 ? Interval.seconds(1 / $0).nanoseconds : nil } ?? 0
    }

    package mutating func next(_ capture: Timestamp<HostTime>) -> [Finding] {
        defer { last = capture }
        guard let last else { return [] }
        let distance = (capture - last).nanoseconds
        guard distance > 0 else { return [] }
        distances.append(distance)
        if distances.count > Self.window { distances.removeFirst() }
        guard usual > 0 else {
            if distances.count >= 5 { usual = median(distances) }
            return []
        }
        let steps = (Double(distance) / Double(usual)).rounded()
        guard steps >= 2 else {
            // Short again: what was long was a loss. A rate that has become faster is learnt at once.
            if distances.count >= 5 { usual = median(distances) }
            defer { held = [] }
            return held
        }
        held.append(Finding(count: Int64(min(steps - 1, 1e12)), before: capture))
        guard held.count >= Self.newRate else { return [] }
        // All of the last ones are long: they are the new usual ones.
        usual = median(distances.suffix(Self.newRate))
        distances = Array(distances.suffix(Self.newRate))
        held = []
        return []
    }

    /// What is still held back; call it at the end of a stretch.
    package mutating func rest() -> [Finding] {
        defer { held = [] }
        return held
    }

    private func median(_ values: some Collection<Int64>) -> Int64 {
        let sorted = values.sorted()
        return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
    }
}
