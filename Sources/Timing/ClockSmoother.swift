/// A host's clock against the rig's after the fact: for each instant from the exchanges before and after it.
///
/// The facts and the polygon are those of `ClockEstimator`; with facts on both sides nothing is carried on, so neither a
/// change of the rate nor a pause of the exchanges has to be foreseen. Where the clocks did what is not in their nature (a
/// suspend, a reboot), the series is cut in two; between the last exchange before and the first after it nothing is known.
package struct ClockSmoother: Sendable {
    /// How far to both sides exchanges are used.
    private static let reach: Int64 = 32_000_000_000
    /// How far from its reference a mapping takes in how the clocks were steered.
    package static let span = Interval.milliseconds(1100)

    /// A stretch in which the clocks kept to their nature.
    private struct Stretch: Sendable {
        var exchanges: [OscillatorExchange] = []
        var plain: [ClockExchange<RigTime, HostTime>] = []
        var rig: SteeringSeries
        var host: SteeringSeries
        var isFollowed = true
        var first: Timestamp<RigTime>
        var last: Timestamp<RigTime>
    }

    private let limits: ClockLimits
    private var stretches: [Stretch] = []

    /// How often the clocks did what is not in their nature.
    package var breaks: Int { max(0, stretches.count - 1) }

    /// Takes all exchanges with one host, in any order; those that can't be are left out.
    package init(_ exchanges: [ClockExchange<RigTime, HostTime>], limits: ClockLimits = ClockLimits()) {
        self.limits = limits
        let sorted = exchanges.sorted { $0.sent < $1.sent }
        var estimator = ClockEstimator(limits: limits)
        var used: [ClockExchange<RigTime, HostTime>] = []
        for exchange in sorted {
            switch estimator.add(exchange) {
            case .impossible: continue
            case .used, .notNeeded: used.append(exchange)
            case .restarted:
                let begin = estimator.exchanges.first?.sent ?? exchange.sent
                append(used.filter { $0.sent < begin })
                used = used.filter { $0.sent >= begin } + [exchange]
            }
        }
        append(used)
    }

    /// The mapping around an instant; nil where nothing is known.
    ///
    /// Its bound holds as far as `span` to both sides. Before the first exchange and after the last it is carried on, and the
    /// assumption of `ClockEstimator` about the time between the last exchange and the instant applies.
    package func mapping(at instant: Timestamp<RigTime>) -> ClockMapping<RigTime, HostTime>? {
        guard let stretch = stretch(at: instant) else { return nil }
        guard stretch.isFollowed else { return plainMapping(stretch, at: instant) }
        let span = Self.span.nanoseconds
        guard let here = stretch.rig.line(around: instant.nanoseconds, span: span) else { return nil }
        let local = here.oscillator(at: instant.nanoseconds)
        guard let region = region(stretch, at: local.time), let skews = region.lines.skews,
            let offsets = region.lines.offsets(atAge: 0)
        else { return nil }
        let middle = Interval.seconds((offsets.lowerBound + offsets.upperBound) / 2e9).nanoseconds
        let remote = local.time &+ region.origin &+ middle
        // Where on the host's clock that is, roughly: its difference changes by a thousandth at most of what this errs.
        guard let rough = stretch.host.line(around: remote &+ stretch.host.origin, span: span),
            let there = stretch.host.line(around: rough.clock(at: remote).time, span: span)
        else { return nil }
        let clock = there.clock(at: remote)
        let half = (offsets.upperBound - offsets.lowerBound) / 2
        let skew = (skews.lowerBound + skews.upperBound) / 2e9
        return ClockMapping(
            reference: instant,
            offset: Interval(nanoseconds: clock.time) - Interval(nanoseconds: instant.nanoseconds),
            skew: (1 - here.slope) * (1 + skew) / (1 - there.slope) - 1,
            bound: .seconds((half + (local.error + clock.error) * 1.003) / 1e9) + .nanoseconds(3),
            skewBound: ((skews.upperBound - skews.lowerBound) / 2e9 + limits.wander * Self.span.seconds) * 1.003)
    }

    /// A mapping for each second from one instant to another, where something is known.
    package func series(from start: Timestamp<RigTime>, to end: Timestamp<RigTime>) -> [ClockMapping<RigTime, HostTime>]
    {
        var instants: [Timestamp<RigTime>] = []
        var instant = start
        // A day at most.
        while instants.count < 86_400 {
            instants.append(min(instant, end))
            if instant >= end { break }
            instant += .milliseconds(1000)
        }
        return series(at: instants).compactMap { $0 }
    }

    /// The mappings around some instants; nil where nothing is known.
    ///
    /// The bound of each holds as far as the others of the series reach, and not only within `span`: where the clocks'
    /// rates were changed in the meantime, the bound of the skew takes that in.
    package func series(at instants: [Timestamp<RigTime>]) -> [ClockMapping<RigTime, HostTime>?] {
        let found = instants.map { mapping(at: $0) }
        let skews = found.compactMap { $0?.skew }
        guard let low = skews.min(), let high = skews.max() else { return found }
        return found.map { mapping in
            guard var mapping else { return nil }
            // A slope is that of 2.2 s; what changed for d seconds of it shows by d / 2.2, and counts from 1.1 s on.
            mapping.skewBound += 2.2 * max(high - mapping.skew, mapping.skew - low)
            return mapping
        }
    }

    // MARK: Private

    private mutating func append(_ exchanges: [ClockExchange<RigTime, HostTime>]) {
        guard let first = exchanges.first, let last = exchanges.last else { return }
        var stretch = Stretch(
            rig: SteeringSeries(limits: limits), host: SteeringSeries(limits: limits), first: first.sent,
            last: exchanges.map(\.received).max() ?? last.received)
        stretch.isFollowed = exchanges.allSatisfy(\.isFollowed)
        guard stretch.isFollowed else {
            stretch.plain = exchanges
            return stretches.append(stretch)
        }
        stretch.exchanges = exchanges.map { OscillatorExchange($0, limits: limits) }
        for exchange in exchanges {
            if let reading = exchange.localDiscipline { stretch.rig.add(reading, at: exchange.sent.nanoseconds) }
            if let reading = exchange.remoteDiscipline { stretch.host.add(reading, at: exchange.answered.nanoseconds) }
        }
        stretches.append(stretch)
    }

    private func stretch(at instant: Timestamp<RigTime>) -> Stretch? {
        if let inside = stretches.first(where: { $0.first <= instant && instant <= $0.last }) { return inside }
        guard let first = stretches.first, let last = stretches.last else { return nil }
        if instant < first.first { return first }
        return instant > last.last ? last : nil
    }

    private func region(_ stretch: Stretch, at reference: Int64) -> (origin: Int64, lines: FeasibleLines)? {
        let all = stretch.exchanges
        guard !all.isEmpty else { return nil }
        var (low, high) = (0, all.count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].sent < reference { low = middle + 1 } else { high = middle }
        }
        let nearest = all[min(low, all.count - 1)]
        let origin = nearest.upper
        var lines = FeasibleLines(around: nearest, at: reference, origin: origin, limits: limits)
        lines.cut(nearest, at: reference, origin: origin, limits: limits)
        // From the nearest to the farthest on each side; always some, however far they are.
        var (back, forth) = (low - 1, low)
        var count = 0
        while back >= 0 || forth < all.count {
            let (past, future) = (
                back >= 0 ? reference &- all[back].sent : .max, forth < all.count ? all[forth].sent &- reference : .max
            )
            if min(past, future) > Self.reach, count >= 4 { break }
            let index = past <= future ? back : forth
            lines.cut(all[index], at: reference, origin: origin, limits: limits)
            if past <= future { back -= 1 } else { forth += 1 }
            count += 1
        }
        return lines.isEmpty ? nil : (origin, lines)
    }

    /// Without readings of the steering nothing is known of a rate but its limit.
    private func plainMapping(
        _ stretch: Stretch, at instant: Timestamp<RigTime>
    ) -> ClockMapping<RigTime, HostTime>? {
        guard let origin = stretch.plain.first?.forward else { return nil }
        var (low, high) = (-Double.infinity, Double.infinity)
        let error = Double(limits.stampError.nanoseconds)
        for exchange in stretch.plain {
            let before = Double((instant - exchange.sent).magnitude.nanoseconds)
            let after = Double((instant - exchange.received).magnitude.nanoseconds)
            high = min(high, Double(exchange.forward &- origin) + limits.skew * before + error)
            low = max(low, Double(exchange.backward &- origin) - limits.skew * after - error)
        }
        guard low <= high else { return nil }
        return ClockMapping(
            reference: instant, offset: Interval(nanoseconds: origin) + .seconds((low + high) / 2e9), skew: 0,
            bound: .seconds((high - low) / 2e9) + .nanoseconds(2), skewBound: limits.skew)
    }
}
