/// The affine map from one clock to another, with the bound of its error.
///
///     target = source + offset + skew × (source − reference)
///     |error| ≤ bound + skewBound × |source − reference|
package struct ClockMapping<Source: ClockDomain, Target: ClockDomain>: Sendable, Hashable, Codable {
    /// The source instant at which `offset` and `bound` were found.
    package var reference: Timestamp<Source>

    /// Target minus source at the reference.
    package var offset: Interval

    /// Relative rate of the target clock against the source clock, minus one (1e-6 is 1 ppm).
    package var skew: Double

    /// The proved limit of the error at the reference.
    package var bound: Interval

    /// The proved limit of the error of `skew`.
    package var skewBound: Double

    package init(
        reference: Timestamp<Source>, offset: Interval, skew: Double, bound: Interval, skewBound: Double
    ) {
        self.reference = reference
        self.offset = offset
        self.skew = skew
        self.bound = bound
        self.skewBound = skewBound
    }

    package func map(_ instant: Timestamp<Source>) -> Timestamp<Target> {
        let age = instant - reference
        let bent = Interval.seconds(age.seconds * skew)
        return Timestamp(nanoseconds: instant.nanoseconds) + offset + bent
    }

    /// The limit of the error of `map` at an instant; it grows on both sides of the reference.
    package func bound(at instant: Timestamp<Source>) -> Interval {
        let age = (instant - reference).magnitude
        return bound + Interval.seconds(age.seconds * skewBound) + .nanoseconds(1)
    }

    /// The map back.
    ///
    /// With e for the error of this map at the true source instant x, the map back errs by |e| / (1 + skew), and x itself
    /// is only known to that error; solved for it, both parts of the bound are divided by (1 + skew − skewBound).
    package var inverse: ClockMapping<Target, Source> {
        let rate = 1 + skew
        let worst = max(rate - skewBound, 0.5)
        return ClockMapping<Target, Source>(
            reference: map(reference), offset: -offset,
            skew: -skew / rate, bound: .seconds(bound.seconds / worst) + .nanoseconds(1),
            skewBound: skewBound / (rate * worst))
    }
}
