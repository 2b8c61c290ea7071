/// How one host's clock runs against the clock that all hosts of a job are brought to.
package struct HostTimeline: Sendable, Hashable {
    /// A place where the offset is known.
    package struct Knot: Sendable, Hashable {
        /// ns of the host's clock.
        package var host: Int64
        /// Host minus common clock, ns.
        package var offset: Int64
        /// Relative rate of the host's clock against the common one, minus one.
        package var skew: Double
        /// The limit of the error of `offset`, ns; nil when nobody has proved one.
        package var bound: Int64?
        /// The limit of the error of `skew`; nil when nobody has proved one, so that the bound holds here alone.
        package var skewBound: Double?

        package init(host: Int64, offset: Int64, skew: Double, bound: Int64? = nil, skewBound: Double? = nil) {
            (self.host, self.offset, self.skew) = (host, offset, skew)
            (self.bound, self.skewBound) = (bound, skewBound)
        }

        /// The limit of the error at another instant, by this knot alone.
        func bound(at instant: Int64) -> Int64? {
            guard let bound else { return nil }
            if instant == host { return bound }
            return skewBound.map { bound + HostTimeline.whole(Double(instant - host).magnitude * $0) + 1 }
        }
    }

    /// Rising in host time; empty when the host's clock is the common one.
    private let knots: [Knot]

    package static let identity = HostTimeline()

    private init() { knots = [] }

    /// Sorts the knots; nil when they contradict each other: a clock's rate is within 1 % of another's.
    package init?(_ knots: [Knot]) {
        guard !knots.isEmpty, knots.allSatisfy({ $0.skew.magnitude < 0.01 }) else { return nil }
        let sorted = knots.sorted { ($0.host, $0.bound ?? .max) < ($1.host, $1.bound ?? .max) }
        var kept: [Knot] = []
        for knot in sorted {
            // Two for one instant: the one with the smaller bound came first.
            if let last = kept.last, last.host == knot.host { continue }
            kept.append(knot)
        }
        kept = HostTimeline.best(HostTimeline.best(kept).reversed()).reversed()
        for (a, b) in zip(kept, kept.dropFirst()) {
            let (bend, overflow) = b.offset.subtractingReportingOverflow(a.offset)
            let allowed = Double(b.host - a.host) * 0.01 + Double(a.bound ?? 0) + Double(b.bound ?? 0)
            guard !overflow, Double(bend).magnitude <= allowed else { return nil }
        }
        self.knots = kept
    }

    /// Leaves out each knot that the best one before it beats at the knot's own instant.
    ///
    /// So the first rough exchanges of a take don't spoil what later ones have proved.
    private static func best(_ knots: [Knot]) -> [Knot] {
        var kept: [Knot] = []
        for knot in knots {
            if let last = kept.last, let reached = last.bound(at: knot.host), reached < knot.bound ?? .max { continue }
            kept.append(knot)
        }
        return kept
    }

    /// An instant of the host's clock on the common clock, ns.
    package func common(_ host: Int64) -> Int64 {
        let (value, overflow) = host.subtractingReportingOverflow(offset(at: host))
        return overflow ? (host < 0 ? .min : .max) : value
    }

    /// Host minus common clock at an instant of the host's clock.
    package func offset(at host: Int64) -> Int64 {
        guard let (a, b) = span(host) else { return 0 }
        let distance = Double(host - a.host)
        guard let b else { return a.offset + HostTimeline.whole(distance * a.skew / (1 + a.skew)) }
        // Only the small part goes through a Double.
        return a.offset + HostTimeline.whole(Double(b.offset - a.offset) * distance / Double(b.host - a.host))
    }

    /// The limit of the error of `common` at an instant of the host's clock, ns; nil when it isn't known.
    package func bound(at host: Int64) -> Int64? {
        guard let (a, b) = span(host) else { return 0 }
        guard let b else { return a.bound(at: host) }
        guard let bound = a.bound, let other = b.bound else { return nil }
        return max(bound, other) + 1
    }

    /// The knots around an instant; one alone outside of them.
    private func span(_ host: Int64) -> (Knot, Knot?)? {
        guard let first = knots.first, let last = knots.last else { return nil }
        if host <= first.host { return (first, nil) }
        if host >= last.host { return (last, nil) }
        var low = 0
        var high = knots.count - 1
        while high - low > 1 {
            let middle = (low + high) / 2
            if knots[middle].host <= host { low = middle } else { high = middle }
        }
        return (knots[low], knots[high])
    }

    private static func whole(_ value: Double) -> Int64 {
        value.magnitude < 4e18 ? Int64(value.rounded()) : (value < 0 ? -(1 << 61) : 1 << 61)
    }
}
