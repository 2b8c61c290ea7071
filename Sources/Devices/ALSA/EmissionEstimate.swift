internal import Protocol
internal import Timing

/// When a certain sample frame leaves a card, from what the card says of its position.
///
/// Pure.
///
/// A card that moves its position in steps claims to be behind of where it is, and a busy machine reads it late, so each
/// figure is late by something: the earliest one is the best. It is believed when half of all agree with it: a position
/// that jumps is no clock.
package struct EmissionEstimate: Sendable {
    private static let floor = Interval.milliseconds(1)
    private static let plausible = Interval.milliseconds(2_000)
    /// A sound of a minute is asked about some thousand times.
    private static let most = 10_000

    private let frame: Int
    private let rate: Double
    private let step: Interval
    private let isMonotonic: Bool
    private var byStamp: [Timestamp<HostTime>] = []
    private var byCall: [Timestamp<HostTime>] = []
    private var last: (stamp: Timestamp<HostTime>, position: Int)?
    private var isFrozen = false

    /// - Parameters:
    ///   - frame: the sample frame that is asked for, counted from the first one that was written.
    ///   - shape: of the card.
    package init(of frame: Int, _ shape: PCMShape) {
        self.frame = frame
        rate = Double(shape.format.rate)
        step = shape.isBatch ? shape.period : .zero
        isMonotonic = shape.isMonotonic
    }

    /// - Parameters:
    ///   - status: of a running card.
    ///   - written: sample frames written when it was asked.
    package mutating func take(_ status: PCMStatus, written: Int) {
        guard status.state == .running else { return }
        let ahead = Interval.seconds(Double(status.delay &- (written &- frame)) / rate)
        if byCall.count < Self.most { byCall.append(status.now + ahead) }
        let isPlausible = status.stamp.nanoseconds != 0 && (status.now - status.stamp).magnitude <= Self.plausible
        guard isMonotonic, isPlausible else { return }
        // A driver keeps its stamp as long as its position is the same; it can't move without time.
        let position = written &- status.delay
        if let last, status.stamp == last.stamp, position != last.position { isFrozen = true }
        last = (status.stamp, position)
        if byStamp.count < Self.most { byStamp.append(status.stamp + ahead) }
    }

    /// Nil before any status.
    package var emission: Emission? {
        if !isFrozen, byStamp.count > 1, let (earliest, spread) = Self.agreement(byStamp), spread <= limit {
            return Emission(instant: earliest, uncertainty: max(Self.floor, step, spread), source: .hardware)
        }
        guard let (earliest, spread) = Self.agreement(byCall) else { return nil }
        return Emission(
            instant: earliest, uncertainty: max(.milliseconds(10), step, spread), source: .softwareFallback)
    }

    /// Half of the figures being further apart than this, the position is no clock.
    private var limit: Interval { max(.milliseconds(20), step * 2) }

    /// The earliest figure, and how far from it half of all lie.
    private static func agreement(
        _ figures: [Timestamp<HostTime>]
    ) -> (earliest: Timestamp<HostTime>, spread: Interval)? {
        let sorted = figures.sorted()
        guard let earliest = sorted.first else { return nil }
        return (earliest, sorted[sorted.count / 2] - earliest)
    }
}
