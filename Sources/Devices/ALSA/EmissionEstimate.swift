internal import Protocol
internal import Timing

/// When a certain sample frame leaves a card, from what the card says of its position.
///
/// Pure.
///
/// A card that moves its position in steps claims to be behind of where it is, so each figure is late by up to a step:
/// the earliest one is the best.
package struct EmissionEstimate: Sendable {
    private struct Bounds: Sendable {
        var earliest: Timestamp<HostTime>
        var latest: Timestamp<HostTime>
        var count = 1

        mutating func take(_ instant: Timestamp<HostTime>) {
            earliest = min(earliest, instant)
            latest = max(latest, instant)
            count += 1
        }
    }

    private static let floor = Interval.milliseconds(1)
    private static let plausible = Interval.milliseconds(2_000)

    private let frame: Int
    private let rate: Double
    private let step: Interval
    private let isMonotonic: Bool
    private var byStamp: Bounds?
    private var byCall: Bounds?
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
        byCall = Self.joined(byCall, status.now + ahead)
        let isPlausible = status.stamp.nanoseconds != 0 && (status.now - status.stamp).magnitude <= Self.plausible
        guard isMonotonic, isPlausible else { return }
        // A driver keeps its stamp as long as its position is the same; it can't move without time.
        let position = written &- status.delay
        if let last, status.stamp == last.stamp, position != last.position { isFrozen = true }
        last = (status.stamp, position)
        byStamp = Self.joined(byStamp, status.stamp + ahead)
    }

    /// Nil before any status.
    package var emission: Emission? {
        if let byStamp, !isFrozen, byStamp.count > 1, spread(byStamp) <= limit {
            return Emission(
                instant: byStamp.earliest, uncertainty: max(Self.floor, step, spread(byStamp)), source: .hardware)
        }
        guard let byCall else { return nil }
        return Emission(
            instant: byCall.earliest, uncertainty: max(.milliseconds(10), step, spread(byCall)),
            source: .softwareFallback)
    }

    /// A position that jumps more than this is no clock.
    private var limit: Interval { max(.milliseconds(20), step * 2) }

    private func spread(_ bounds: Bounds) -> Interval { bounds.latest - bounds.earliest }

    private static func joined(_ bounds: Bounds?, _ instant: Timestamp<HostTime>) -> Bounds {
        guard var bounds else { return Bounds(earliest: instant, latest: instant) }
        bounds.take(instant)
        return bounds
    }
}
