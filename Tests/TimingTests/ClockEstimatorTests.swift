internal import TestSupport
internal import Testing
internal import Timing

@Suite struct ClockEstimatorTests {
    /// Bursts as the probe makes them, and after each of them the mapping against the truth: now, between the bursts, and
    /// for instants to come, up to the horizon.
    @Test(
        "the error is never over the bound: offset ±1 h, skew ±1000 ppm, delay 0.1 to 20 ms asymmetric, loss 10 %",
        arguments: 0..<24)
    func boundHolds(seed: UInt64) throws {
        try check(SimulatedPath(seed: seed), seconds: 25)
    }

    @Test("the error is never over the bound when the skew wanders as fast as the limits allow", arguments: 100..<110)
    func boundHoldsWithWander(seed: UInt64) throws {
        var path = SimulatedPath(seed: seed)
        path.skew *= 0.9
        path.wander = seed % 2 == 0 ? 5e-8 : -5e-8
        try check(path, seconds: 40)
    }

    @Test("the error is never over the bound on a quick wire with skews at the limit", arguments: [-1e-3, 1e-3, 0])
    func quickWire(skew: Double) throws {
        var path = SimulatedPath(seed: 7)
        path.skew = skew
        path.forward = 3_000...40_000
        path.backward = 5_000...60_000
        try check(path, seconds: 20)
    }

