internal import CV4L

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

    /// For the manifest, of a clock that is CLOCK_MONOTONIC.
    package static func words(_ moment: Moment) -> String {
        switch moment {
        case .endOfFrame: "driver, CLOCK_MONOTONIC, end of frame"
        case .startOfExposure: "driver, CLOCK_MONOTONIC, start of exposure"
        }
    }

    /// What the flags alone promise, before a frame has come.
    package var promise: FrameStamper.Source {
        switch clock {
        case .monotonic: .monotonic
        case .copy: .copied
        case .unknown: .unnamed
        }
    }
}
