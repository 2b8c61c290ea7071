/// How one clock stood to its oscillator over a stretch of time, from the readings of all exchanges.
///
/// Between two readings the clock is taken to follow their chord. A daemon that changes the rate between them makes it bend
/// away from that; the chords on both sides say by how much it can have done so.
struct SteeringSeries: Sendable {
    private struct Sample {
        var at: Int64
        var difference: Int64
        var error: Double
    }

    private var samples: [Sample] = []
    private var isSteered = false
    private let limits: ClockLimits

    /// Readings nearer to each other than this say nothing of the rate.
    private static let spacing: Int64 = 200_000_000

    init(limits: ClockLimits) { self.limits = limits }

    /// Takes a reading in; in order of time.
    mutating func add(_ reading: DisciplineReading, at clock: Int64) {
        isSteered = isSteered || reading.isSteered
        let new = Sample(
            at: clock, difference: reading.difference.nanoseconds, error: Double(reading.error.nanoseconds))
        guard let last = samples.last, new.at &- last.at < Self.spacing else { return samples.append(new) }
        // Of a burst the quickest reading.
        let isAlone = samples.count < 2 || new.at &- samples[samples.count - 2].at >= Self.spacing
        if new.error < last.error, isAlone, new.at > last.at { samples[samples.count - 1] = new }
    }

    /// The line that the clock follows from `span` before an instant to `span` after it, to within its error; nil as long
    /// as there was no reading.
    func line(around clock: Int64, span: Int64) -> DisciplineTrack.Line? {
        guard !samples.isEmpty else { return nil }
        let (before, here, after) = (value(clock &- span), value(clock), value(clock &+ span))
        let slope = (after.difference - before.difference) / Double(2 * span)
        let base = here.difference
        func off(_ at: Int64, _ difference: Double) -> Double { abs(difference - base - slope * Double(at &- clock)) }
        var worst = max(here.error, off(clock &- span, before.difference) + before.error)
        worst = max(worst, off(clock &+ span, after.difference) + after.error)
        var most = 0.0
        // The corners of the chords are where they are farthest from the line.
        for index in gap(clock &- span)...gap(clock &+ span) where samples.indices.contains(index) {
            let sample = samples[index]
            guard (sample.at &- clock).magnitude <= span.magnitude else { continue }
            worst = max(worst, off(sample.at, relative(sample)) + sample.error)
            most = max(most, bend(index))
        }
        worst += max(most, bend(gap(clock &- span)))
        return DisciplineTrack.Line(
            at: clock, difference: origin &+ Int64(base.rounded()), error: worst + 1, slope: slope, slopeError: 0)
    }

    // MARK: Private

    /// The difference at the first reading, about which the others are.
    var origin: Int64 { samples.first?.difference ?? 0 }

    private func relative(_ sample: Sample) -> Double { Double(sample.difference &- origin) }

    /// The chord at an instant, relative to `origin`; carried on at the ends.
    private func value(_ clock: Int64) -> (difference: Double, error: Double) {
        let left = gap(clock)
        guard samples.count > 1 else {
            let age = Double((clock &- samples[0].at).magnitude)
            return (0, samples[0].error + limits.skew * age)
        }
        let index = min(max(left, 0), samples.count - 2)
        let (a, b) = (samples[index], samples[index + 1])
        let slope = Double(b.difference &- a.difference) / Double(b.at &- a.at)
        let part = relative(a) + slope * Double(clock &- a.at)
        var error = max(a.error, b.error)
        if left < 0 || left > samples.count - 2 {
            let age = left < 0 ? a.at &- clock : clock &- b.at
            let rate = (a.error + b.error) / Double(b.at &- a.at) + (isSteered ? limits.steering : 0)
            error += rate * Double(max(age, 0))
        }
        return (part, error)
    }

    /// The index of the last sample that isn't after an instant; -1 before the first.
    private func gap(_ clock: Int64) -> Int {
        var (low, high) = (0, samples.count)
        while low < high {
            let middle = (low + high) / 2
            if samples[middle].at <= clock { low = middle + 1 } else { high = middle }
        }
        return low - 1
    }

    private func slope(_ index: Int) -> (rate: Double, error: Double)? {
        guard index >= 0, index + 1 < samples.count else { return nil }
        let (a, b) = (samples[index], samples[index + 1])
        let length = Double(b.at &- a.at)
        return (Double(b.difference &- a.difference) / length, (a.error + b.error) / length)
    }

    /// How far the clock can be from the chord that begins at a sample, when its rate was changed once or twice under it.
    private func bend(_ index: Int) -> Double {
        guard let here = slope(index) else { return 0 }
        let length = Double(samples[index + 1].at &- samples[index].at)
        func change(_ other: Int) -> Double {
            guard let there = slope(other) else { return isSteered ? limits.steering : 0 }
            // What the readings' own errors feign isn't a change of the rate.
            return max(0, abs(there.rate - here.rate) - here.error - there.error)
        }
        return length / 2 * (change(index - 1) + change(index + 1))
    }
}