    private func check(_ start: SimulatedPath, seconds: Int64) throws {
        var path = start
        var estimator = ClockEstimator()
        let origin = Timestamp<RigTime>(nanoseconds: path.start)
        var now = origin
        var checked = 0
        var violations: [String] = []
        while now < origin + .milliseconds(seconds * 1000) {
            for _ in 0..<8 {
                guard let exchange = path.exchange(at: now) else {
                    now += .milliseconds(100)
                    continue
                }
                now = exchange.received
                let outcome = estimator.add(exchange)
                if outcome != .used && outcome != .notNeeded { violations.append("\(outcome) at \(now)") }
            }
            // Carried on from now, and asked anew for an instant to come.
            let mapping = try #require(estimator.mapping(at: now))
            for ahead in [0, 50, 500, 1000, 10_000] as [Int64] {
                verify(mapping, at: now + .milliseconds(ahead), path, &violations)
                checked += 1
            }
            let later = now + .milliseconds(3000)
            verify(try #require(estimator.mapping(at: later)), at: later, path, &violations)
            now += now - origin < .milliseconds(1500) ? .milliseconds(50) : .milliseconds(500)
        }
        #expect(estimator.restarts == 0)
        #expect(violations.isEmpty)
        #expect(checked > 100)
    }

    /// A macro for each of a hundred thousand checks is what would take the time.
    private func verify(
        _ mapping: ClockMapping<RigTime, HostTime>, at instant: Timestamp<RigTime>, _ path: SimulatedPath,
        _ violations: inout [String]
    ) {
        let truth = Timestamp<HostTime>(nanoseconds: path.truth(at: instant))
        let error = (mapping.map(instant) - truth).magnitude
        let back = mapping.inverse
        let backError = (back.map(truth) - instant).magnitude
        if error > mapping.bound(at: instant) || backError > back.bound(at: truth) {
            violations.append("reference \(mapping.reference), at \(instant): \(error), back \(backError)")
        }
    }

    // Sent 0, arrived 1000.1 s, answered 1000.1 s, received 0.2 s: by hand, the offset is 1000 s ± 0.1 s.
    @Test("one exchange says the offset to half its delay, and nothing of the skew but its limit")
    func oneExchange() throws {
        var estimator = ClockEstimator()
        let before = estimator.mapping(at: Timestamp(nanoseconds: 0))
        #expect(before == nil)
        #expect(estimator.state(at: Timestamp(nanoseconds: 0)) == .unsynchronized)
        let exchange = ClockExchange<RigTime, HostTime>(
            sent: Timestamp(nanoseconds: 0), arrived: Timestamp(nanoseconds: 1_000_100_000_000),
            answered: Timestamp(nanoseconds: 1_000_100_000_000), received: Timestamp(nanoseconds: 200_000_000))
        let outcome = estimator.add(exchange)
        #expect(outcome == .used)
        let mapping = try #require(estimator.mapping(at: Timestamp(nanoseconds: 100_000_000)))
        #expect((mapping.offset - .seconds(1000)).magnitude <= .nanoseconds(2))
        // Half the delay, 0.1 s × 1050 ppm of ageing in both directions, and the stamps' 100 ns.
        let expected = Interval.nanoseconds(100_000_000 + 105_000 + 100)
        #expect((mapping.bound - expected).magnitude <= .nanoseconds(1000))
        #expect(abs(mapping.skew) < 1e-9)
        #expect(estimator.state(at: Timestamp(nanoseconds: 300_000_000)) == .converging)
        #expect(estimator.state(at: Timestamp(nanoseconds: 9_000_000_000)) == .holdover)
    }

    @Test("within one second of the first exchange, a wire of 0.2 ms gives a bound of 0.2 ms, and lock soon after")
    func converges() throws {
        var path = SimulatedPath(seed: 3)
        (path.forward, path.backward, path.loss, path.skew) = (80_000...120_000, 80_000...120_000, 0, 40e-6)
        var estimator = ClockEstimator()
        let origin = Timestamp<RigTime>(nanoseconds: path.start)
        var now = origin
        while now < origin + .milliseconds(950) {
            for _ in 0..<8 { if let e = path.exchange(at: now) { now = e.received; estimator.add(e) } }
            now += .milliseconds(50)
        }
        let mapping = try #require(estimator.mapping(at: now))
        #expect(mapping.bound < .microseconds(200))
        while now < origin + .milliseconds(20_000) {
            for _ in 0..<8 { if let e = path.exchange(at: now) { now = e.received; estimator.add(e) } }
            now += .milliseconds(500)
        }
        #expect(estimator.state(at: now) == .locked)
        let late = try #require(estimator.mapping(at: now))
        #expect(abs(late.skew - 40e-6) <= late.skewBound)
        #expect(late.bound < .microseconds(100))
    }

    @Test("a host that was booted anew is found by its first exchange, and the bound holds again at once")
    func reboot() throws {
        var path = SimulatedPath(seed: 11)
        path.loss = 0
        var estimator = ClockEstimator()
        var now = Timestamp<RigTime>(nanoseconds: path.start)
        for _ in 0..<20 {
            if let e = path.exchange(at: now) { estimator.add(e) }
            now += .milliseconds(500)
        }
        path.jump = (at: 9.9, by: -1_000_000_000_000)
        let lost = path.exchange(at: now)
        let exchange = try #require(lost)
        let outcome = estimator.add(exchange)
        #expect(outcome == .restarted)
        #expect(estimator.restarts == 1)
        let mapping = try #require(estimator.mapping(at: exchange.received))
        let error = abs(mapping.map(exchange.received).nanoseconds - path.truth(at: exchange.received))
        #expect(error <= mapping.bound(at: exchange.received).nanoseconds)
    }

    @Test(
        "stamps that can't be are refused, and no stamp crashes",
        arguments: [
            // received before sent; answered before arrived; faster than light; out of range
            (0, 10, 10, -5), (0, 10, 5, 20), (0, 10, 1000, 20), (.min, 0, 0, .max), (0, .max, .max, 1),
            (0, .min, .max, 1),
            (.max, .max, .max, .max),
        ] as [(Int64, Int64, Int64, Int64)])
    func impossible(sent: Int64, arrived: Int64, answered: Int64, received: Int64) {
        var estimator = ClockEstimator()
        let outcome = estimator.add(
            ClockExchange(
                sent: Timestamp(nanoseconds: sent), arrived: Timestamp(nanoseconds: arrived),
                answered: Timestamp(nanoseconds: answered), received: Timestamp(nanoseconds: received)))
        #expect(outcome == .impossible)
        #expect(estimator.newest == nil)
    }

    @Test("any stamps at all, in any order, never crash and never give a negative bound", arguments: 0..<20)
    func garbage(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var estimator = ClockEstimator()
        var violations = 0
        for _ in 0..<300 {
            let shift = UInt64.random(in: 0..<63, using: &generator)
            func stamp() -> Int64 { Int64.random(in: .min ... .max, using: &generator) >> Int64(shift) }
            estimator.add(
                ClockExchange(
                    sent: Timestamp(nanoseconds: stamp()), arrived: Timestamp(nanoseconds: stamp()),
                    answered: Timestamp(nanoseconds: stamp()), received: Timestamp(nanoseconds: stamp())))
            if let mapping = estimator.mapping(at: Timestamp(nanoseconds: stamp())) {
                if mapping.bound < .zero || !(mapping.skewBound >= 0) { violations += 1 }
            }
        }
        #expect(violations == 0)
    }
}
