internal import Protocol

/// What the container has to know of a track before its first packet.
struct VideoTrack {
    enum Codec {
        case h264, hevc, mjpeg
    }

    var codec: Codec
    var width: Int
    var height: Int
    /// Parameter sets in Annex B form, or empty.
    var extradata: [UInt8]
    /// Frames a second, for players; stamps are real whatever it is.
    var nominalRate: Double
    /// Whether the samples hold parameter sets too, which may differ from the ones above (ISO/IEC 14496-15: `avc3`).
    var hasParametersInside = false

    /// Four letters as libavformat has them: the first in the lowest byte.
    static func tag(_ letters: String) -> UInt32 { letters.utf8.reversed().reduce(0) { $0 << 8 | UInt32($1) } }
}

/// Ticks of the containers' clock: 90 kHz, 11 µs.
///
/// A finer clock would let libav's MP4 muxer, whose sample durations have 31 bits, falsify a gap of over 36 minutes;
/// this one takes 6 hours. The exact stamps are in the time stamp file.
enum Ticks {
    static let perSecond: Int64 = 90_000
    /// The longest time between two frames that the container can hold.
    static let longestGap: Int64 = Int64(Int32.max) - perSecond

    /// From nanoseconds, rounded to the nearest, saturating.
    static func from(nanoseconds: Int64) -> Int64 {
        let limit: Int64 = 1_000_000_000_000_000_000
        let value = min(max(nanoseconds, -limit), limit) * 9
        return (value + (value < 0 ? -50_000 : 50_000)) / 100_000
    }
}

/// Makes the stamps of a container from capture times: relative to the first, strictly rising.
///
/// A capture time that isn't later than the one before gets the next tick, one that is too far ahead gets the nominal
/// step; both are counted, and no frame is left out.
struct StampGuard {
    private let step: Int64
    private var first: Int64?
    private var last: Int64?
    private(set) var adjusted: Int64 = 0

    init(nominalRate: Double) {
        let ticks = Double(Ticks.perSecond) / nominalRate
        step = ticks.isFinite && ticks >= 1 && ticks < 1e9 ? Int64(ticks.rounded()) : Ticks.perSecond / 30
    }

    /// How long a frame is taken to last when none follows.
    var nominalStep: Int64 { step }

    mutating func stamp(captureNanoseconds: Int64) -> Int64 {
        guard let first, let last else {
            self.first = captureNanoseconds
            self.last = 0
            return 0
        }
        let (distance, overflow) = captureNanoseconds.subtractingReportingOverflow(first)
        var ticks = Ticks.from(nanoseconds: overflow ? (captureNanoseconds < first ? .min : .max) : distance)
        if ticks <= last {
            ticks = last + 1
            adjusted += 1
        } else if ticks - last > Ticks.longestGap {
            ticks = last + step
            adjusted += 1
        }
        self.last = ticks
        return ticks
    }
}
