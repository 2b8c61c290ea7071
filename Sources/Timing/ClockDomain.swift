/// The name of a time line.
///
/// Stamps of different domains can't be compared or subtracted: it doesn't compile.
package protocol ClockDomain: Sendable {}

/// The agent's CLOCK_MONOTONIC.
///
/// V4L2 and ALSA stamps are on it.
package enum HostTime: ClockDomain {}

/// The coordinator's CLOCK_MONOTONIC, on which a take is planned and judged.
package enum RigTime: ClockDomain {}

/// What a device's own counter said.
package enum DeviceTime: ClockDomain {}

/// CLOCK_REALTIME, nanoseconds since 1970-01-01 UTC.
///
/// It may step; nothing is scheduled on it.
package enum WallTime: ClockDomain {}
