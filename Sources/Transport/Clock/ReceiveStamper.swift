internal import Timing

/// Moves the kernel's receive stamps, which are on CLOCK_REALTIME, onto CLOCK_MONOTONIC.
///
/// Both clocks have the same rate by construction; only a step of the wall clock changes their difference. Each reading of
/// monotonic, wall, monotonic says between which limits the difference lies, and all readings since the last step say it
/// together. A reading that contradicts the older ones is a step: what was received around it gets the time of the
/// reading, which is later than the truth and therefore on the safe side, as is everything here: a stamp that is given
/// out is never earlier than the arrival, except for a step smaller than the width of the limits (some tens of ns), which
/// the estimator's stamp error covers.
struct ReceiveStamper: Sendable {
    /// One reading of the clocks in a row, in ns.
    struct Reading {
        var before: Int64
        var wall: Int64
        var after: Int64
    }

    /// Wall minus monotonic.
    private var difference: ClosedRange<Int64>?

    /// Wall-clock steps that were noticed.
    private(set) var steps = 0

    /// Datagrams that got the time of the reading because the kernel's stamp couldn't be trusted.
    private(set) var fallbacks = 0

    /// Takes a reading in; false when the wall clock was stepped since the last one.
    @discardableResult
    mutating func note(_ reading: Reading) -> Bool {
        let (low, lowOverflow) = reading.wall.subtractingReportingOverflow(reading.after)
        let (high, highOverflow) = reading.wall.subtractingReportingOverflow(reading.before)
        guard !lowOverflow, !highOverflow, low <= high else { return false }
        guard let known = difference else {
            difference = low...high
            return true
        }
        guard known.overlaps(low...high) else {
            difference = low...high
            steps += 1
            return false
        }
        difference = max(low, known.lowerBound)...min(high, known.upperBound)
        return true
    }

    /// The time of arrival on CLOCK_MONOTONIC in ns.
    ///
    /// From the kernel's stamp on CLOCK_REALTIME (nil when it gave none), a reading of the clocks right after the datagram
    /// was taken, and an instant at which nothing was waiting on the socket, so that the datagram came later.
    mutating func arrival(kernel: Int64?, reading: Reading, notBefore empty: Int64) -> Int64 {
        let hadReading = difference != nil
        let unstepped = note(reading)
        guard let kernel, hadReading, unstepped, let difference else {
            fallbacks += 1
            return reading.after
        }
        let (stamp, overflow) = kernel.subtractingReportingOverflow(difference.lowerBound)
        guard !overflow, stamp >= empty else {
            fallbacks += 1
            return reading.after
        }
        return min(stamp, reading.after)
    }
}
