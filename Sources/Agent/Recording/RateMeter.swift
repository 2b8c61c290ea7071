package import Timing

/// Samples a second over the last second or so.
package struct RateMeter: Sendable, Hashable {
    private static let window = Interval.milliseconds(1000)
    private struct Reading: Sendable, Hashable {
        let at: Timestamp<HostTime>
        let count: Int64
    }
    private var readings: [Reading] = []

    package init() {}

    /// The count so far at an instant; call it some times a second.
    package mutating func note(_ count: Int64, at now: Timestamp<HostTime>) {
        if let last = readings.last, last.count > count || last.at >= now { readings = [] }
        readings.append(Reading(at: now, count: count))
        // One reading at or before the window's start is kept, so that the window is never shorter than a second.
        while readings.count > 2, now - readings[1].at >= Self.window { readings.removeFirst() }
    }

    /// 0 until there are two readings.
    package var rate: Double {
        guard let first = readings.first, let last = readings.last, last.at > first.at else { return 0 }
        return Double(last.count - first.count) / (last.at - first.at).seconds
    }
}
