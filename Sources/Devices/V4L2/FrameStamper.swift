package import Timing

/// Decides for each frame whether the driver's stamp is its capture time.
///
/// The driver's word on its clock is held against the clocks of this machine, frame by frame: drivers that say
/// CLOCK_MONOTONIC have been seen to give wall-clock time, zero, and the same stamp again. A frame whose stamp can't be
/// used has its arrival as capture time, with a wider uncertainty, and a flag; the raw stamp stays beside it.
package struct FrameStamper: Sendable {
    /// The clocks of this machine at one instant, ns.
    package struct Clocks: Sendable, Hashable {
        package var monotonic: Timestamp<HostTime>
        package var wall: Int64
        package var boottime: Int64

        package init(monotonic: Timestamp<HostTime>, wall: Int64, boottime: Int64) {
            self.monotonic = monotonic
            self.wall = wall
            self.boottime = boottime
        }
    }

    /// What a stamp is on.
    package enum Source: Sendable, Hashable {
        case monotonic, unnamed, copied
        /// It says CLOCK_MONOTONIC and is on another clock, or on none that is known.
        case realtime, boottime, nonsense

        /// For the manifest; `moment` is of the driver's flags.
        package func words(_ moment: BufferStamp.Moment) -> String {
            let arrival = "arrival in the program, CLOCK_MONOTONIC"
            return switch self {
            case .monotonic: BufferStamp.words(moment)
            case .unnamed: "\(arrival): the driver doesn't name its clock"
            case .copied: "\(arrival): the driver copies stamps of an unknown clock"
            case .realtime: "\(arrival): the driver says CLOCK_MONOTONIC and gives CLOCK_REALTIME"
            case .boottime: "\(arrival): the driver says CLOCK_MONOTONIC and gives CLOCK_BOOTTIME"
            case .nonsense: "\(arrival): the driver's stamps are on no clock of this machine"
            }
        }
    }

    package struct Stamp: Sendable, Hashable {
        package var capture: Timestamp<HostTime>
        package var uncertainty: Interval
        package var flags: SampleFlags
        /// Of this frame.
        package var source: Source
        /// Set when the clock of the stream has changed; `since` is the first frame of the new one.
        package var change: (since: Timestamp<HostTime>, source: Source)? {
            changed.map { ($0, source) }
        }
        /// A sentence, told once.
        package var note: String?
        fileprivate var changed: Timestamp<HostTime>?
    }

    /// How late an interrupt, or a USB frame's host stamp, may be against the event it stands for.
    package static let driverUncertainty = Interval.milliseconds(1)
    /// Drivers hold a handful of buffers; a stamp older than this is of another clock.
    package static let oldest = Interval.milliseconds(10_000)
    /// Some drivers stamp the end of a frame in advance; a stamp further in the future is of another clock.
    package static let newest = Interval.milliseconds(100)
    /// As many frames in a row are on another clock before the stream is said to be: one wild stamp is no new clock.
    package static let settled = 3

    private let period: Interval
    private var lastDevice: Timestamp<DeviceTime>?
    private var lastCapture: Timestamp<HostTime>?
    private var source: Source?
    private var other: (source: Source, since: Timestamp<HostTime>, frames: Int)?
    private var hasToldRepeat = false
    /// The furthest that a stamp has been in the future of its arrival.
    private var ahead = Interval.zero

    package init(rate: Double?) {
        period = rate.flatMap { $0 > 0 ? Interval.seconds(1 / $0) : nil } ?? .milliseconds(100)
    }

    package mutating func stamp(_ buffer: V4L2Filled, at now: Clocks) -> Stamp {
        let found = classify(buffer, now)
        var result = Stamp(
            capture: now.monotonic, uncertainty: max(period, .milliseconds(10)), flags: [], source: found)
        let repeats = found == .monotonic && lastDevice.map { buffer.stamp <= $0 } ?? false
        if found == .monotonic, !repeats {
            byDriver(buffer, now, &result)
        } else {
            result.flags.insert(.stampedOnArrival)
            if repeats { result.flags.insert(.stampRepeats) }
            if [.realtime, .boottime, .nonsense].contains(found) { result.flags.insert(.stampImplausible) }
            if repeats, !hasToldRepeat {
                hasToldRepeat = true
                result.note = "the driver's stamps don't always increase: such frames are stamped on arrival"
            }
        }
        keepOrder(&result)
        settle(found, &result)
        // A stamp of another clock says nothing of the next one on this.
        if found == .monotonic { lastDevice = buffer.stamp }
        lastCapture = result.capture
        return result
    }

    private mutating func byDriver(_ buffer: V4L2Filled, _ now: Clocks, _ result: inout Stamp) {
        result.capture = Timestamp(nanoseconds: buffer.stamp.nanoseconds)
        // A frame can't be taken after it has arrived: such a stamp is off by that much at least.
        let early = result.capture - now.monotonic
        if early > Self.driverUncertainty, ahead <= Self.driverUncertainty {
            result.note = "the driver stamps frames in advance, \(early.milliseconds) ms after their arrival"
        }
        ahead = max(ahead, early)
        result.uncertainty = max(Self.driverUncertainty, ahead)
    }

    /// After frames that were stamped on arrival the driver's next stamp may lie before them.
    private func keepOrder(_ result: inout Stamp) {
        guard let lastCapture, result.capture <= lastCapture else { return }
        let moved = lastCapture + .nanoseconds(1)
        result.uncertainty = result.uncertainty + (moved - result.capture)
        result.capture = moved
        result.flags.insert(.stampMoved)
    }

    /// Whether the stream as a whole is on another clock now.
    private mutating func settle(_ found: Source, _ result: inout Stamp) {
        guard let source else {
            self.source = found
            result.changed = result.capture
            return
        }
        guard found != source else {
            other = nil
            return
        }
        if other?.source != found { other = (found, result.capture, 0) }
        other?.frames += 1
        guard let other, other.frames >= Self.settled else { return }
        self.source = found
        self.other = nil
        result.changed = other.since
    }

    private func classify(_ buffer: V4L2Filled, _ now: Clocks) -> Source {
        switch BufferStamp(flags: buffer.flags).clock {
        case .unknown: return .unnamed
        case .copy: return .copied
        case .monotonic: break
        }
        let stamp = buffer.stamp.nanoseconds
        func isNear(_ clock: Int64) -> Bool {
            let age = Timestamp<HostTime>(nanoseconds: clock) - Timestamp<HostTime>(nanoseconds: stamp)
            return age >= -Self.newest && age <= Self.oldest
        }
        if isNear(now.monotonic.nanoseconds) { return .monotonic }
        if isNear(now.wall) { return .realtime }
        return isNear(now.boottime) ? .boottime : .nonsense
    }
}
