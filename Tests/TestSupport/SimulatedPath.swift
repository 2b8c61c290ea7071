package import Timing

/// Two machines and a path between them, whose truth is known.
///
/// Time counts on the rig's oscillator from `start`. The host's oscillator is
/// `offset + rig + skew × rig + wander × rig² / 2`; both CLOCK_MONOTONIC are their oscillators as a daemon steers them.
package struct SimulatedPath: Sendable {
    /// What a daemon does to a clock: rates against the oscillator, each from an instant on.
    package struct Steering: Sendable {
        /// Seconds from `start`, and the rate from there on; sorted.
        package var changes: [(at: Double, rate: Double)] = []
        /// Whether the kernel says that a daemon is at work.
        package var isSteered = false

        package init() {}

        /// Clock minus oscillator, ns.
        package func difference(at seconds: Double) -> Double {
            var (sum, rate, from) = (0.0, 0.0, 0.0)
            for change in changes where change.at <= seconds {
                sum += rate * (change.at - from)
                (rate, from) = (change.rate, change.at)
            }
            return (sum + rate * (seconds - from)) * 1e9
        }
    }

    package var generator: SeededGenerator
    package let start: Int64
    package var offset: Int64
    package var skew: Double
    package var wander = 0.0
    /// A change of the oscillator's own rate that nobody tells, which no oscillator does.
    package var jolt: (at: Double, rate: Double)?
    /// The host's clocks stand still for a while (a suspend), or begin anew (a reboot): ns that are added at an instant.
    package var jump: (at: Double, by: Int64)?
    package var rigSteering = Steering()
    package var hostSteering = Steering()
    /// Whether the ends tell how they are steered.
    package var isFollowed = true
    /// The least and the greatest delay in each direction, ns.
    package var forward: ClosedRange<Int64>
    package var backward: ClosedRange<Int64>
    package var loss = 0.0

    package init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        start = Int64.random(in: 0...1_000_000_000_000_000, using: &generator)
        // ±1 h, ±1000 ppm, 0.1 to 20 ms in each direction by itself.
        offset = Int64.random(in: -3_600_000_000_000...3_600_000_000_000, using: &generator)
        skew = Double.random(in: -1e-3...1e-3, using: &generator)
        forward = Self.delays(&generator)
        backward = Self.delays(&generator)
        loss = 0.1
    }

    /// What the host's clock shows when the rig's clock shows an instant.
    package func truth(at rig: Timestamp<RigTime>) -> Int64 { hostClock(at: elapsed(at: rig)) }

    /// The seconds since the start, on the rig's oscillator.
    package func elapsed(at rig: Timestamp<RigTime>) -> Double {
        let clock = Double(rig.nanoseconds - start)
        var oscillator = clock
        // Each step leaves at most a hundredth of the error.
        for _ in 0..<12 { oscillator = clock - rigSteering.difference(at: oscillator / 1e9) }
        return oscillator / 1e9
    }

    /// An exchange that begins at a rig time; nil when a datagram is lost.
    package mutating func exchange(at sent: Timestamp<RigTime>) -> ClockExchange<RigTime, HostTime>? {
        let begin = elapsed(at: sent)
        let arrival = begin + delay(forward)
        let answer = arrival + Double.random(in: 1e-6...200e-6, using: &generator)
        let end = answer + delay(backward)
        let localReading = reading(rigSteering, at: begin)
        let remoteReading = reading(hostSteering, at: answer)
        if Double.random(in: 0..<1, using: &generator) < loss { return nil }
        return ClockExchange(
            sent: sent, arrived: Timestamp(nanoseconds: hostClock(at: arrival)),
            answered: Timestamp(nanoseconds: hostClock(at: answer)),
            received: Timestamp(nanoseconds: start + Int64(rigClock(at: end).rounded(.up))),
            localDiscipline: isFollowed ? localReading : nil, remoteDiscipline: isFollowed ? remoteReading : nil)
    }

    // MARK: Private

    private func rigClock(at seconds: Double) -> Double { seconds * 1e9 + rigSteering.difference(at: seconds) }

    private func hostClock(at seconds: Double) -> Int64 {
        var gained = skew * seconds + wander * seconds * seconds / 2
        if let jolt, seconds > jolt.at { gained += (jolt.rate - skew) * (seconds - jolt.at) }
        let jumped = jump.map { seconds >= $0.at ? $0.by : 0 } ?? 0
        let ns = seconds * 1e9 + gained * 1e9 + hostSteering.difference(at: seconds)
        return start + offset + jumped + Int64(ns.rounded(.down))
    }

    /// A reading takes 20 to 200 ns, and is right to half of it.
    private mutating func reading(_ steering: Steering, at seconds: Double) -> DisciplineReading {
        let error = Double.random(in: 10...100, using: &generator).rounded()
        let wrong = Double.random(in: -1...1, using: &generator) * error * 0.99
        return DisciplineReading(
            difference: .nanoseconds(Int64((steering.difference(at: seconds) + wrong).rounded(.towardZero))),
            error: .nanoseconds(Int64(error)), isSteered: steering.isSteered)
    }

    /// Most datagrams are quick, some wait in queues; in seconds.
    private mutating func delay(_ range: ClosedRange<Int64>) -> Double {
        let part = Double.random(in: 0...1, using: &generator)
        let length = Double(range.upperBound - range.lowerBound)
        return (Double(range.lowerBound) + length * part * part * part) / 1e9
    }

    private static func delays(_ generator: inout SeededGenerator) -> ClosedRange<Int64> {
        let a = Int64.random(in: 100_000...20_000_000, using: &generator)
        let b = Int64.random(in: 100_000...20_000_000, using: &generator)
        return min(a, b)...max(a, b)
    }
}
