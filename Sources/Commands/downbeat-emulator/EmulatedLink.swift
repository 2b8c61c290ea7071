internal import Devices
internal import Timing

/// The way from an emulated sensor to whoever listens: holds back, loses, doubles and damages as the plan says.
///
/// Pure.
struct EmulatedLink: Sendable {
    var plan: FaultPlan
    private var noise: SeededNoise
    private var held: [(due: Interval, bytes: [UInt8])] = []

    init(plan: FaultPlan, seed: UInt64) {
        self.plan = plan
        noise = SeededNoise(seed: seed)
    }

    /// Whether the device is reachable at all.
    func isUp(at age: Interval) -> Bool { plan.value(.disconnect, at: age) == 0 }

    /// Takes a packet in that the device made; false when it will never arrive whole.
    mutating func take(_ bytes: [UInt8], at age: Interval) -> Bool {
        guard isUp(at: age), plan.value(.stall, at: age) == 0, !happens(.loss, age) else { return false }
        let isDamaged = happens(.garbage, age) && !bytes.isEmpty
        var bytes = bytes
        if isDamaged {
            let place = Int(noise.next() % UInt64(bytes.count))
            bytes[place] ^= UInt8(truncatingIfNeeded: noise.next() | 1)
        }
        let burst = Interval.seconds(plan.value(.burst, at: age) / 1e3)
        let due = burst > .zero ? burst * (age.nanoseconds / burst.nanoseconds + 1) : age
        // Never past one that waits already.
        let place = max(due, held.last?.due ?? due)
        held.append((place, bytes))
        if happens(.duplicate, age) { held.append((place, bytes)) }
        return !isDamaged
    }

    /// The packets that leave now, in order.
    mutating func due(at age: Interval) -> [[UInt8]] {
        guard isUp(at: age) else {
            held.removeAll()
            return []
        }
        let count = held.prefix { $0.due <= age }.count
        defer { held.removeFirst(count) }
        return held.prefix(count).map(\.bytes)
    }

    /// When the next packet leaves; nil when none waits.
    var next: Interval? { held.first?.due }

    private mutating func happens(_ kind: FaultPlan.Kind, _ age: Interval) -> Bool {
        let percent = plan.value(kind, at: age)
        return percent > 0 && noise.uniform() * 100 < percent
    }
}
