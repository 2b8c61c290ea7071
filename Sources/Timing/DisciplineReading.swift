/// How far a machine's clock has been steered away from its oscillator: CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW.
///
/// NTP and PTP daemons change the rate of CLOCK_MONOTONIC at once, by as much as they like; CLOCK_MONOTONIC_RAW is the
/// oscillator by itself, whose rate only wanders with its temperature. A reading beside each exchange says what the daemon
/// did, so that no change of the rate has to be guessed from the stamps.
package struct DisciplineReading: Sendable, Hashable {
    /// CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW; its origin means nothing.
    package var difference: Interval

    /// Half the time that the reading took: the difference is right to within it.
    package var error: Interval

    /// Whether a daemon may change the rate at any time (the kernel holds the clock for synchronized).
    package var isSteered: Bool

    package init(difference: Interval, error: Interval, isSteered: Bool) {
        self.difference = difference
        self.error = error
        self.isSteered = isSteered
    }
}
