internal import CV4L
package import Platform
package import Protocol
package import Timing

/// What becomes of each buffer that a camera's driver hands over: the sample, and what is to be said beside it.
///
/// It puts together the loss by counter or by interval, the stamps, the epochs, and what the bytes themselves tell.
/// Pure; owned by the camera's thread.
package struct FrameIntake: Sendable {
    package enum Output: Sendable {
        case event(DeviceEvent)
        case sample(Sample)
    }

    /// What the driver negotiated.
    package struct Shape: Sendable, Hashable {
        package var description: StreamDescription
        /// Bytes of a whole picture; nil for compressed ones.
        package var wholeSize: Int?
        /// What was asked for, frames a second.
        package var askedRate: Double
        /// The driver's picture, where it has to be arranged anew.
        package var source: V4L2Picture?

        package init(
            description: StreamDescription, wholeSize: Int?, askedRate: Double, source: V4L2Picture? = nil
        ) {
            self.description = description
            self.wholeSize = wholeSize
            self.askedRate = askedRate
            self.source = source
        }
    }

    /// A freeze of this many frames in a row is told.
    private static let freeze: Int64 = 15

    private var shape: Shape
    private var epoch: StreamEpoch
    private var hasBegun = false
    private var tracker: SequenceTracker
    private var intervals: IntervalLoss
    private var stamper: FrameStamper
    private var rate: RateWatch
    private var freeze = FreezeWatch()
    private var method = LossMethod.sequence
    private var frames: Int64 = 0
    /// Frames lost since the last one that was handed over.
    private var lost: Int64 = 0
    private var toldDamage = false
    private var toldCodec = false
    /// After a break the frames up to the next key frame can't be decoded.
    private var awaitsKey = false

    /// The stamp of the last sample that was handed over.
    package private(set) var lastCapture: Timestamp<HostTime>?

    package init(_ shape: Shape) {
        self.shape = shape
        let nominal = shape.description.nominalRate
        tracker = SequenceTracker(rate: nominal)
        intervals = IntervalLoss(rate: nominal)
        stamper = FrameStamper(rate: nominal)
        rate = RateWatch(asked: shape.askedRate)
        epoch = StreamEpoch(
            number: 0, start: Timestamp(nanoseconds: 0), cause: "the start", description: shape.description)
    }

    /// One frame interval, as the driver says it.
    package var period: Interval {
        shape.description.nominalRate.flatMap { $0 > 0 ? Interval.seconds(1 / $0) : nil } ?? .zero
    }

    /// The device was opened anew: counters and stamps say nothing of those before; the next frame begins an epoch.
    package mutating func reopened(_ shape: Shape, cause: String) {
        let (number, order) = (epoch.number, lastCapture)
        var next = FrameIntake(shape)
        next.epoch.number = number &+ 1
        next.epoch.cause = cause
        next.lastCapture = order
        next.lost = lost
        next.awaitsKey = true
        self = next
    }

    // MARK: Buffers

    /// Takes one buffer: what it holds, copied out of it before it goes back to the driver, and the clocks at that time.
    package mutating func take(_ filled: V4L2Filled, bytes: FrameBytes, at now: FrameStamper.Clocks) -> [Output] {
        var out: [Output] = []
        let buffer = BufferStamp(flags: filled.flags)
        let stamp = stamper.stamp(filled, at: now)
        if let change = stamp.change { clockChanged(change, buffer.moment, &out) }
        count(filled.sequence, stamp.capture, now.monotonic, &out)
        if let note = stamp.note { out.append(.event(.note(note))) }
        begin(at: stamp.capture, &out)
        frames &+= 1

        var flags = stamp.flags
        let isMarked = filled.flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0
        guard isUsable(filled, bytes, isMarked: isMarked) else {
            lost += 1
            tellDamage("the driver hands over damaged frames, which are left out and counted as lost", &out)
            return out
        }
        let bytes = arranged(bytes)
        sniff(bytes, at: stamp.capture, &out)
        let encoding = epoch.description.video?.encoding ?? .mjpeg
        if isMarked || (encoding == .mjpeg && !JPEGForm.isWhole(bytes)) {
            flags.insert(.damaged)
            tellDamage("the camera sends damaged frames, which are kept and flagged", &out)
        }
        let isKey = AccessUnit.isKey(bytes, encoding)
        if awaitsKey, !isKey {
            lost += 1
            return out
        }
        awaitsKey = false
        if freeze.repeats(bytes) { flags.insert(.repeated) }
        if freeze.run == Self.freeze {
            out.append(
                .event(.note("the picture stands still: \(Self.freeze) frames in a row are the same bit by bit")))
        }
        if let finding = rate.next(stamp.capture, lost: lost) { out.append(.event(.note(Self.words(finding, shape)))) }
        if lost > 0 {
            out.append(.event(.lost(count: lost, before: stamp.capture)))
            lost = 0
        }
        lastCapture = stamp.capture
        out.append(
            .sample(
                Sample(
                    payload: .frame(bytes, isKey: isKey), capture: stamp.capture,
                    uncertainty: stamp.uncertainty, arrival: now.monotonic, device: filled.stamp,
                    sequence: Int64(filled.sequence), flags: flags)))
        return out
    }

    /// What is still to be told when the stream ends or breaks off.
    package mutating func rest(at now: Timestamp<HostTime>) -> [DeviceEvent] {
        var events: [DeviceEvent] = []
        if method == .interval {
            events += intervals.rest().map { .lost(count: $0.count, before: $0.before) }
        }
        if lost > 0 { events.append(.lost(count: lost, before: now)) }
        lost = 0
        return events
    }

    // MARK: Losses

    private mutating func count(
        _ sequence: UInt32, _ capture: Timestamp<HostTime>, _ arrival: Timestamp<HostTime>, _ out: inout [Output]
    ) {
        let byInterval = intervals.next(capture)
        switch tracker.next(sequence, arrival: arrival) {
        case .continuous: break
        case .lost(let count): lost += count
        case .newEpoch: newEpoch("the driver's frame counter began anew", at: capture, &out)
        case .noCounter: methodChanged(to: .interval, "the driver's frame counter stands still", at: capture, &out)
        case .countsAgain: methodChanged(to: .sequence, "the driver's frame counter counts again", at: capture, &out)
        }
        guard method == .interval else { return }
        for finding in byInterval {
            out.append(.event(.lost(count: finding.count, before: finding.before)))
        }
    }

    private mutating func methodChanged(
        to new: LossMethod, _ cause: String, at capture: Timestamp<HostTime>, _ out: inout [Output]
    ) {
        guard new != method else { return }
        method = new
        epoch.description.lossMethod = new
        out.append(
            .event(.note("\(cause): lost frames are told by \(new == .interval ? "the distance of stamps" : "it")")))
        // A counter that has never counted is no change within the stretch, but what was true of it all along.
        if frames <= Int64(SequenceTracker.fewestRepeats) { announce(&out) } else { newEpoch(cause, at: capture, &out) }
    }

    // MARK: Epochs

    private mutating func clockChanged(
        _ change: (since: Timestamp<HostTime>, source: FrameStamper.Source), _ moment: BufferStamp.Moment,
        _ out: inout [Output]
    ) {
        let words = change.source.words(moment)
        guard words != epoch.description.timestampSource else { return }
        epoch.description.timestampSource = words
        epoch.description.capabilities.supportsPreciseTimestamps = change.source == .monotonic
        guard hasBegun else { return }
        newEpoch("the stamps are from another source: \(words)", at: change.since, &out)
    }

    private mutating func begin(at capture: Timestamp<HostTime>, _ out: inout [Output]) {
        guard !hasBegun else { return }
        hasBegun = true
        epoch.start = capture
        epoch.description.lossMethod = method
        announce(&out)
    }

    private mutating func newEpoch(_ cause: String, at capture: Timestamp<HostTime>, _ out: inout [Output]) {
        guard hasBegun else { return }
        epoch.number &+= 1
        epoch.start = capture
        epoch.cause = cause
        announce(&out)
    }

    private func announce(_ out: inout [Output]) { out.append(.event(.epoch(epoch))) }

    // MARK: Bytes

    /// A compressed frame is kept whatever the driver says of it; a picture with too few bytes can't be encoded.
    private func isUsable(_ filled: V4L2Filled, _ bytes: FrameBytes, isMarked: Bool) -> Bool {
        guard let whole = shape.wholeSize else { return bytes.count > 0 }
        return !isMarked && filled.bytesUsed >= whole && bytes.count >= whole
    }

    private func arranged(_ bytes: FrameBytes) -> FrameBytes {
        guard let source = shape.source, let arrangement = RawArrangement(source.fourCC) else { return bytes }
        return arrangement.arrange(bytes, source)
    }

    private mutating func sniff(_ bytes: FrameBytes, at capture: Timestamp<HostTime>, _ out: inout [Output]) {
        guard !toldCodec, shape.wholeSize == nil, let said = epoch.description.video?.encoding,
            let found = CodecSniffer.encoding(of: bytes)
        else { return }
        toldCodec = true
        guard found != said else { return }
        let sentence = "the camera says \(said.rawValue) and sends \(found.rawValue): it is recorded as what it is"
        epoch.description.video?.encoding = found
        epoch.description.findings = (epoch.description.findings ?? []) + [sentence]
        out.append(.event(.note(sentence)))
        if frames <= 1 { announce(&out) } else { newEpoch(sentence, at: capture, &out) }
    }

    private mutating func tellDamage(_ text: String, _ out: inout [Output]) {
        guard !toldDamage else { return }
        toldDamage = true
        out.append(.event(.note(text)))
    }

    private static func words(_ finding: RateWatch.Finding, _ shape: Shape) -> String {
        let asked = V4L2Choice.rate(shape.askedRate)
        return switch finding {
        case .slow(let rate):
            "frames come at \(V4L2Choice.rate(rate)) frames/s where \(asked) were asked for; give the camera more light, "
                + "or set exposure_dynamic_framerate to 0"
        case .asAsked(let rate): "frames come at \(V4L2Choice.rate(rate)) frames/s again"
        }
    }
}
