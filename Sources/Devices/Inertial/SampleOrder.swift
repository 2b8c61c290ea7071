package import Timing

/// Decides, from a sensor's counters, which rows are new, which came twice, and how many are missing.
///
/// Pure.
package struct SampleOrder: Sendable {
    package enum Verdict: Sendable, Hashable {
        /// A new row, after so many that are missing.
        case new(lost: Int64)
        /// The same row once more, or one from before the last.
        case duplicate
        /// The sample counter began anew.
        case newCount
    }

    /// More than a device can lose without a lost link: the counter itself is damaged or began anew.
    private static let mostLost: Int64 = 1_000_000

    /// Rows that came again.
    package private(set) var duplicates: Int64 = 0

    private let interval: Interval?
    private var lastSequence: Int64?
    private var lastDevice: Timestamp<DeviceTime>?
    private var lastValues: [Double] = []
    private var lastEpoch = 0

    /// - Parameter rate: nominal rows a second, where losses can only be told by the device's time; nil when unknown.
    package init(rate: Double?) { interval = rate.map { .seconds(1 / $0) } }

    /// Judges a row by the device's count of samples, else by the device's time, as far as it has them.
    ///
    /// The values tell a row that came twice from two rows within one tick.
    package mutating func judge(
        sequence: Int64?, stamp: DeviceClock.Stamp?, values: [Double]
    ) -> Verdict {
        defer {
            if let stamp, stamp.outcome != .suspect { (lastDevice, lastEpoch) = (stamp.device, stamp.epoch) }
        }
        if let sequence { return judge(sequence, values) }
        guard let stamp, stamp.outcome != .suspect, let lastDevice, stamp.epoch == lastEpoch else {
            lastValues = values
            return .new(lost: 0)
        }
        let step = stamp.device - lastDevice
        if step < .zero || step == .zero && values == lastValues {
            duplicates += 1
            return .duplicate
        }
        lastValues = values
        guard let interval, interval > .zero, step * 4 > interval * 7 else { return .new(lost: 0) }
        let missing = Int64((step.seconds / interval.seconds).rounded()) - 1
        return .new(lost: min(max(missing, 0), Self.mostLost))
    }

    /// The same with nothing counted and no row seen: for a new take.
    package var fresh: SampleOrder {
        var fresh = self
        fresh.duplicates = 0
        fresh.interrupted()
        return fresh
    }

    /// Forgets the last row: what is missing until the next one is a gap, and told as such.
    package mutating func interrupted() {
        lastDevice = nil
        lastSequence = nil
    }

    private mutating func judge(_ sequence: Int64, _ values: [Double]) -> Verdict {
        defer { lastValues = values }
        guard let last = lastSequence else {
            lastSequence = sequence
            return .new(lost: 0)
        }
        let (step, overflow) = sequence.subtractingReportingOverflow(last)
        if !overflow, step == 0 || step < 0 && step > -64 {
            // The newest stays the mark.
            duplicates += 1
            return .duplicate
        }
        lastSequence = sequence
        guard !overflow, step > 0, step <= Self.mostLost else { return .newCount }
        return .new(lost: step - 1)
    }
}
