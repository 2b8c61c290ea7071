package import Timing

/// Decides when the first sample frame of a block was captured.
///
/// Pure.
///
/// The driver says how many frames wait at which instant (htstamp); the first unread one is that many frame times old.
/// Where the stamp is missing, frozen or of another clock, the instant of asking stands in for it.
package struct BlockStamper: Sendable {
    private enum Way: Equatable {
        case driver
        case reading(String)
    }

    /// An interrupt or a USB transfer is about this late.
    private static let floor = Interval.milliseconds(1)
    /// A stamp further from now is of another clock.
    private static let plausible = Interval.milliseconds(2_000)

    private let rate: Double
    private let period: Interval
    private let isBatch: Bool
    private let isMonotonic: Bool
    private var way: Way?
    /// The last stamp, and the frames that the card had captured then.
    private var last: (stamp: Timestamp<HostTime>, position: Int)?
    /// Frames read since the start or the last gap.
    private var read = 0
    /// Where the block after the last one should begin.
    private var expected: Timestamp<HostTime>?
    /// The largest recent distance from there.
    private var spread = Interval.zero
    /// Of the status in use: instant, frames that wait then, way.
    private var current: (instant: Timestamp<HostTime>, delay: Int)?

    package init(rate: Int, period: Interval, isBatch: Bool, isMonotonic: Bool) {
        self.rate = Double(rate)
        self.period = period
        self.isBatch = isBatch
        self.isMonotonic = isMonotonic
    }

    /// Where stamps come from at first, for the manifest.
    package var words: String {
        isMonotonic
            ? "sound card (htstamp), CLOCK_MONOTONIC, first frame of a block"
            : "reading by the program less the frames that waited, CLOCK_MONOTONIC, first frame of a block"
    }

    /// Takes a status that was asked for just before blocks are read.
    ///
    /// - Returns: a sentence when the way of stamping changes with it.
    package mutating func update(_ status: PCMStatus) -> String? {
        let new = judge(status)
        defer {
            way = new
            last = (status.stamp, read &+ status.available)
        }
        // USB cards have frames on the way that can't be read yet; a wild figure is no delay.
        let sane = status.delay >= status.available && status.delay <= status.available + Int(rate / 2)
        current = (new == .driver ? status.stamp : status.now, sane ? status.delay : status.available)
        guard new != way else { return nil }
        if case .reading(let cause) = new { return "blocks are stamped when they are read from here on: \(cause)" }
        return way == nil ? nil : "blocks are stamped by the sound card again"
    }

    /// The first frame of the next block.
    ///
    /// - Parameters:
    ///   - offset: frames read since the last status.
    ///   - frames: of this block.
    /// - Returns: the instant, how far it may be off, and the driver's stamp as it is (nil without one).
    package mutating func stamp(offset: Int, frames: Int) -> (
        capture: Timestamp<HostTime>, uncertainty: Interval, device: Timestamp<DeviceTime>?
    ) {
        let (instant, delay) = current ?? (Timestamp(nanoseconds: 0), 0)
        let capture = instant - length(of: delay - offset)
        if let expected {
            spread = max(Interval(nanoseconds: spread.nanoseconds / 100 * 99), (capture - expected).magnitude)
        }
        expected = capture + length(of: frames)
        read &+= frames
        let isDriver = way == .driver
        let step = isBatch || !isDriver ? max(period, Self.floor) : Self.floor
        return (
            capture, max(step, spread), isDriver ? Timestamp(nanoseconds: capture.nanoseconds) : nil
        )
    }

    /// Where the blocks so far end; nil before the first one.
    package var end: Timestamp<HostTime>? { expected }

    /// After a gap: the next block isn't expected anywhere.
    package mutating func reset() {
        expected = nil
        last = nil
        read = 0
    }

    private func length(of frames: Int) -> Interval { .seconds(Double(frames) / rate) }

    private func judge(_ status: PCMStatus) -> Way {
        if !isMonotonic { return .reading("the card's stamps aren't on CLOCK_MONOTONIC") }
        if status.stamp.nanoseconds == 0 { return .reading("the card gives no stamp") }
        // A driver keeps its stamp as long as its position is the same; more frames at the same instant can't be.
        if let last, status.stamp == last.stamp, read &+ status.available != last.position {
            return .reading("the card's stamp stands still")
        }
        if (status.now - status.stamp).magnitude > Self.plausible {
            return .reading("the card's stamp isn't on CLOCK_MONOTONIC, though it says so")
        }
        return .driver
    }
}
