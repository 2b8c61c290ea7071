package import Timing

/// Notices when the wall clock was set and when the machine was suspended, by comparing the clocks with each other.
///
/// The take goes on: its stamps are CLOCK_MONOTONIC, which does neither.
package struct ClockWatch: Sendable, Hashable {
    package enum Finding: Sendable, Hashable {
        /// CLOCK_REALTIME was set forward by so much (backward: negative).
        case stepped(Interval)
        case suspended(Interval)
        /// TAI minus UTC as the kernel has it was set, in seconds, from one to another.
        case leapSeconds(from: Int, to: Int)
    }

    /// NTP slews by at most 500 ppm, 0.5 ms in a second; reading takes microseconds.
    private static let threshold = Interval.milliseconds(10)
    private var wallOffset: Int64?
    private var bootOffset: Int64?
    private var leapSeconds: Int?

    package init() {}

    /// Call it about once a second, with the four clocks read together.
    package mutating func look(
        monotonic: Timestamp<HostTime>, wall: Timestamp<WallTime>, boottimeNanoseconds: Int64, taiNanoseconds: Int64
    ) -> [Finding] {
        let wallNow = wall.nanoseconds &- monotonic.nanoseconds
        let bootNow = boottimeNanoseconds &- monotonic.nanoseconds
        defer { (wallOffset, bootOffset) = (wallNow, bootNow) }
        // Whole seconds, whatever the time between the two readings.
        let leap = Int((Double(taiNanoseconds &- wall.nanoseconds) / 1e9).rounded())
        defer { leapSeconds = leap }
        guard let wallOffset, let bootOffset else { return [] }
        var findings: [Finding] = []
        let asleep = Interval(nanoseconds: bootNow &- bootOffset)
        if asleep >= Self.threshold { findings.append(.suspended(asleep)) }
        // While the machine sleeps, the wall clock goes on.
        let step = Interval(nanoseconds: wallNow &- wallOffset) - asleep
        if step.magnitude >= Self.threshold { findings.append(.stepped(step)) }
        if let leapSeconds, leapSeconds != leap { findings.append(.leapSeconds(from: leapSeconds, to: leap)) }
        return findings
    }
}
