internal import Glibc
package import Protocol
package import Timing

/// What the network says of two hosts' clocks: the second's time minus the first's, and a bound that always holds.
package struct ClockStatement: Sendable, Hashable {
    package var first: HostID
    package var second: HostID
    package var offset: Interval
    package var bound: Interval

    package init(first: HostID, second: HostID, offset: Interval, bound: Interval) {
        (self.first, self.second, self.offset, self.bound) = (first, second, offset, bound)
    }

    /// From the mappings of the coordinator's time to both hosts', at one instant.
    package init(
        first: (HostID, ClockMapping<RigTime, HostTime>), second: (HostID, ClockMapping<RigTime, HostTime>),
        at instant: Timestamp<RigTime>
    ) {
        self.init(
            first: first.0, second: second.0, offset: second.1.map(instant) - first.1.map(instant),
            bound: second.1.bound(at: instant) + first.1.bound(at: instant))
    }
}

/// Compares the network's clocks with the sound's, pair by pair.
package struct AcousticWitness: Sendable {
    package enum Opinion: String, Sendable, Hashable, Codable {
        case agree, disagree
        /// Nothing was heard, or what was heard says too little.
        case cannotSay = "cannot_say"
    }

    package struct Finding: Sendable, Hashable, CustomStringConvertible {
        package var first: HostID
        package var second: HostID
        package var opinion: Opinion
        package var network: Interval
        package var networkBound: Interval
        /// The sound's offset and uncertainty (one standard deviation); nil when there is none.
        package var sound: Interval?
        package var soundUncertainty: Interval?
        /// Network minus sound: for a one-way chirp, the distance to the interval that is possible.
        package var difference: Interval?
        /// What the difference may be.
        package var limit: Interval?
        package var oneWay: Bool

        package var description: String {
            let pair = "\(first) and \(second)"
            guard let difference, let limit else { return "\(pair): no chirp of one was heard by the other" }
            let how = oneWay ? "heard one way only (2.9 ms for each metre)" : "heard both ways"
            let figures = "network and sound differ by \(text(difference)), allowed is \(text(limit)); \(how)"
            return switch opinion {
            case .agree: "\(pair): clocks agree, \(figures)"
            case .disagree: "\(pair): clocks disagree, \(figures); check the time service of both hosts"
            case .cannotSay: "\(pair): the sound says too little, \(figures)"
            }
        }

        private func text(_ interval: Interval) -> String {
            let us = (interval.nanoseconds.magnitude + 500) / 1000
            return us < 10_000 ? "\(us) µs" : "\(us / 1000) ms"
        }
    }

    /// Standard deviations of the sound that are allowed for: one pair in 1.7 million is farther off by chance.
    package var deviations = 5.0
    /// What no statistic shows: the difference of two microphones' delays, and the temperature's effect on a distance.
    package var systematic = Interval.milliseconds(1)
    /// A limit above this says nothing about a lie of 50 ms.
    package var widest = Interval.milliseconds(25)

    package init() {}

    package func compare(_ clock: ClockStatement, with sound: PairStatement?) -> Finding {
        var finding = Finding(
            first: clock.first, second: clock.second, opinion: .cannotSay, network: clock.offset,
            networkBound: clock.bound, oneWay: false)
        guard let sound = match(sound, clock) else { return finding }
        finding.sound = sound.offset
        finding.soundUncertainty = sound.offsetUncertainty
        let (difference, spread): (Interval, Interval)
        switch sound.kind {
        case .twoWay:
            difference = clock.offset - sound.offset
            spread = scaled(sound.offsetUncertainty)
        case .oneWay(let earliest, let latest):
            finding.oneWay = true
            difference =
                clock.offset < earliest
                ? clock.offset - earliest : clock.offset > latest ? clock.offset - latest : .zero
            // The interval holds the distance; skew and arrival are what is left, within the systematic part.
            spread = .milliseconds(1)
        }
        let limit = clock.bound.magnitude + spread + systematic
        (finding.difference, finding.limit) = (difference, limit)
        if difference.magnitude > limit {
            finding.opinion = .disagree
        } else {
            finding.opinion = limit > widest ? .cannotSay : .agree
        }
        return finding
    }

    /// Every pair that the network knows.
    package func compare(_ clocks: [ClockStatement], with solution: TwoWaySolution?) -> [Finding] {
        clocks.map { compare($0, with: solution?.pair($0.first, $0.second)) }
    }

    private func match(_ sound: PairStatement?, _ clock: ClockStatement) -> PairStatement? {
        guard let sound else { return nil }
        if sound.first == clock.first, sound.second == clock.second { return sound }
        return sound.first == clock.second && sound.second == clock.first ? sound.reversed : nil
    }

    private func scaled(_ deviation: Interval) -> Interval { .seconds(deviation.seconds * deviations) }
}
