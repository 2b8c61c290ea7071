/// What rig time is on a host's clock, from exchanges with four stamps: offset, skew, and a bound that holds.
///
/// **The bound.** Write θ(t) for host clock minus rig clock at rig time t. A datagram can't arrive before it was sent, and
/// a clock never runs backwards. So each exchange gives two facts, whatever the path did to it:
///
///     θ(sent)     ≤ arrived − sent          the host read `arrived` after the rig read `sent`
///     θ(received) ≥ answered − received     the host read `answered` before the rig read `received`
///
/// Their distance is the delay; the middle of one exchange alone is therefore right to half its delay.
///
/// *Oscillators.* Daemons change the rate of CLOCK_MONOTONIC at once. Therefore both ends tell with each exchange how far
/// their clock is from their oscillator (`DisciplineReading`), and the facts are moved onto the oscillators, which nobody
/// can steer. Around an instant t these follow a line, θ(x) = a + s·(x − t), to within ½·wander·(x − t)². Each fact then
/// rules out a half-plane of (a, s), and |s| ≤ `skew` is where we begin. What no exchange rules out is a convex polygon;
/// the true (a, s) is in it. Its width in a is twice the bound at t, its height in s is twice the skew's bound: that is half
/// the least delay, plus the uncertainty of the skew times the age, found jointly. For another instant the polygon is
/// sheared: a + s·Δ, to within ½·wander·Δ². The result is moved back onto the clocks by how they are steered now, and the
/// bound takes in what the readings of that can be wrong by.
///
/// *Without readings* (an end that can't give them) nothing is known of a rate but its limit: a fact loses `skew` × its
/// age, and the bound is what the newest exchanges leave.
///
/// **What it assumes.**
/// 1. `arrived` and `received` are read no earlier than the datagram came in, and `sent` and `answered` no later than it
///    went out, to within `stampError`. It is our own code at both ends that reads them, and it is on the safe side.
/// 2. |skew| of the oscillators ≤ `skew`, and a daemon steers by no more than that within one exchange.
/// 3. An oscillator's rate changes by at most `wander` a second: temperature.
/// 4. Between the last exchange and the instant that is asked for, a clock that nobody steers keeps its rate, and a steered
///    one changes it by `steering` at most. What goes beyond it is known from the next exchange on; `ClockSmoother`, which
///    has the exchanges on both sides of an instant, doesn't need this assumption.
/// A suspend, a reboot and the move of a virtual machine break 3. They are found by the next exchange which no line can
/// explain together with the older ones: those are then forgotten (`restarts` counts it).
/// The asymmetry of the path is not assumed away: it is inside of the bound.
///
/// The cost is two cuts of a polygon of about eight corners for an exchange, and once a second the same for all kept ones.
package struct ClockEstimator: Sendable {
    /// What became of an exchange.
    package enum Outcome: Sendable, Hashable {
        case used
        /// Better ones of the same slot are known.
        case notNeeded
        /// Its stamps contradict each other or leave the range of any clock.
        case impossible
        /// No line explains it together with the older ones, and those were forgotten.
        case restarted
    }

    /// The lines that are possible around an instant of the rig's oscillator.
    private struct Region: Sendable {
        var reference: Int64
        var origin: Int64
        var lines: FeasibleLines
    }

    package let limits: ClockLimits

    /// How often the clocks were found to have done something that is not in their nature.
    package private(set) var restarts = 0

    private var filter: ClockFilter<RigTime, HostTime>
    private var region: Region?
    private var rig = DisciplineTrack()
    private var host = DisciplineTrack()

    package init(limits: ClockLimits = ClockLimits(), filter: ClockFilter<RigTime, HostTime> = ClockFilter()) {
        self.limits = limits
        self.filter = filter
    }

    /// The newest exchange that is used.
    package var newest: ClockExchange<RigTime, HostTime>? { filter.exchanges.last }

    /// The least delay of the exchanges in use: twice the bound of that exchange alone.
    package var leastDelay: Interval? { filter.leastDelay }

    /// The exchanges in use, oldest first.
    package var exchanges: [ClockExchange<RigTime, HostTime>] { filter.exchanges }

    /// How often a daemon was found to have changed the rate of the host's clock.
    package var hostRateChanges: Int { host.changes }

    /// The rate of the host's clock against its own oscillator, minus one; nil as long as it isn't known.
    package var hostSteering: Double? {
        host.line(limits).flatMap { $0.slopeError < limits.skew ? $0.slope : nil }
    }

    /// Takes an exchange in.
    @discardableResult
    package mutating func add(_ exchange: ClockExchange<RigTime, HostTime>) -> Outcome {
        let new = OscillatorExchange(exchange, limits: limits)
        guard isPossible(exchange), new.isInRange else { return .impossible }
        if let newest, newest.isFollowed != exchange.isFollowed { forgetAll() }
        guard filter.add(exchange) else { return .notNeeded }
        follow(exchange)
        if var region, new.received >= region.reference, new.received &- region.reference <= 1_000_000_000 {
            region.lines.cut(new, at: region.reference, origin: region.origin, limits: limits)
            self.region = region
        } else {
            rebuild(at: new)
        }
        guard contradicts(exchange) else { return .used }
        // The longest half of the newest that agrees; one exchange never contradicts itself.
        repeat {
            filter.keepNewest(filter.exchanges.count / 2)
            rebuild(at: new)
        } while filter.exchanges.count > 1 && contradicts(exchange)
        restarts += 1
        rig.forget()
        host.forget()
        follow(exchange)
        return .restarted
    }

    /// The mapping with its bound, as it is known for an instant; nil as long as there was no exchange.
    ///
    /// Its reference is the instant itself, so the bound at the reference is the sharpest that there is; the instant may
    /// lie in the future.
    package func mapping(at instant: Timestamp<RigTime>) -> ClockMapping<RigTime, HostTime>? {
        guard let newest else { return nil }
        guard newest.isFollowed, let region, let here = rig.line(limits), let there = host.line(limits) else {
            return plainMapping(at: instant)
        }
        let local = here.oscillator(at: instant.nanoseconds)
        let age = seconds(local.time, region.reference)
        guard let offsets = region.lines.offsets(atAge: age), let skews = region.lines.skews else { return nil }
        let middle = Interval.seconds((offsets.lowerBound + offsets.upperBound) / 2e9).nanoseconds
        let remote = there.clock(at: local.time &+ region.origin &+ middle)
        let half = (offsets.upperBound - offsets.lowerBound) / 2 + limits.wander * age * age / 2 * 1e9
        let skew = (skews.lowerBound + skews.upperBound) / 2e9
        let skewBound =
            (skews.upperBound - skews.lowerBound) / 2e9 + here.slopeError + there.slopeError
            + limits.wander * (abs(age) + limits.horizon.seconds / 2)
        // 0.3 %: what the rates make of one another; 3 ns: the rounding of the offset and of the floating numbers.
        return ClockMapping(
            reference: instant, offset: Timestamp<HostTime>(nanoseconds: remote.time) - Timestamp(instant),
            skew: (1 - here.slope) * (1 + skew) / (1 - there.slope) - 1,
            bound: .seconds((half + (local.error + remote.error) * 1.003) / 1e9) + .nanoseconds(3),
            skewBound: skewBound * 1.003)
    }

    /// The state at an instant: exchanges older than 3 s are holdover; a skew known to 20 ppm is locked.
    package func state(at instant: Timestamp<RigTime>) -> ClockState {
        guard let newest else { return .unsynchronized }
        if instant - newest.received > .milliseconds(3000) { return .holdover }
        guard newest.isFollowed, let skews = region?.lines.skews else { return .converging }
        return skews.upperBound - skews.lowerBound <= 40_000 ? .locked : .converging
    }

    // MARK: Private

    /// Stamps that can be: in order on each clock, no faster than light, and within ±73 years, so that no difference
    /// overflows.
    private func isPossible(_ exchange: ClockExchange<RigTime, HostTime>) -> Bool {
        let all = [
            exchange.sent.nanoseconds, exchange.arrived.nanoseconds, exchange.answered.nanoseconds,
            exchange.received.nanoseconds,
        ]
        let readings = [exchange.localDiscipline, exchange.remoteDiscipline].compactMap { $0 }
        return all.allSatisfy { $0.magnitude < 1 << 60 } && exchange.received >= exchange.sent
            && exchange.answered >= exchange.arrived && exchange.delay >= -(limits.stampError * 2)
            && readings.allSatisfy { $0.error >= .zero && $0.difference.nanoseconds.magnitude < 1 << 60 }
    }

    private mutating func follow(_ exchange: ClockExchange<RigTime, HostTime>) {
        if let reading = exchange.localDiscipline { rig.add(reading, at: exchange.sent.nanoseconds, limits: limits) }
        if let reading = exchange.remoteDiscipline {
            host.add(reading, at: exchange.answered.nanoseconds, limits: limits)
        }
    }

    private mutating func forgetAll() {
        filter.keepNewest(0)
        region = nil
        rig.forget()
        host.forget()
    }

    private mutating func rebuild(at newest: OscillatorExchange) {
        let (reference, origin) = (newest.received, newest.upper)
        var lines = FeasibleLines(around: newest, at: reference, origin: origin, limits: limits)
        // From the newest to the oldest: the first cuts leave the least to do for the others.
        for exchange in filter.exchanges.reversed() where !lines.isEmpty {
            let one = OscillatorExchange(exchange, limits: limits)
            lines.cut(one, at: reference, origin: origin, limits: limits)
        }
        region = Region(reference: reference, origin: origin, lines: lines)
    }

    private func contradicts(_ exchange: ClockExchange<RigTime, HostTime>) -> Bool {
        guard exchange.isFollowed else {
            let range = plainRange(at: exchange.received.nanoseconds, origin: exchange.forward)
            return range.low > range.high
        }
        return region?.lines.isEmpty ?? false
    }

    /// What the facts leave when nothing is known of the rates but their limit; in ns from `origin`.
    private func plainRange(at instant: Int64, origin: Int64) -> (low: Double, high: Double) {
        var (low, high) = (-Double.infinity, Double.infinity)
        let error = Double(limits.stampError.nanoseconds)
        for exchange in filter.exchanges {
            let (before, after) = (
                abs(Double(instant &- exchange.sent.nanoseconds)), abs(Double(instant &- exchange.received.nanoseconds))
            )
            high = min(high, Double(exchange.forward &- origin) + limits.skew * before + error)
            low = max(low, Double(exchange.backward &- origin) - limits.skew * after - error)
        }
        return (low, high)
    }

    private func plainMapping(at instant: Timestamp<RigTime>) -> ClockMapping<RigTime, HostTime>? {
        guard let newest else { return nil }
        let range = plainRange(at: instant.nanoseconds, origin: newest.forward)
        guard range.low <= range.high else { return nil }
        return ClockMapping(
            reference: instant,
            offset: Interval(nanoseconds: newest.forward) + .seconds((range.low + range.high) / 2e9), skew: 0,
            bound: .seconds((range.high - range.low) / 2e9) + .nanoseconds(2), skewBound: limits.skew)
    }
}

extension Timestamp<HostTime> {
    /// The same number on the other clock, for a difference between the two.
    fileprivate init(_ instant: Timestamp<RigTime>) { self.init(nanoseconds: instant.nanoseconds) }
}
