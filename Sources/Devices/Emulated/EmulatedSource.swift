package import Protocol
package import Timing

/// What one emulated device makes; `EmulatedDevice` decides when, and what gets lost.
package protocol EmulatedSource: Sendable {
    func description(of stream: StreamID) -> StreamDescription

    /// Samples are handed over in groups of this many, as a FIFO with a watermark does.
    var batch: Int64 { get }

    /// How many samples wait for a reader that is late; older ones are lost.
    var depth: Int64 { get }

    /// Prepares; what is wrong with the surroundings shows here. Throws `DeviceError`.
    mutating func open(stream: StreamID, at now: Timestamp<RoomTime>) throws

    /// Sample 0 is the next one; gives back when all samples are taken and ready.
    mutating func begin(at start: Timestamp<RoomTime>) -> Pace

    /// Makes one sample; its `arrival` is set by the caller. Indices only grow, with holes where samples are lost.
    mutating func sample(_ index: Int64, taken: Timestamp<RoomTime>) -> Sample

    /// How a loss is told: of samples of `lost`, before the sample `next`.
    func loss(_ lost: Range<Int64>, from: Timestamp<HostTime>, before next: Sample) -> DeviceEvent
}

/// When the samples of a device are taken and can be had: an even grid, without accumulating errors.
package struct Pace: Sendable, Hashable {
    /// When sample 0 is taken.
    package var base: Timestamp<RoomTime>
    /// Nanoseconds between samples, of room time: the device's own skew is in it.
    package var period: Double
    /// From the taking of a sample until it can be had.
    package var latency: Interval

    package init(base: Timestamp<RoomTime>, period: Double, latency: Interval) {
        self.base = base
        self.period = period
        self.latency = latency
    }

    package func taken(_ index: Int64) -> Timestamp<RoomTime> {
        base + Interval.seconds(Double(index) * period / 1e9)
    }

    package func ready(_ index: Int64) -> Timestamp<RoomTime> { taken(index) + latency }

    /// The last sample that can be had at an instant; −1 before the first.
    package func latest(at now: Timestamp<RoomTime>) -> Int64 {
        let age = Double((now - base - latency).nanoseconds)
        guard age >= 0 else { return -1 }
        let guess = Int64(age / period)
        return ready(guess) <= now ? guess : guess - 1
    }
}
