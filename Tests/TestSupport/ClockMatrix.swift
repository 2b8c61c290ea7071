internal import Timing

/// The estimator against simulated clocks and paths, under all conditions together that it has to bear: each estimate's
/// error against its bound.
package struct ClockMatrix: Sendable {
    /// What one kind of path came to.
    package struct Class: Sendable {
        package var name: String
        package var takes = 0
        package var estimates = 0
        package var violations = 0
        /// The greatest error, as a part of its bound.
        package var worstRatio = 0.0
        package var errors: [Int64] = []
        package var bounds: [Int64] = []
        /// Looks ahead over a change of the rate or a jump that nobody could know of yet; not in the figures above.
        package var overChange = 0
        package var overChangeBeyond = 0

        fileprivate mutating func note(error: Int64, bound: Int64, isNow: Bool) {
            estimates += 1
            worstRatio = max(worstRatio, Double(error) / Double(max(bound, 1)))
            if error > bound { violations += 1 }
            guard isNow else { return }
            errors.append(error)
            bounds.append(bound)
        }
    }

    /// One condition, drawn from all.
    private struct Condition {
        var path: SimulatedPath
        var name: String
        /// The instants at which something happens that can't be known before the next exchange, in seconds.
        var surprises: [Double] = []
    }

    package private(set) var classes: [Class] = []

    package init() {}

    package var estimates: Int { classes.reduce(0) { $0 + $1.estimates } }
    package var violations: Int { classes.reduce(0) { $0 + $1.violations } }
    package var worstRatio: Double { classes.map(\.worstRatio).max() ?? 0 }

    /// Simulates takes of 20 s, each with a condition of its own, and tells a failure as its seed.
    package mutating func run(seeds: Range<UInt64>, failure: (String) -> Void) {
        for seed in seeds { take(Self.condition(seed), seed, failure) }
    }

    private static func condition(_ seed: UInt64) -> Condition {
        var path = SimulatedPath(seed: seed &* 7919 &+ 17)
        func pick<T>(_ all: [T], _ path: inout SimulatedPath) -> T {
            all[Int.random(in: 0..<all.count, using: &path.generator)]
        }
        let hour: Int64 = 3_600_000_000_000
        path.offset = pick([-hour, -1_000_000_000, -1_000_000, 0, 1_000_000, 1_000_000_000, hour], &path)
        path.skew = pick([-1e-3, -390e-6, -50e-6, 0, 20e-6, 390e-6, 1e-3], &path)
        path.loss = pick([0, 0.1], &path)
        let (name, least, most) = pick(
            [
                ("wire 0.01 ms", 5_000, 40_000), ("0.1 ms", 100_000, 400_000), ("2 ms", 1_000_000, 5_000_000),
                ("20 ms", 10_000_000, 20_000_000),
            ] as [(String, Int64, Int64)], &path)
        path.forward = least...most
        path.backward = least...most
        var condition = Condition(path: path, name: name)
        if Bool.random(using: &path.generator) {
            condition.name += ", 2 ms asymmetric"
            if Bool.random(using: &path.generator) {
                path.forward = (least + 2_000_000)...(most + 2_000_000)
            } else {
                path.backward = (least + 2_000_000)...(most + 2_000_000)
            }
        }
        condition.surprises = surprise(&path)
        condition.path = path
        return condition
    }

    /// What happens in the middle of the take.
    private static func surprise(_ path: inout SimulatedPath) -> [Double] {
        let at = Double.random(in: 5...15, using: &path.generator)
        let rate = Double.random(in: -1e-3...1e-3, using: &path.generator)
        switch Int.random(in: 0..<8, using: &path.generator) {
        case 0: return []
        case 1: path.hostSteering.changes = [(at, rate)]
        case 2: path.rigSteering.changes = [(at, rate)]
        case 3:
            // Steered all the time, by up to 50 ppm and therefore by less than 100 at once.
            path.hostSteering.isSteered = true
            path.rigSteering.isSteered = true
            var (second, left) = (0.3, 60)
            while left > 0 {
                let rate = Double.random(in: -50e-6...50e-6, using: &path.generator)
                path.hostSteering.changes.append((second, rate))
                path.rigSteering.changes.append((second + 0.17, -rate / 3))
                second += Double.random(in: 0.2...0.7, using: &path.generator)
                left -= 1
            }
            return []
        case 4:
            // Nobody tells how the clocks are steered, and the rate changes at once.
            path.isFollowed = false
            path.jolt = (at, rate)
            return []
        case 5:
            path.wander = path.skew > 0 ? -5e-8 : 5e-8
            return []
        case 6: path.jump = (at, -Int64.random(in: 1_000_000_000...3_600_000_000_000, using: &path.generator))
        default: path.jump = (at, pickStep(&path))
        }
        return [at]
    }

    /// A machine that was started anew: its clock is anywhere.
    private static func pickStep(_ path: inout SimulatedPath) -> Int64 {
        [-3_600_000_000_000, -1_000_000_000, 1_000_000_000, 3_600_000_000_000][
            Int.random(in: 0..<4, using: &path.generator)]
    }

    private mutating func take(_ condition: Condition, _ seed: UInt64, _ failure: (String) -> Void) {
        var path = condition.path
        var result = Class(name: condition.name)
        var estimator = ClockEstimator()
        let origin = Timestamp<RigTime>(nanoseconds: path.start)
        var now = origin
        var exchanges: [ClockExchange<RigTime, HostTime>] = []
        while now < origin + .milliseconds(20_000) {
            var known: Timestamp<RigTime>?
            for _ in 0..<8 {
                guard let exchange = path.exchange(at: now) else {
                    now += .milliseconds(100)
                    continue
                }
                now = exchange.received
                known = exchange.sent
                if estimator.add(exchange) == .impossible { failure("seed \(seed): an exchange was refused") }
            }
            exchanges += estimator.exchanges.suffix(2)
            if let known { look(estimator, known, now, path, condition, seed, &result, failure) }
            now += now - origin < .milliseconds(1500) ? .milliseconds(50) : .milliseconds(500)
        }
        result.takes = 1
        merge(result)
        merge(smooth(Set(exchanges), path, condition, seed, failure))
    }

    /// The same take after the fact, from what was kept of the exchanges: at any instants, also over a change of the rate.
    private func smooth(
        _ exchanges: Set<ClockExchange<RigTime, HostTime>>, _ start: SimulatedPath, _ condition: Condition,
        _ seed: UInt64, _ failure: (String) -> Void
    ) -> Class {
        var path = start
        var result = Class(name: "after the fact")
        result.takes = 1
        let smoother = ClockSmoother(Array(exchanges))
        for _ in 0..<60 {
            let reference = Timestamp<RigTime>(
                nanoseconds: path.start + Int64.random(in: 0...20_000_000_000, using: &path.generator))
            let ahead = Interval.milliseconds(Int64.random(in: -1000...1000, using: &path.generator))
            // Between the last exchange before a jump and the first after it nothing is said.
            guard let mapping = smoother.mapping(at: reference) else { continue }
            for instant in [reference, reference + ahead] {
                let (from, to) = (path.elapsed(at: min(reference, instant)), path.elapsed(at: max(reference, instant)))
                if let jump = path.jump?.at, jump >= from - 1, jump <= to + 1 { continue }
                let error = abs(mapping.map(instant).nanoseconds - path.truth(at: instant))
                let bound = mapping.bound(at: instant).nanoseconds
                result.note(error: error, bound: bound, isNow: instant == reference)
                if error > bound {
                    failure("seed \(seed) (\(condition.name)), after the fact, \(to) s: \(error) over \(bound) ns")
                }
            }
        }
        return result
    }

    /// The estimate for now, and for instants to come.
    private func look(
        _ estimator: ClockEstimator, _ known: Timestamp<RigTime>, _ now: Timestamp<RigTime>, _ path: SimulatedPath,
        _ condition: Condition, _ seed: UInt64, _ result: inout Class, _ failure: (String) -> Void
    ) {
        guard let mapping = estimator.mapping(at: now) else { return failure("seed \(seed): no mapping at \(now)") }
        for ahead in [0, 100, 500, 2000] as [Int64] {
            let instant = now + .milliseconds(ahead)
            // Asked for now and carried on, or asked for then.
            for one in [mapping, estimator.mapping(at: instant) ?? mapping] {
                let truth = path.truth(at: instant)
                let error = abs(one.map(instant).nanoseconds - truth)
                let bound = one.bound(at: instant).nanoseconds
                let (from, to) = (path.elapsed(at: known), path.elapsed(at: instant))
                if condition.surprises.contains(where: { $0 > from && $0 <= to }) {
                    result.overChange += 1
                    if error > bound { result.overChangeBeyond += 1 }
                    continue
                }
                result.note(error: error, bound: bound, isNow: ahead == 0)
                if error > bound {
                    failure(
                        "seed \(seed) (\(condition.name)), \(to) s, \(ahead) ms ahead: \(error) ns over \(bound) ns")
                }
            }
        }
    }

    private mutating func merge(_ one: Class) {
        guard let index = classes.firstIndex(where: { $0.name == one.name }) else { return classes.append(one) }
        classes[index].takes += one.takes
        classes[index].estimates += one.estimates
        classes[index].violations += one.violations
        classes[index].worstRatio = max(classes[index].worstRatio, one.worstRatio)
        classes[index].errors += one.errors
        classes[index].bounds += one.bounds
        classes[index].overChange += one.overChange
        classes[index].overChangeBeyond += one.overChangeBeyond
    }
}

