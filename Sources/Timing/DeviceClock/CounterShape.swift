/// How a device counts time: the width of its counter and its rate.
///
/// A glove counts microseconds in 32 bits and begins anew every 71.6 minutes; many IMUs count milliseconds in 16 bits and
/// begin anew every 65.5 seconds.
package struct CounterShape: Sendable, Hashable {
    /// 1…64.
    package let bits: Int
    /// Nominal, Hz.
    package let ticksPerSecond: Int64

    package static let milliseconds16 = CounterShape(bits: 16, ticksPerSecond: 1000)
    package static let milliseconds32 = CounterShape(bits: 32, ticksPerSecond: 1000)
    package static let microseconds32 = CounterShape(bits: 32, ticksPerSecond: 1_000_000)
    package static let microseconds64 = CounterShape(bits: 64, ticksPerSecond: 1_000_000)

    /// What is out of range is taken as the nearest that is in it.
    package init(bits: Int, ticksPerSecond: Int64) {
        self.bits = min(max(bits, 1), 64)
        self.ticksPerSecond = min(max(ticksPerSecond, 1), 1_000_000_000)
    }

    /// One tick, rounded up to a nanosecond: what a stamp can be short of the truth by, since counters round down.
    package var tick: Interval { .nanoseconds((1_000_000_000 + ticksPerSecond - 1) / ticksPerSecond) }

    /// The length after which the counter begins anew; nil when that takes longer than Int64 nanoseconds last.
    package var period: Interval? {
        guard bits < 63 else { return nil }
        let length = nanoseconds(ofTicks: Int64(1) << Int64(bits))
        return length == .max ? nil : .nanoseconds(length)
    }

    /// Ticks as nanoseconds, rounded down; saturating.
    package func nanoseconds(ofTicks ticks: Int64) -> Int64 {
        let (high, low) = ticks.magnitude.multipliedFullWidth(by: 1_000_000_000)
        let divisor = UInt64(ticksPerSecond)
        guard high < divisor else { return ticks < 0 ? .min : .max }
        let (quotient, rest) = divisor.dividingFullWidth((high, low))
        guard let length = Int64(exactly: quotient), length < .max else { return ticks < 0 ? .min : .max }
        return ticks < 0 ? -length - (rest > 0 ? 1 : 0) : length
    }

    /// The number of whole ticks in a length; saturating.
    package func ticks(of length: Interval) -> Int64 {
        let (high, low) = length.nanoseconds.magnitude.multipliedFullWidth(by: UInt64(ticksPerSecond))
        let (quotient, _) = UInt64(1_000_000_000).dividingFullWidth((high, low))
        guard let ticks = Int64(exactly: quotient) else { return length < .zero ? .min : .max }
        return length < .zero ? -ticks : ticks
    }
}
