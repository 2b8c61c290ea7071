/// The line between a sound card's sample counter and host time, fitted to readings of both as they come.
///
/// Pure; microseconds of work once a second, and memory for `window` seconds.
///
/// A driver reads its position at an interrupt and stamps what it read, so a reading says "by this instant the card had
/// captured so many frames": it may be late, by an interrupt, a USB transfer or a timer's tick, and never early. So of each
/// second only the earliest reading counts, and the line is fitted to those by least squares with Huber's weights. What a
/// reading is late by at all times can't be seen from here; it belongs to the card's latency.
///
/// A card's rate is not constant for hours: it is a crystal that warms up. The line follows the last two minutes, and a step
/// in the rate, or of the counter itself, begins a new line.
package struct SampleClock: Sendable {
    /// What a reading changed.
    package enum Change: Sendable, Hashable {
        /// The rate is another one since some seconds.
        case rate
        /// Counter and time have moved against each other at once: positive when frames are missing from the counter.
        case jump(Interval)
    }

    /// The card's rate against the host's clock.
    package struct Skew: Sendable, Hashable {
        /// Parts per million; positive when the card is fast.
        package var ppm: Double
        /// Three standard errors, ppm.
        package var uncertainty: Double
    }

    private struct Point: Sendable {
        /// Seconds of the card's nominal time since the origin.
        var x: Double
        /// How much later than that it was on the host's clock, seconds.
        var y: Double
        /// Latest minus earliest reading of its second.
        var width: Double
    }

    private struct Line: Sendable {
        var middle: Double
        var value: Double
        var slope: Double
        /// Variances of `value` and `slope`.
        var valueVariance: Double
        var slopeVariance: Double
        /// Standard deviation of the points about the line, seconds.
        var scale: Double

        func at(_ x: Double) -> Double { value + slope * (x - middle) }
        func deviation(at x: Double) -> Double {
            (valueVariance + (x - middle) * (x - middle) * slopeVariance).squareRoot()
        }
    }

    /// Seconds of which the earliest reading is kept, each.
    package static let window = 120
    /// One standard deviation of a crystal before anything is known of it; ±1000 ppm is three of them.
    private static let priorSlope = 333e-6
    private static let leastScale = 1e-7

    private let rate: Int64
    private var origin: (position: Int64, host: Timestamp<HostTime>)?
    private var points: [Point] = []
    private var current: Point?
    /// Where the second of `current` began.
    private var second = 0.0
    private var line: Line?
    /// How the last seconds lay against the line that was made without them.
    private var surprises: [Double] = []
    /// Of what is known of the slope from before a restart.
    private var prior = (slope: 0.0, deviation: priorSlope)
    /// For the mean over a stream that is longer than the window.
    private var begin: (x: Double, y: Double, deviation: Double)?
    private var lastX = 0.0
    /// New lines since the begin.
    package private(set) var changes = 0
    /// Readings so far.
    package private(set) var count = 0

    /// - Parameter rate: nominal frames a second.
    package init(rate: Int) { self.rate = Int64(max(rate, 1)) }

    // MARK: Readings

    /// Takes a reading: so many frames had been captured by an instant.
    package mutating func take(position: Int64, at host: Timestamp<HostTime>) -> Change? {
        if origin == nil { origin = (position, host) }
        let (x, y) = place(position, host)
        guard abs(x) < 1e8, abs(y) < 1e6 else { return nil }
        count += 1
        lastX = x
        guard var current else {
            (self.current, second) = (Point(x: x, y: y, width: 0), x)
            refit()
            return nil
        }
        var change: Change?
        if x - second >= 1 || x < second {
            change = close(current)
            (self.current, second) = (Point(x: x, y: y, width: 0), x)
        } else {
            let slope = line?.slope ?? prior.slope
            let ahead = (y - slope * (x - current.x)) - current.y
            if ahead < 0 {
                (current.x, current.y) = (x, y)
                current.width -= ahead
            } else {
                current.width = max(current.width, ahead)
            }
            self.current = current
        }
        if points.count < 3 { refit() }
        return change
    }

    /// After an overrun the counter begins again: the rate is what it was, the offset isn't.
    package mutating func restart() {
        if let line {
            prior = (line.slope, min(Self.priorSlope, line.slopeVariance.squareRoot() * 3 + 5e-6))
        }
        (origin, points, current, line, surprises, begin, lastX) = (nil, [], nil, nil, [], nil, 0)
    }

    private mutating func close(_ point: Point) -> Change? {
        defer { refit() }
        let surprise = line.map { point.y - $0.at(point.x) }
        points.append(point)
        if points.count > Self.window { points.removeFirst() }
        guard let surprise, let line, points.count > 8 else { return nil }
        surprises.append(surprise)
        if surprises.count > 3 { surprises.removeFirst() }
        guard surprises.count == 3 else { return nil }
        let limit = max(4 * line.scale, 20e-6)
        let isAbove = surprises.allSatisfy { $0 > limit / 2 } && surprises.sorted()[1] > limit
        let isBelow = surprises.allSatisfy { $0 < -limit / 2 } && surprises.sorted()[1] < -limit
        guard isAbove || isBelow else { return nil }
        // A slope's error grows with each second, a jump's is there at once.
        let isJump = abs(surprises[0]) > 1e-3 && abs(surprises[2] - surprises[0]) < abs(surprises[0]) / 2
        let jump = Interval.seconds(surprises[0])
        prior = (line.slope, isJump ? 5e-6 : 100e-6)
        points = Array(points.suffix(3))
        surprises = []
        begin = nil
        changes += 1
        return isJump ? .jump(jump) : .rate
    }

    // MARK: The line

    private mutating func refit() {
        var used = points
        if used.count < 3, let current { used.append(current) }
        guard !used.isEmpty else { return }
        var weights = [Double](repeating: 1, count: used.count)
        var fitted = fit(used, weights)
        for _ in 0..<3 where used.count >= 5 {
            let residuals = used.map { abs($0.y - fitted.at($0.x)) }
            // The median of |residual| is 0.6745 standard deviations.
            let scale = max(residuals.sorted()[residuals.count / 2] / 0.6745, Self.leastScale)
            weights = residuals.map { $0 <= 1.5 * scale ? 1 : 1.5 * scale / $0 }
            fitted = fit(used, weights)
        }
        line = fitted
        if begin == nil, points.count >= 10, let first = points.first {
            begin = (first.x, fitted.at(first.x), fitted.deviation(at: first.x))
        }
    }

    private func fit(_ points: [Point], _ weights: [Double]) -> Line {
        let total = weights.reduce(0, +)
        let middle = zip(points, weights).reduce(0) { $0 + $1.0.x * $1.1 } / total
        let mean = zip(points, weights).reduce(0) { $0 + $1.0.y * $1.1 } / total
        var (sxx, sxy) = (0.0, 0.0)
        for (point, weight) in zip(points, weights) {
            sxx += weight * (point.x - middle) * (point.x - middle)
            sxy += weight * (point.x - middle) * (point.y - mean)
        }
        // Few points say nothing of their own spread: that of the readings within a second stands in for it.
        let width = points.reduce(0) { max($0, $1.width) }
        var scale = max(width / 3, Self.leastScale)
        let free = sxx > 0 ? sxy / sxx : prior.slope
        if points.count >= 5 {
            let residuals = points.map { abs($0.y - mean - free * ($0.x - middle)) }.sorted()
            scale = max(residuals[residuals.count / 2] / 0.6745, Self.leastScale)
        }
        // The prior is one more observation of the slope.
        let (own, before) = (sxx / (scale * scale), 1 / (prior.deviation * prior.deviation))
        let slope = (free * own + prior.slope * before) / (own + before)
        let variance = points.count >= 5 ? scale * scale / total : scale * scale
        return Line(
            middle: middle, value: mean, slope: slope, valueVariance: variance, slopeVariance: 1 / (own + before),
            scale: scale)
    }

    private func place(_ position: Int64, _ host: Timestamp<HostTime>) -> (x: Double, y: Double) {
        guard let origin else { return (0, 0) }
        let nominal = nominal(position &- origin.position)
        return (nominal.seconds, ((host - origin.host) - nominal).seconds)
    }

    /// The nominal length of so many frames, exact to the nanosecond.
    private func nominal(_ frames: Int64) -> Interval {
        Interval.seconds(0) + Interval(nanoseconds: 1_000_000_000) * (frames / rate)
            + Interval(nanoseconds: frames % rate * 1_000_000_000 / rate)
    }

    // MARK: What it says

    /// When the frame with this number was captured, and one standard deviation of it; nil before the first reading.
    package func time(of position: Int64) -> (instant: Timestamp<HostTime>, deviation: Interval)? {
        guard let origin, let line else { return nil }
        let nominal = nominal(position &- origin.position)
        let x = nominal.seconds
        return (origin.host + nominal + .seconds(line.at(x)), .seconds(line.deviation(at: x)))
    }

    /// How far a reading is later than the line, negative when it is earlier; nil before the first one.
    package func lateness(of position: Int64, at host: Timestamp<HostTime>) -> Interval? {
        time(of: position).map { host - $0.instant }
    }

    /// The mean over the line so far; nil until 3 s of it are there.
    package var skew: Skew? {
        guard let line, let first = points.first, let last = points.last, last.x - first.x >= 2 else { return nil }
        let span = last.x - first.x
        var slope = line.slope
        var deviation = line.slopeVariance.squareRoot() + 0.7 * line.scale / span
        if let begin, lastX - begin.x > 2 * span {
            let length = last.x - begin.x
            slope = (line.at(last.x) - begin.y) / length
            deviation = (begin.deviation + line.deviation(at: last.x) + line.scale) / length
        }
        // A card that is fast has captured its frames sooner: a falling line.
        return Skew(ppm: -slope / (1 + slope) * 1e6, uncertainty: 3 * deviation * 1e6)
    }

    /// Standard deviation of each second's earliest reading about the line; nil until there are five.
    package var residual: Interval? { points.count >= 5 ? line.map { .seconds($0.scale) } : nil }
}
