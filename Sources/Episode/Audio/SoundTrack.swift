package import Protocol
package import Timing

/// The sound of a video: a microphone's blocks laid along the video's time by their stamps, and encoded to AAC.
///
/// Time begins with the first frame: what was heard before it is left out. The card's clock is led after host time by
/// stretching, not by packets of other lengths: whoever decodes the track counts samples, and a minute of them must
/// last a minute. Holes become silence, which is written down. Used by one thread, the video's writer.
final class SoundTrack {
    private let feed: SoundFeed
    private let encoder: AACEncoder
    /// Output samples for an input sample.
    private let ratio: Double
    private var resampler: SincResampler
    private var pacer = SoundPacer()
    private var step: Double
    /// Where a block that is only observed should end, and the length of the block before.
    private var observedEnd: Timestamp<HostTime>?
    private var lastLength = 0.0
    private var origin: Timestamp<HostTime>?
    private var pending: [[Float]]
    /// Samples made since the origin.
    private var made: Int64 = 0
    /// Whether the resampler follows a block.
    private var follows = false
    private(set) var record: SoundRecord
    /// Whether anything was heard; else the track is nothing but silence.
    private(set) var hasHeard = false
    /// How long a block is waited for before silence is put in its place.
    private static let patience = Interval.seconds(10)
    /// A few blocks of a card, in seconds.
    private static let slack = 0.1

    var format: SoundFormat { encoder.format }

    /// `path` is that of the video, for messages.
    init(path: String, feed: SoundFeed) throws {
        self.feed = feed
        let channels = min(2, feed.format.channels)
        let rate = AACEncoder.rates.contains(feed.format.rate) ? feed.format.rate : 48_000
        encoder = try AACEncoder(path: path, rate: rate, channels: channels)
        ratio = Double(rate) / Double(max(1, feed.format.rate))
        step = 1 / ratio
        resampler = SincResampler(channels: channels, ratio: ratio)
        pending = [[Float]](repeating: [], count: channels)
        record = SoundRecord(
            source: feed.source, rate: rate, channels: channels, bitRate: encoder.format.bitRate)
    }

    /// The first frame of the video was taken at an instant; nothing is encoded before this is known.
    func begin(at origin: Timestamp<HostTime>) { if self.origin == nil { self.origin = origin } }

    /// Encodes what the microphone has delivered, while the video has come to `now`; `write` gets each packet.
    func pump(now: Timestamp<HostTime>, write: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard let origin else { return }
        for block in feed.take() {
            if block.bytes.isEmpty {
                observe(block)
            } else {
                try place(block, origin, write)
                try encode(write)
            }
        }
        // A microphone that says nothing: the silence grows with the video, not all at once when it comes back.
        try beSilent(until: now - Self.patience, origin, write)
    }

    /// Encodes the rest; the track ends no earlier than the video, which lasts until `end`.
    func finish(end: Timestamp<HostTime>, write: (UnsafeRawBufferPointer) throws -> Void) throws {
        try pump(now: end, write: write)
        guard let origin else { return }
        if follows { drainTail() }
        follows = false
        // A block that wasn't complete at the end is no silence.
        if (end - origin).seconds - Double(made) / Double(encoder.format.rate) > Self.slack {
            try beSilent(until: end, origin, write)
        }
        try encode(write)
        if !pending[0].isEmpty { try encoder.encode(pending, write: write) }
        try encoder.finish(write: write)
        if hasHeard { record.skewPPM = (-pacer.skew * 1e7).rounded() / 10 }
    }

    private func beSilent(
        until end: Timestamp<HostTime>, _ origin: Timestamp<HostTime>, _ write: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let wanted = ((end - origin).seconds * Double(encoder.format.rate)).rounded(.down)
        let known = Double(made) + (follows ? max(0, resampler.ahead / step) : 0)
        guard wanted < 1e15, wanted > known else { return }
        try move(to: wanted, origin, write)
        follows = false
    }

    // MARK: Placing

    private func observe(_ block: SoundFeed.Block) {
        let length = Double(block.frames) / Double(feed.format.rate)
        // As if it were heard: it is led in the same way, so that the sound takes over in the middle of it.
        if !block.isFresh, let end = observedEnd {
            let error = (block.capture - end).seconds
            if case .follow(let stretch) = pacer.judge(error: error, length: lastLength) {
                observedEnd = end + .seconds(length * (1 + stretch))
                lastLength = length
                return
            }
        }
        pacer.restart()
        observedEnd = block.capture + .seconds(length * (1 + pacer.skew))
        lastLength = length
    }

