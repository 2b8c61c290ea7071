internal import TestSupport
internal import Timing

/// A sensor with a clock of its own, behind a link that holds samples back and delivers them in bursts.
struct SimulatedDevice {
    struct Arrival {
        let counter: UInt64
        let arrival: Timestamp<HostTime>
        /// When it was really taken.
        let taken: Timestamp<HostTime>
    }

    var generator: SeededGenerator
    var shape = CounterShape.microseconds32
    var rate = 100.0
    var skewPPM = 0.0
    /// Between two connection events, ms; 0: each sample by itself.
    var burst = 43.3
    /// What a radio or a bus takes, ms.
    var transfer = 0.2...2.0
    /// Chance that a connection event fails, and all waits for the next one.
    var missed = 0.1
    /// The counter's value at the start, ticks.
    var counterStart: UInt64 = 0
    let start = Timestamp<HostTime>(nanoseconds: 5_000_000_000_000)

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// The counter at an instant.
    func counter(at instant: Timestamp<HostTime>) -> UInt64 {
        let device = (instant - start).seconds * (1 + skewPPM * 1e-6)
        let ticks = counterStart &+ UInt64(device * Double(shape.ticksPerSecond))
        return shape.bits == 64 ? ticks : ticks & ((1 << UInt64(shape.bits)) - 1)
    }

    /// Packets of the samples that one connection event brings, oldest first.
    mutating func packets(seconds: Double, from begin: Double = 0) -> [[Arrival]] {
        // The device takes samples by its own clock.
        let period = 1e3 / (rate * (1 + skewPPM * 1e-6))
        let count = Int(seconds * 1e3 / period)
        var event = begin * 1e3 + Double.random(in: 0..<max(burst, 1e-3), using: &generator)
        var packets: [[Arrival]] = []
        var lastArrival = 0.0
        var sample = 0
        while sample < count {
            let first = begin * 1e3 + Double(sample) * period
            if burst == 0 { event = first }
            while event < first { event += burst }
            while burst > 0, Double.random(in: 0..<1, using: &generator) < missed { event += burst }
            lastArrival = max(event + Double.random(in: transfer, using: &generator), lastArrival)
            var packet: [Arrival] = []
            while sample < count, begin * 1e3 + Double(sample) * period <= event {
                let taken = start + .seconds((begin * 1e3 + Double(sample) * period) / 1e3)
                packet.append(
                    Arrival(counter: counter(at: taken), arrival: start + .seconds(lastArrival / 1e3), taken: taken))
                sample += 1
            }
            packets.append(packet)
        }
        return packets
    }
}
