internal import Timing

/// A pseudo-random generator with a seed (SplitMix64), so that a failing case can be run again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// Two clocks and a path between them, whose truth is known.
///
/// The host's clock is `offset + rig + skew × rig + wander × rig² / 2`, with rig time counted from `start`.
struct SimulatedPath {
    var generator: SeededGenerator
    let start: Int64
    var offset: Int64
    var skew: Double
    var wander = 0.0
    /// The least and the greatest delay in each direction, ns.
    var forward: ClosedRange<Int64>
    var backward: ClosedRange<Int64>
    var loss = 0.0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        start = Int64.random(in: 0...1_000_000_000_000_000, using: &generator)
        // ±1 h, ±1000 ppm, 0.1 to 20 ms in each direction by itself.
        offset = Int64.random(in: -3_600_000_000_000...3_600_000_000_000, using: &generator)
        skew = Double.random(in: -1e-3...1e-3, using: &generator)
        forward = Self.delays(&generator)
        backward = Self.delays(&generator)
        loss = 0.1
    }

    /// What the host's clock shows at a rig time.
    func truth(at rig: Timestamp<RigTime>) -> Int64 {
        let age = rig.nanoseconds - start
        let seconds = Double(age) / 1e9
        return rig.nanoseconds + offset
            + Int64((skew * Double(age) + wander * seconds * seconds / 2 * 1e9).rounded(.down))
    }

    /// An exchange that begins at a rig time; nil when a datagram is lost.
    mutating func exchange(at sent: Timestamp<RigTime>) -> ClockExchange<RigTime, HostTime>? {
        let arrival = sent + delay(forward)
        let answered = arrival + .nanoseconds(Int64.random(in: 1000...200_000, using: &generator))
        let received = answered + delay(backward)
        if Double.random(in: 0..<1, using: &generator) < loss { return nil }
        return ClockExchange(
            sent: sent, arrived: Timestamp(nanoseconds: truth(at: arrival)),
            answered: Timestamp(nanoseconds: truth(at: answered)), received: received)
    }

    /// Most datagrams are quick, some wait in queues.
    private mutating func delay(_ range: ClosedRange<Int64>) -> Interval {
        let part = Double.random(in: 0...1, using: &generator)
        let length = Double(range.upperBound - range.lowerBound)
        return .nanoseconds(range.lowerBound + Int64(length * part * part * part))
    }

    private static func delays(_ generator: inout SeededGenerator) -> ClosedRange<Int64> {
        let a = Int64.random(in: 100_000...20_000_000, using: &generator)
        let b = Int64.random(in: 100_000...20_000_000, using: &generator)
        return min(a, b)...max(a, b)
    }
}
