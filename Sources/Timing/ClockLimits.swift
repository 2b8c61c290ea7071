/// What clocks, and stamps, are taken to be able to do.
///
/// The bounds rest on it; see `ClockEstimator`.
package struct ClockLimits: Sendable, Hashable {
    /// The largest relative rate error of an oscillator against another, as a ratio: 1000 ppm and some room.
    package var skew = 1.05e-3
    /// The largest change of that rate in a second, in 1/s: 0.05 ppm a second, a PC that heats up by 10 °C a minute.
    package var wander = 5e-8
    /// The largest change of a clock's rate by its daemon that the last exchange hasn't told yet, as a ratio.
    ///
    /// 100 ppm: what chrony and timesyncd do in a settled state is far below it; an initial slew is above it, and is known
    /// from the next exchange on.
    package var steering = 1e-4
    /// What a stamp can be wrong by in the unsafe direction: the clocks of two cores, and rounding.
    package var stampError = Interval.nanoseconds(100)
    /// How far from its reference a mapping's bound takes the wander in; ask for a new mapping beyond it.
    package var horizon = Interval.milliseconds(10_000)

    package init() {}

    /// How far a true clock can be from its line at an age in seconds, and the stamp from the truth, in ns.
    func error(atAge age: Double) -> Double { wander * age * age / 2 * 1e9 + Double(stampError.nanoseconds) }
}