extension ClockMatrix {
    /// An hour at 100 ppm on a wired LAN, with one change of the rate by a daemon: the greatest error of the estimates that
    /// are made each second, and of the series after the fact, in ns; nil when an estimate was over its bound.
    package static func hour(seed: UInt64) -> (live: Int64, smoothed: Int64)? {
        var path = SimulatedPath(seed: seed)
        path.skew = 100e-6
        path.loss = 0.01
        path.forward = 60_000...400_000
        path.backward = 80_000...600_000
        path.hostSteering.changes = [(1800.3, -150e-6)]
        var estimator = ClockEstimator()
        var kept: Set<ClockExchange<RigTime, HostTime>> = []
        let origin = Timestamp<RigTime>(nanoseconds: path.start)
        var (live, smoothed) = (Int64(0), Int64(0))
        for second in 0..<3600 {
            var now = origin + .milliseconds(Int64(second) * 1000)
            for _ in 0..<8 {
                guard let exchange = path.exchange(at: now) else { continue }
                now = exchange.received
                estimator.add(exchange)
            }
            kept.formUnion(estimator.exchanges.suffix(2))
            guard second > 10, let mapping = estimator.mapping(at: now) else { continue }
            let error = abs(mapping.map(now).nanoseconds - path.truth(at: now))
            if error > mapping.bound(at: now).nanoseconds { return nil }
            live = max(live, error)
        }
        let end = origin + .milliseconds(3_600_000)
        for mapping in ClockSmoother(Array(kept)).series(from: origin, to: end) {
            for instant in [mapping.reference, mapping.reference + .milliseconds(500)] where instant < end {
                let error = abs(mapping.map(instant).nanoseconds - path.truth(at: instant))
                if error > mapping.bound(at: instant).nanoseconds { return nil }
                smoothed = max(smoothed, error)
            }
        }
        return (live, smoothed)
    }
}