    private func place(
        _ block: SoundFeed.Block, _ origin: Timestamp<HostTime>, _ write: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let rate = Double(encoder.format.rate)
        let length = Double(block.frames) / Double(feed.format.rate)
        let wanted = (block.capture - origin).seconds * rate
        guard wanted.isFinite, abs(wanted) < 1e15, wanted + length * rate > Double(made) else { return }
        hasHeard = true
        defer { lastLength = length }
        if follows, !block.isFresh {
            let expected = Double(made) + resampler.ahead / step
            if case .follow(let stretch) = pacer.judge(error: (wanted - expected) / rate, length: lastLength) {
                step = 1 / (ratio * (1 + stretch))
                return append(block)
            }
        }
        // The first block behind those that were only observed has its place from all of them.
        var place = wanted
        if !follows, !block.isFresh, let end = observedEnd {
            let error = (block.capture - end).seconds
            if case .follow = pacer.judge(error: error, length: lastLength) {
                place = (end - origin).seconds * rate
            }
        }
        observedEnd = nil
        try move(to: place, origin, write)
        follows = true
        if place == wanted { pacer.restart() }
        step = 1 / (ratio * (1 + pacer.skew))
        append(block)
    }

    /// Fills up with silence to where the next input sample is to be heard, and begins anew there.
    private func move(
        to wanted: Double, _ origin: Timestamp<HostTime>, _ write: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        if follows { drainTail() }
        let (before, place) = (made, max(Int64(wanted.rounded(.up)), made))
        while made < place {
            let count = min(place - made, Int64(encoder.format.rate))
            for channel in pending.indices { pending[channel].append(contentsOf: repeatElement(0, count: Int(count))) }
            made += count
            try encode(write)
        }
        resampler.restart(offset: (Double(place) - wanted) / ratio)
        record.addSilence(
            from: origin + .seconds(Double(before) / Double(encoder.format.rate)),
            to: origin + .seconds(Double(place) / Double(encoder.format.rate)))
    }

    private func append(_ block: SoundFeed.Block) {
        resampler.push(feed.format.floats(block.bytes, frames: block.frames, channels: pending.count))
        made += Int64(resampler.pull(step: step, into: &pending))
    }

    /// What the resampler holds back is given out with silence behind it.
    private func drainTail() {
        let count = max(0, Int((resampler.ahead / step).rounded(.down)))
        resampler.pushSilence(2 * resampler.reach)
        made += Int64(resampler.pull(step: step, atMost: count, into: &pending))
    }

    private func encode(_ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        while pending[0].count >= AACEncoder.packetFrames {
            try encoder.encode(pending, write: write)
            for channel in pending.indices { pending[channel].removeFirst(AACEncoder.packetFrames) }
        }
    }
}

/// What a manifest says of the sound in a video.
package struct SoundRecord: Codable, Sendable, Hashable {
    /// The stream of the microphone.
    package var source: StreamID
    package var codec = "aac"
    package var rate: Int
    package var channels: Int
    /// Bits a second.
    package var bitRate: Int
    /// What the microphone's clock was found to be off by, positive when it runs fast; the track is stretched by it.
    package var skewPPM: Double?
    /// Where there's silence in the track because the microphone delivered nothing.
    package var silences: [ManifestStream.Gap] = []
    package var silenceCount: Int64 = 0
    package var silenceLength = Interval.zero

    init(source: StreamID, rate: Int, channels: Int, bitRate: Int) {
        self.source = source
        self.rate = rate
        self.channels = channels
        self.bitRate = bitRate
    }

    mutating func addSilence(from: Timestamp<HostTime>, to: Timestamp<HostTime>) {
        if let last = silences.last, from - last.to < .milliseconds(1), silenceCount == silences.count {
            // It went on.
            silenceLength = silenceLength + (to - last.to)
            silences[silences.count - 1].to = to
            return
        }
        guard to - from >= .milliseconds(1) else { return }
        silenceCount += 1
        silenceLength = silenceLength + (to - from)
        guard silences.count < ManifestStream.gapLimit else { return }
        silences.append(ManifestStream.Gap(from: from, to: to, cause: "the microphone delivered nothing"))
    }

    private enum CodingKeys: String, CodingKey {
        case source = "stream_id"
        case codec
        case rate = "sample_rate"
        case channels
        case bitRate = "bit_rate"
        case skewPPM = "skew_ppm"
        case silences
        case silenceCount = "silence_count"
        case silenceLength = "silence_length_ns"
    }
}
