internal import Timing

/// Moves the kernel's stamps of datagrams, which are on CLOCK_REALTIME, onto CLOCK_MONOTONIC.
///
/// Both clocks have the same rate by construction; only a step of the wall clock changes their difference. Each reading of
/// monotonic, wall, monotonic says between which limits the difference lies, and all readings since the last step say it
/// together. A reading that contradicts the older ones is a step: what was received around it gets the time of the
/// reading, which is later than the truth and therefore on the safe side, and what was sent gets the time before the call.
/// A stamp that is given out is never earlier than the arrival and never later than the departure, except for a step
/// smaller than the width of the limits (some tens of ns), which the estimator's stamp error covers.
struct KernelStamper: Sendable {
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

    /// Datagrams that got the time of the reading because the kernel's stamp couldn't be trusted, or wasn't there.
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
        guard let kernel, let difference = trusted(reading) else { return fallBack(reading.after) }
        let (stamp, overflow) = kernel.subtractingReportingOverflow(difference.lowerBound)
        guard !overflow, stamp >= empty else { return fallBack(reading.after) }
        return min(stamp, reading.after)
    }

    /// The time of departure on CLOCK_MONOTONIC in ns, never later than it.
    ///
    /// From the kernel's stamp (nil when it gave none), the time right before the call that sent, and a reading after it.
    mutating func departure(kernel: Int64?, sent before: Int64, reading: Reading) -> Int64 {
        guard let kernel, let difference = trusted(reading) else { return fallBack(before) }
        let (stamp, overflow) = kernel.subtractingReportingOverflow(difference.upperBound)
        guard !overflow, stamp <= reading.after else { return fallBack(before) }
        return max(stamp, before)
    }

    /// The difference of the clocks, when it was known before a reading and is still the same.
    private mutating func trusted(_ reading: Reading) -> ClosedRange<Int64>? {
        let hadReading = difference != nil
        return note(reading) && hadReading ? difference : nil
    }

    private mutating func fallBack(_ instant: Int64) -> Int64 {
        fallbacks += 1
        return instant
    }
}
