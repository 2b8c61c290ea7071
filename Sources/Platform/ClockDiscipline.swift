internal import CLinux
internal import Glibc
package import Timing

/// How this machine's clock is steered: the kernel's word, and CLOCK_MONOTONIC against its oscillator; one thread.
package struct ClockDiscipline: Sendable {
    /// What the kernel says (adjtimex).
    package struct KernelState: Sendable, Hashable {
        /// Whether the kernel holds its clock for synchronized: a daemon has said so, and not too long ago.
        package var isSynchronized: Bool
        /// What is still left to be slewed away.
        package var offset: Interval
        /// The rate that was set against the oscillator's nominal one, as a ratio.
        package var frequency: Double
        /// What the daemon says that the wall clock can be wrong by, at most and likely.
        package var maximumError: Interval
        package var estimatedError: Interval
        /// TAI minus UTC in seconds; zero when nobody has told the kernel.
        package var taiOffset: Int
    }

    private var lookedAt: Timestamp<HostTime>?
    private var isSteered = false

    package init() {}

    /// Nil when the kernel doesn't say.
    package static var kernel: KernelState? {
        var state = clinux_discipline()
        clinux_read_discipline(&state)
        guard state.state >= 0 else { return nil }
        // The tick is 10,000 µs by itself: one µs more is 100 ppm.
        let frequency = Double(state.frequency) / 65_536e6 + Double(state.tick_us - 10_000) / 10_000
        return KernelState(
            isSynchronized: state.status & STA_UNSYNC == 0, offset: .nanoseconds(state.offset_ns), frequency: frequency,
            maximumError: .microseconds(state.maximum_error_us),
            estimatedError: .microseconds(state.estimated_error_us),
            taiOffset: Int(state.tai_offset_s))
    }

    /// CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW now; at most once a second it also asks the kernel whether it steers.
    package mutating func read() -> DisciplineReading {
        var best: (width: Int64, difference: Int64)?
        // An interruption between the readings shows as a long one; the second try is quick.
        for _ in 0..<4 {
            let before = HostClock.now.nanoseconds
            let raw = HostClock.oscillatorNanoseconds
            let width = HostClock.now.nanoseconds - before
            if best.map({ width < $0.width }) ?? true { best = (width, before + width / 2 - raw) }
            if width <= 150 { break }
        }
        let now = HostClock.now
        if lookedAt.map({ now - $0 >= .milliseconds(1000) }) ?? true {
            lookedAt = now
            isSteered = Self.kernel.map { $0.isSynchronized || $0.offset != .zero } ?? true
        }
        // One more than half: the division rounds.
        return DisciplineReading(
            difference: .nanoseconds(best?.difference ?? 0), error: .nanoseconds((best?.width ?? 0) / 2 + 1),
            isSteered: isSteered)
    }
}
