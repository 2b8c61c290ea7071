package import Protocol
package import Timing

/// Decides when the first sample frame of a block was captured.
///
/// Pure.
///
/// The driver says how many frames wait at which instant (htstamp), so how many the card had captured by then; the line through
/// these readings (`SampleClock`) gives each frame its instant. Where the stamp is missing, frozen or of another clock, the
/// instant of asking stands in for it. The raw stamp is kept beside.
package struct BlockStamper: Sendable {
    private enum Way: Equatable {
        case driver
        case reading(String)
    }

    /// An interrupt is about this late, and a converter's filter has about this delay.
    private static let floor = Interval.milliseconds(1)
    /// A position that moves by whole USB transfers: the earliest reading of a second is the one right after a transfer.
    private static let batchFloor = Interval.milliseconds(2)
    /// A stamp further from now is of another clock.
    private static let plausible = Interval.milliseconds(2_000)

    private let rate: Int
    private var period: Interval
    private var isBatch: Bool
    private var isMonotonic: Bool
    private var clock: SampleClock
    private var way: Way?
    private var usesLink = true
    /// The last stamp, and the frames that the card had captured then.
    private var last: (stamp: Timestamp<HostTime>, position: Int)?
    /// Frames read since the start or the last gap.
    private var read = 0
    /// Of the status in use: instant, and frames that wait then.
    private var current: (instant: Timestamp<HostTime>, delay: Int)?
    /// Blocks with a stamp of the card, and all.
    private var counts = (driver: Int64(0), all: Int64(0))
    private var lines = Int64(1)

    package init(rate: Int, period: Interval, isBatch: Bool, isMonotonic: Bool) {
        self.rate = max(rate, 1)
        self.period = period
        self.isBatch = isBatch
        self.isMonotonic = isMonotonic
        clock = SampleClock(rate: max(rate, 1))
    }

    /// Where stamps come from at first, for the manifest.
    package var words: String {
        isMonotonic
            ? "sound card (htstamp) by a fitted line, CLOCK_MONOTONIC, first frame of a block"
            : "reading by the program less the frames that waited, by a fitted line, CLOCK_MONOTONIC, first frame of a block"
    }

    /// Takes a status that was asked for just before blocks are read.
    ///
    /// - Returns: sentences for the manifest, when something changes with it.
    package mutating func update(_ status: PCMStatus) -> [String] {
        let new = judge(status)
        defer {
            way = new
            last = (status.stamp, read &+ status.available)
        }
        var notes: [String] = []
        if new != way {
            if case .reading(let cause) = new {
                notes.append("blocks are stamped when they are read from here on: \(cause)")
            } else if way != nil {
                notes.append("blocks are stamped by the sound card again")
            }
            // A reading is late by other things than a stamp is.
            if way != nil { begin() }
        }
        // USB cards have frames on the way that can't be read yet; a wild figure is no delay.
        let sane = status.delay >= status.available && status.delay <= status.available &+ rate / 2
        var delay = sane ? status.delay : status.available
        if new == .driver, usesLink, let link = status.link {
            let captured = Int(clamping: Int64((link.seconds * Double(rate)).rounded()))
            let ahead = captured &- read &- status.available
            // The card's own clock behind the stamp: it can't be behind what is in memory, nor far ahead of it.
            if ahead >= -rate / 1000 && ahead <= rate / 10 { delay = captured &- read } else { usesLink = false }
        }
        let instant = new == .driver ? status.stamp : status.now
        current = (instant, delay)
        switch clock.take(position: Int64(read &+ delay), at: instant) {
        case .rate:
            lines += 1
            notes.append("the sound card's rate has changed; a new line is fitted from here on")
        case .jump(let length):
            lines += 1
            notes.append(
                "the sound card's counter leapt by \(hundredths(length)) ms against the clock, with no overrun told: "
                    + (length > .zero ? "samples are missing" : "samples were given twice"))
        case nil: break
        }
        return notes
    }

    /// The first frame of the next block.
    ///
    /// - Parameters:
    ///   - offset: frames read since the last status.
    ///   - frames: of this block.
    /// - Returns: the instant by the line, how far it may be off, and where the driver's own stamp puts it (nil without
    ///   one).
    package mutating func stamp(offset: Int, frames: Int) -> (
        capture: Timestamp<HostTime>, uncertainty: Interval, device: Timestamp<DeviceTime>?
    ) {
        let (instant, delay) = current ?? (Timestamp(nanoseconds: 0), 0)
        let raw = instant - length(of: delay - offset)
        let fitted = clock.time(of: Int64(read))
        read &+= frames
        counts.all &+= 1
        let isDriver = way == .driver
        if isDriver { counts.driver &+= 1 }
        let isSettled = clock.residual != nil
        var step = Self.floor
        if isBatch { step = isSettled ? Self.batchFloor : max(period, Self.floor) }
        if !isDriver { step = max(period, Self.floor) }
        var uncertainty = max(step, (fitted?.deviation ?? .zero) * 3)
        // Nothing is captured after it was read: a stamp before the line says that the line is wrong.
        if let fitted, raw < fitted.instant { uncertainty = max(uncertainty, fitted.instant - raw) }
        return (fitted?.instant ?? raw, uncertainty, isDriver ? Timestamp(nanoseconds: raw.nanoseconds) : nil)
    }

    /// Where the blocks so far end; nil before the first one.
    package var end: Timestamp<HostTime>? { read == 0 ? nil : clock.time(of: Int64(read))?.instant }

    /// After a gap: the card counts from zero again.
    package mutating func reset() {
        last = nil
        read = 0
        begin()
    }

    /// After a replug: the same card, which may have been set up otherwise.
    package mutating func replaced(period: Interval, isBatch: Bool, isMonotonic: Bool) {
        (self.period, self.isBatch, self.isMonotonic) = (period, isBatch, isMonotonic)
    }

    private mutating func begin() {
        if clock.count > 0 { lines += 1 }
        clock.restart()
    }

    /// What was measured of the card's clock, for the manifest; nil before there is something to say.
    package var report: DeviceClockReport? {
        guard counts.all > 0 else { return nil }
        let skew = clock.skew
        return DeviceClockReport(
            source: counts.driver == counts.all
                ? "htstamp" : counts.driver == 0 ? "reading" : "htstamp, in part reading",
            skewPPM: skew?.ppm, skewUncertaintyPPM: skew?.uncertainty, residual: clock.residual, lines: lines)
    }

    private func length(of frames: Int) -> Interval { .seconds(Double(frames) / Double(rate)) }

    private func hundredths(_ length: Interval) -> Double { (length.milliseconds * 100).rounded() / 100 }

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
