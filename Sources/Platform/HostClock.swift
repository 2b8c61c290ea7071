internal import CLinux
internal import Glibc
package import Timing

/// Reads the clocks of this machine.
package enum HostClock {
    /// CLOCK_MONOTONIC now.
    ///
    /// On the coordinator the same clock is rig time; see `rigNow`.
    package static var now: Timestamp<HostTime> { Timestamp(nanoseconds: read(clinux_CLOCK_MONOTONIC)) }

    /// CLOCK_MONOTONIC now, as rig time: true only in the coordinator's process.
    package static var rigNow: Timestamp<RigTime> { Timestamp(nanoseconds: read(clinux_CLOCK_MONOTONIC)) }

    /// CLOCK_REALTIME now.
    package static var wall: Timestamp<WallTime> { Timestamp(nanoseconds: read(clinux_CLOCK_REALTIME)) }

    /// CLOCK_BOOTTIME in ns: it counts on while the machine is suspended.
    package static var boottimeNanoseconds: Int64 { read(clinux_CLOCK_BOOTTIME) }

    /// CLOCK_MONOTONIC_RAW in ns: the oscillator, which no daemon steers.
    package static var oscillatorNanoseconds: Int64 { read(clinux_CLOCK_MONOTONIC_RAW) }

    /// CLOCK_TAI in ns: equal to CLOCK_REALTIME when nobody has told the kernel the leap seconds.
    package static var taiNanoseconds: Int64 { read(clinux_CLOCK_TAI) }

    /// How far this machine's time zone is ahead of UTC at an instant.
    ///
    /// The corresponding C function is `localtime_r`.
    package static func zone(at instant: Timestamp<WallTime>) -> Interval {
        var time = time_t(instant.nanoseconds / 1_000_000_000)
        var parts = tm()
        localtime_r(&time, &parts)
        return .nanoseconds(Int64(parts.tm_gmtoff) * 1_000_000_000)
    }

    private static func read(_ clock: Int32) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
