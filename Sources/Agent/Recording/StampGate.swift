package import Devices
package import Protocol
package import Timing

/// Lets exactly the samples with T0 ≤ capture < T1 into the files; sound is cut at the sample frame.
package struct StampGate: Sendable, Hashable {
    package enum Verdict: Sendable {
        case before
        case inside(Sample)
        /// The part of a block that lies inside; the block may reach beyond T1.
        case cut(Sample)
        case after
    }

    package let start: Timestamp<HostTime>
    package var stop: Timestamp<HostTime>
    /// Set for sound.
    private let format: AudioFormat?
    /// Whether a sample at or after T1 has come: no more is missing.
    package private(set) var isPassed = false

    package init(start: Timestamp<HostTime>, stop: Timestamp<HostTime>, audio format: AudioFormat? = nil) {
        self.start = start
        self.stop = stop
        self.format = format
    }

    package mutating func judge(_ sample: Sample) -> Verdict {
        if case .audio(let bytes, let frames) = sample.payload, let format {
            return judge(sample, bytes, frames: frames, format)
        }
        if sample.capture < start { return .before }
        if sample.capture >= stop {
            isPassed = true
            return .after
        }
        return .inside(sample)
    }

    private mutating func judge(_ sample: Sample, _ bytes: [UInt8], frames: Int, _ format: AudioFormat) -> Verdict {
        let first = Self.framesBefore(start, from: sample.capture, frames: frames, rate: format.rate)
        let end = Self.framesBefore(stop, from: sample.capture, frames: frames, rate: format.rate)
        if end < frames || (frames == 0 && sample.capture >= stop) { isPassed = true }
        if first >= frames { return .before }
        if end <= first { return .after }
        if first == 0 && end == frames { return .inside(sample) }
        let size = format.bytesPerFrame
        guard end * size <= bytes.count else { return .inside(sample) }
        var part = sample
        part.payload = .audio(Array(bytes[first * size..<end * size]), frames: end - first)
        part.capture = sample.capture + Self.length(first, rate: format.rate)
        if first > 0 {
            // They belong to the block's first frame, which is not in the file.
            part.device = nil
            part.sequence = nil
        }
        return .cut(part)
    }

    /// How many of a block's sample frames are taken before an instant: frame i is taken at i/rate after the first.
    static func framesBefore(_ instant: Timestamp<HostTime>, from capture: Timestamp<HostTime>, frames: Int, rate: Int)
        -> Int
    {
        let ahead = instant - capture
        if ahead <= .zero || frames <= 0 || rate <= 0 { return 0 }
        if ahead > length(frames, rate: rate) { return frames }
        // ahead ≤ frames/rate, so the product is at most frames × 1e9, which is far inside Int64 for any block.
        let (product, overflow) = ahead.nanoseconds.multipliedReportingOverflow(by: Int64(rate))
        if overflow { return frames }
        return min(frames, Int(product / 1_000_000_000) + (product % 1_000_000_000 > 0 ? 1 : 0))
    }

    /// The length of so many sample frames, rounded to the nanosecond.
    static func length(_ frames: Int, rate: Int) -> Interval {
        guard rate > 0 else { return .zero }
        return .seconds(Double(frames) / Double(rate))
    }
}
