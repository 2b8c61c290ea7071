/// How one clock stands to its oscillator around now, from the readings of the exchanges.
///
/// A clock that nobody steers keeps its rate, so its readings lie on a line for as long as they do; the first that
/// doesn't begins anew. A steered clock has the rate of the last readings, and may change it by `ClockLimits.steering`
/// before the next one tells.
struct DisciplineTrack: Sendable {
    /// Clock minus oscillator as a line over the clock's own time.
    struct Line: Sendable {
        /// On the clock, ns.
        var at: Int64
        /// Clock minus oscillator there, ns, and what it can be wrong by.
        var difference: Int64
        var error: Double
        /// The clock's rate against its oscillator, minus one.
        var slope: Double
        var slopeError: Double

        /// The oscillator at an instant of the clock, with the limit of its error; in ns.
        func oscillator(at clock: Int64) -> (time: Int64, error: Double) {
            let age = Double(clock &- at)
            let bent = Interval.seconds(slope * age / 1e9).nanoseconds
            return (clock &- difference &- bent, error + slopeError * abs(age))
        }

        /// The clock at an instant of the oscillator, with the limit of its error; in ns.
        func clock(at oscillator: Int64) -> (time: Int64, error: Double) {
            let age = Double(oscillator &+ difference &- at)
            let bent = Interval.seconds(age * slope / (1 - slope) / 1e9).nanoseconds
            return (
                oscillator &+ difference &+ bent, error + slopeError * abs(age) / (1 - slope)
            )
        }
    }

    private struct Sample {
        var at: Int64
        var difference: Int64
        var error: Double
    }

    /// The newest is the last; the others are `spacing` or more apart.
    private var samples: [Sample] = []
    private var isSteered = false
    /// How often the rate was found changed.
    private(set) var changes = 0

    private static let spacing: Int64 = 250_000_000

    /// Takes a reading in that was made at an instant of the clock.
    mutating func add(_ reading: DisciplineReading, at clock: Int64, limits: ClockLimits) {
        let new = Sample(
            at: clock, difference: reading.difference.nanoseconds, error: Double(reading.error.nanoseconds))
        if reading.isSteered != isSteered { samples = [] }
        isSteered = reading.isSteered
        if let line = line(limits) {
            guard new.at > line.at else { return }
            let age = Double(new.at &- line.at)
            let off = Double(new.difference &- line.difference) - line.slope * age
            // 20 ns: rounding, and the kernel's own, which steps its multiplier from tick to tick.
            if abs(off) > new.error + line.error + line.slopeError * age + 20 {
                changes += 1
                samples = isSteered ? samples.suffix(1) : []
            }
        }
        // The newest reading stays only when it is far enough from the one before.
        if samples.count >= 2, samples[samples.count - 1].at &- samples[samples.count - 2].at < Self.spacing {
            samples.removeLast()
        }
        samples.append(new)
        // Of an unsteered clock the first and the newest say all.
        if samples.count > 4 { samples.remove(at: isSteered ? 0 : 1) }
    }

    mutating func forget() { samples = [] }

    /// Nil as long as there was no reading.
    func line(_ limits: ClockLimits) -> Line? {
        guard let newest = samples.last else { return nil }
        var line = Line(
            at: newest.at, difference: newest.difference, error: newest.error, slope: 0, slopeError: limits.skew)
        let base = isSteered ? samples.dropLast().last { newest.at &- $0.at >= Self.spacing } : samples.first
        guard let base, base.at < newest.at else { return line }
        let length = Double(newest.at &- base.at)
        let slope = Double(newest.difference &- base.difference) / length
        let error = (newest.error + base.error) / length + (isSteered ? limits.steering : 0)
        guard error < limits.skew, abs(slope) < 0.2 else { return line }
        (line.slope, line.slopeError) = (slope, error)
        return line
    }
}
