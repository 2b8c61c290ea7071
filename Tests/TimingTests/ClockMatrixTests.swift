internal import TestSupport
internal import Testing
internal import Timing

@Suite struct ClockMatrixTests {
    /// `Tests/Lab/run clock-matrix` does it with many more.
    @Test(
        "under all conditions together the error is never over the bound: offsets, skews, delays, asymmetry, loss, steered rates, jumps",
        arguments: 0..<4)
    func matrix(part: UInt64) {
        var matrix = ClockMatrix()
        var failures: [String] = []
        matrix.run(seeds: (part * 12)..<(part * 12 + 12)) { failures.append($0) }
        #expect(failures.isEmpty)
        #expect(matrix.violations == 0)
        #expect(matrix.estimates > 3000)
        // A bound that were never reached would be too wide: an asymmetric path comes near to it.
        #expect(matrix.worstRatio > 0.5)
    }

    @Test("an hour at 100 ppm with a change of the rate leaves at most 100 µs")
    func hour() throws {
        let residual = try #require(ClockMatrix.hour(seed: 5))
        #expect(residual.live <= 100_000)
        #expect(residual.smoothed <= residual.live)
    }

    @Test("holdover: when the exchanges stop the bound grows with the skew's, and holds for minutes")
    func holdover() throws {
        var path = SimulatedPath(seed: 21)
        (path.forward, path.backward, path.loss, path.skew) = (80_000...200_000, 80_000...200_000, 0, 70e-6)
        var estimator = ClockEstimator()
        var now = Timestamp<RigTime>(nanoseconds: path.start)
        for _ in 0..<60 {
            for _ in 0..<8 { if let e = path.exchange(at: now) { now = e.received; estimator.add(e) } }
            now += .milliseconds(500)
        }
        var last = Interval.zero
        for minutes in [0, 1, 2, 5, 10] as [Int64] {
            let instant = now + .milliseconds(minutes * 60_000)
            let mapping = try #require(estimator.mapping(at: instant))
            let error = (mapping.map(instant) - Timestamp(nanoseconds: path.truth(at: instant))).magnitude
            #expect(error <= mapping.bound)
            #expect(mapping.bound > last)
            last = mapping.bound
            #expect(estimator.state(at: instant) == (minutes == 0 ? .locked : .holdover))
        }
        // 10 min × (a few ppm + 0.05 ppm/s × 10 min / 2) is some ms, not the second that 1050 ppm would be.
        #expect(last < .milliseconds(30))
    }

    @Test("a daemon's change of the rate is followed without forgetting the offset, and is counted")
    func rateChange() throws {
        var path = SimulatedPath(seed: 22)
        (path.forward, path.backward, path.loss, path.skew) = (20_000...60_000, 20_000...60_000, 0, 10e-6)
        path.hostSteering.changes = [(20.25, 300e-6)]
        var estimator = ClockEstimator()
        let origin = Timestamp<RigTime>(nanoseconds: path.start)
        for tick in 0..<80 {
            var now = origin + .milliseconds(Int64(tick) * 500)
            for _ in 0..<8 { if let e = path.exchange(at: now) { now = e.received; estimator.add(e) } }
            guard tick > 10 else { continue }
            let mapping = try #require(estimator.mapping(at: now))
            let error = abs(mapping.map(now).nanoseconds - path.truth(at: now))
            #expect(error <= mapping.bound.nanoseconds)
            #expect(mapping.bound < .microseconds(60))
        }
        #expect(estimator.restarts == 0)
        #expect(estimator.hostRateChanges == 1)
        let steering = try #require(estimator.hostSteering)
        // Against its own oscillator; what the rig sees is 10 ppm more.
        #expect(abs(steering - 300e-6) < 1e-6)
        let mapping = try #require(estimator.mapping(at: origin + .milliseconds(39_900)))
        #expect(abs(mapping.skew - 310e-6) < 2e-6)
    }

    @Test("after the fact a suspend cuts the series in two, and nothing is said of the time between")
    func cut() throws {
        var path = SimulatedPath(seed: 23)
        (path.loss, path.jump) = (0, (at: 10.3, by: -5_000_000_000))
        var exchanges: [ClockExchange<RigTime, HostTime>] = []
        let origin = Timestamp<RigTime>(nanoseconds: path.start)
        for tick in 0..<40 {
            if let e = path.exchange(at: origin + .milliseconds(Int64(tick) * 500)) { exchanges.append(e) }
        }
        let smoother = ClockSmoother(exchanges.shuffled(using: &path.generator))
        #expect(smoother.breaks == 1)
        #expect(smoother.mapping(at: origin + .milliseconds(10_300)) == nil)
        let before = try #require(smoother.mapping(at: origin + .milliseconds(9_000)))
        let after = try #require(smoother.mapping(at: origin + .milliseconds(11_500)))
        let moved = (before.offset - after.offset) - .milliseconds(5000)
        #expect(moved.magnitude < .milliseconds(50))
        #expect(ClockSmoother([]).mapping(at: origin) == nil)
        #expect(ClockSmoother([]).series(from: origin, to: origin + .milliseconds(5000)).isEmpty)
    }
}
