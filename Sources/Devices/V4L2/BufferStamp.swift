internal import CV4L
package import Timing

/// Where a buffer's stamp comes from, by the flags that the driver set on it.
package struct BufferStamp: Sendable, Hashable {
    package enum Clock: Sendable, Hashable {
        case monotonic
        /// Taken over from another queue; of an unknown clock.
        case copy
        case unknown
    }

    package enum Moment: Sendable, Hashable { case endOfFrame, startOfExposure }

    package var clock: Clock
    package var moment: Moment

    package init(flags: UInt32) {
        clock =
            switch flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) {
            case UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC): .monotonic
            case UInt32(V4L2_BUF_FLAG_TIMESTAMP_COPY): .copy
            default: .unknown
            }
        let source = flags & UInt32(V4L2_BUF_FLAG_TSTAMP_SRC_MASK)
        moment = source == UInt32(V4L2_BUF_FLAG_TSTAMP_SRC_SOE) ? .startOfExposure : .endOfFrame
    }

    /// For the manifest.
    package var words: String {
        switch (clock, moment) {
        case (.monotonic, .endOfFrame): "driver, CLOCK_MONOTONIC, end of frame"
        case (.monotonic, .startOfExposure): "driver, CLOCK_MONOTONIC, start of exposure"
        case (.copy, _): "arrival in the program, CLOCK_MONOTONIC: the driver copies stamps of an unknown clock"
        case (.unknown, _): "arrival in the program, CLOCK_MONOTONIC: the driver doesn't name its clock"
        }
    }
}

/// Decides for each frame whether the driver's stamp is its capture time.
package struct FrameStamper: Sendable {
    package struct Stamp: Sendable, Hashable {
        package var capture: Timestamp<HostTime>
        package var uncertainty: Interval
        /// Set when the way of stamping has changed with this frame.
        package var change: String?
    }

    /// How late an interrupt, or a USB frame's host stamp, may be against the event it stands for.
    package static let driverUncertainty = Interval.milliseconds(1)
    /// Drivers hold a handful of buffers; a stamp older than this is of another clock.
    package static let oldest = Interval.milliseconds(10_000)
    /// Some drivers stamp the end of a frame in advance; a stamp further in the future is of another clock.
    package static let newest = Interval.milliseconds(100)

    private enum Way: Equatable {
        case driver
        case arrival(String)
    }

    private let period: Interval
    private var last: Timestamp<DeviceTime>?
    private var way: Way?
    /// The furthest that a stamp has been in the future of its arrival.
    private var ahead = Interval.zero

    package init(rate: Double?) {
        period = rate.flatMap { $0 > 0 ? Interval.seconds(1 / $0) : nil } ?? .milliseconds(100)
    }

    package mutating func stamp(_ buffer: V4L2Filled, arrival: Timestamp<HostTime>) -> Stamp {
        let new = judge(buffer, arrival)
        defer {
            way = new
            last = buffer.stamp
        }
        var change: String?
        if new != way {
            if case .arrival(let cause) = new {
                change = "frames are stamped on arrival from here on: \(cause)"
            } else if way != nil {
                change = "frames are stamped by the driver again"
            }
        }
        if new == .driver {
            let capture = Timestamp<HostTime>(nanoseconds: buffer.stamp.nanoseconds)
            // A frame can't be taken after it has arrived: such a stamp is off by that much at least.
            let early = capture - arrival
            if early > Self.driverUncertainty, ahead <= Self.driverUncertainty {
                change = "the driver stamps frames in advance, \(early.milliseconds) ms after their arrival"
            }
            ahead = max(ahead, early)
            return Stamp(capture: capture, uncertainty: max(Self.driverUncertainty, ahead), change: change)
        }
        // A frame that arrives was taken within the frame time before it, and waited for the transfer.
        return Stamp(capture: arrival, uncertainty: max(period, .milliseconds(10)), change: change)
    }

    private func judge(_ buffer: V4L2Filled, _ arrival: Timestamp<HostTime>) -> Way {
        switch BufferStamp(flags: buffer.flags).clock {
        case .unknown: return .arrival("the driver doesn't name its clock")
        case .copy: return .arrival("the driver copies stamps of an unknown clock")
        case .monotonic: break
        }
        let age = arrival - Timestamp<HostTime>(nanoseconds: buffer.stamp.nanoseconds)
        if age < -Self.newest || age > Self.oldest {
            return .arrival("the driver's stamp isn't on CLOCK_MONOTONIC, though it says so")
        }
        if let last, buffer.stamp <= last { return .arrival("the driver's stamps don't increase") }
        return .driver
    }
}
