/// What rig time is on a host's clock, from exchanges with four stamps: offset, skew, and a bound that holds.
///
/// **The bound.** Write θ(t) for host clock minus rig clock at rig time t. A datagram can't arrive before it was sent, and
/// a clock never runs backwards. So each exchange gives two facts, whatever the path did to it:
///
///     θ(sent)     ≤ arrived − sent          the host read `arrived` after the rig read `sent`
///     θ(received) ≥ answered − received     the host read `answered` before the rig read `received`
///
/// Their distance is the delay; the middle of one exchange alone is therefore right to half its delay. Around an instant t
/// the clocks follow a line, θ(x) = a + s·(x − t), to within ½·wander·(x − t)². Each fact then rules out a half-plane of
/// (a, s), and |s| ≤ `skewLimit` is where we begin. What no exchange rules out is a convex polygon; the true (a, s) is in
/// it. Its width in a is twice the bound at t, its height in s is twice the skew's bound: that is half the least delay,
/// plus the uncertainty of the skew times the age, found jointly.
///
/// **What it assumes.**
/// 1. `arrived` and `received` are read no earlier than the datagram came in, and `sent` and `answered` no later than it
///    went out, to within `stampError`. It is our own code at both ends that reads them, and it is on the safe side.
/// 2. |skew| ≤ `skewLimit`.
/// 3. The skew changes by at most `wander` a second: temperature, not a hand at the clock. A daemon that changes the
///    clock's rate at once, a suspend and a reboot break this. They are found by the next exchange which no line can
///    explain together with the older ones: those are then forgotten (`restarts` counts it).
/// The asymmetry of the path is not assumed away: it is inside of the bound.
package struct ClockEstimator: Sendable {
    /// The limits of what clocks do; see the assumptions above.
    package struct Limits: Sendable, Hashable {
        /// The largest relative rate error, as a ratio: 1000 ppm and some room.
        package var skew = 1.05e-3
        /// The largest change of the skew in a second, in 1/s: 0.05 ppm a second, a PC that heats up by 10 °C a minute.
        package var wander = 5e-8
        /// What a stamp can be wrong by in the unsafe direction: the clocks of two cores, and rounding.
        package var stampError = Interval.nanoseconds(100)
        /// How far from its reference a mapping's bound takes the wander in; ask for a new mapping beyond it.
        package var horizon = Interval.milliseconds(10_000)

        package init() {}
    }

    /// What became of an exchange.
    package enum Outcome: Sendable, Hashable {
        case used
        /// A better one of the same slot is known.
        case notNeeded
        /// Its stamps contradict each other or leave the range of any clock.
        case impossible
        /// No line explains it together with the older ones, and those were forgotten.
        case restarted
    }

    package let limits: Limits

    /// How often the clocks were found to have done something that is not in their nature.
    package private(set) var restarts = 0

    private var filter: ClockFilter<RigTime, HostTime>

    package init(limits: Limits = Limits(), filter: ClockFilter<RigTime, HostTime> = ClockFilter()) {
        self.limits = limits
        self.filter = filter
    }

    /// The newest exchange that is used.
    package var newest: ClockExchange<RigTime, HostTime>? { filter.exchanges.last }

    /// The least delay of the exchanges in use: twice the bound of that exchange alone.
    package var leastDelay: Interval? { filter.leastDelay }

    /// The exchanges in use, oldest first.
    package var exchanges: [ClockExchange<RigTime, HostTime>] { filter.exchanges }

    /// Takes an exchange in.
    @discardableResult
    package mutating func add(_ exchange: ClockExchange<RigTime, HostTime>) -> Outcome {
        guard isPossible(exchange) else { return .impossible }
        guard filter.add(exchange) else { return .notNeeded }
        guard region(at: exchange.received).isEmpty else { return .used }
        // The longest half of the newest that agrees; one exchange never contradicts itself.
        repeat {
            filter.keepNewest(filter.exchanges.count / 2)
        } while filter.exchanges.count > 1
            && region(at: exchange.received).isEmpty
        restarts += 1
        return .restarted
    }

    /// The mapping with its bound, as it is known for an instant; nil as long as there was no exchange.
    ///
    /// Its reference is the instant itself, so the bound at the reference is the sharpest that there is; the instant may
    /// lie in the future.
    package func mapping(at instant: Timestamp<RigTime>) -> ClockMapping<RigTime, HostTime>? {
        guard let newest else { return nil }
        var region = region(at: instant)
        if region.isEmpty {
            // The assumptions fail far from the data: what the newest exchange alone says needs only the skew's limit.
            region = self.region(at: instant, from: [newest])
        }
        guard let offsets = region.offsets, let skews = region.skews else { return nil }
        let middle = (offsets.lowerBound + offsets.upperBound) / 2
        let half = (offsets.upperBound - offsets.lowerBound) / 2
        // 2 ns: the rounding of the offset and of the floating numbers.
        return ClockMapping(
            reference: instant, offset: newest.offset + .seconds(middle / 1e9),
            skew: (skews.lowerBound + skews.upperBound) / 2e9,
            bound: .seconds(half / 1e9) + .nanoseconds(2),
            skewBound: (skews.upperBound - skews.lowerBound) / 2e9 + limits.wander * limits.horizon.seconds / 2)
    }

    /// The state at an instant: exchanges older than 3 s are holdover; a skew known to 20 ppm is locked.
    package func state(at instant: Timestamp<RigTime>) -> ClockState {
        guard let newest, let mapping = mapping(at: newest.received) else { return .unsynchronized }
        if instant - newest.received > .milliseconds(3000) { return .holdover }
        return mapping.skewBound <= 20e-6 ? .locked : .converging
    }

    // MARK: Private

    /// Stamps that can be: in order on each clock, no faster than light, and within ±146 years, so that no difference
    /// overflows.
    private func isPossible(_ exchange: ClockExchange<RigTime, HostTime>) -> Bool {
        let all = [
            exchange.sent.nanoseconds, exchange.arrived.nanoseconds, exchange.answered.nanoseconds,
            exchange.received.nanoseconds,
        ]
        return all.allSatisfy { $0.magnitude < 1 << 61 } && exchange.received >= exchange.sent
            && exchange.answered >= exchange.arrived && exchange.delay >= -(limits.stampError * 2)
    }

    private func region(at instant: Timestamp<RigTime>) -> FeasibleLines { region(at: instant, from: filter.exchanges) }

    private func region(
        at instant: Timestamp<RigTime>, from exchanges: [ClockExchange<RigTime, HostTime>]
    ) -> FeasibleLines {
        guard let newest = exchanges.last else { return FeasibleLines(offsets: 0...0, skews: 0...0) }
        let skew = limits.skew * 1e9
        let base = newest.offset.nanoseconds
        let reach = age(of: newest.sent, at: instant).magnitude + age(of: newest.received, at: instant).magnitude
        // Holds the cuts of the newest exchange with room to spare.
        let half =
            Double(newest.delay.magnitude.nanoseconds) + error(atAge: reach) + skew * reach + 1000
        var lines = FeasibleLines(offsets: -half...half, skews: -skew...skew)
        // From the newest to the oldest: the first cuts leave the least to do for the others.
        for exchange in exchanges.reversed() {
            let (before, after) = (age(of: exchange.sent, at: instant), age(of: exchange.received, at: instant))
            let upper = exchange.arrived.nanoseconds - exchange.sent.nanoseconds - base
            let lower = exchange.answered.nanoseconds - exchange.received.nanoseconds - base
            lines.require(atMost: Double(upper) + error(atAge: before), at: before)
            lines.require(atLeast: Double(lower) - error(atAge: after), at: after)
        }
        return lines
    }

    private func age(of stamp: Timestamp<RigTime>, at instant: Timestamp<RigTime>) -> Double {
        (stamp - instant).seconds
    }

    /// How far a true clock can be from its line at an age, and the stamp from the truth, in ns.
    private func error(atAge age: Double) -> Double {
        limits.wander * age * age / 2 * 1e9 + Double(limits.stampError.nanoseconds)
    }
}
