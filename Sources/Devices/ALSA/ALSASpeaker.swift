internal import Platform
package import Protocol
package import Timing

/// A sound card that plays: silence up to the instant, the sound, and silence after it.
///
/// The card runs for a third of a second before the sound, so that its own position tells which sample frame leaves at
/// the instant. What is reported is measured while the sound plays.
///
/// Concurrency: all of it runs on its own event loop's thread, which waits for the card while a sound is written.
package actor ALSASpeaker: ChirpSpeaker {
    package static let name = "alsa"
    /// For errors: a speaker isn't a stream.
    private static let id = StreamID(unchecked: "speaker")
    private static let log = Log("speaker")

    private struct Opened {
        let pcm: any PCMPort
        let shape: PCMShape
    }

    private static let period = Interval.milliseconds(10)
    private static let buffer = Interval.milliseconds(500)
    /// Before the instant: run-in of the card, measuring, and room for a late wake-up.
    private static let lead = Interval.milliseconds(400)
    /// Written before the card starts; what is measured must be over before this has left.
    private static let runIn = Interval.milliseconds(200)
    private static let measuring = Interval.milliseconds(60)
    /// After the sound: loopback cards lose the last milliseconds of what is played, others click when they stop.
    private static let tail = Interval.milliseconds(250)
    private static let longest = 60
    /// A run-in that runs dry before the sound is begun again.
    private static let mostRunIns = 5

    package nonisolated let label: String
    private let pcmName: PCMName
    private let rate: Int
    private let channels: Int
    private let system: SoundSystem
    private let loop = EventLoop(name: "speaker")
    private var opened: Opened?
    private var isPlaying = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(name: PCMName, rate: Int = 48_000, channels: Int = 2, system: SoundSystem = .alsa) {
        pcmName = name
        self.system = system
        self.rate = rate
        self.channels = channels
        label = "sound card '\(name)'"
    }

    /// Keys: `card`, `port` and `device`, or `pcm`; `rate`, `channels`.
    package init(from reader: inout ConfigReader) throws(ConfigReader.Invalid) {
        let name = try PCMName(from: &reader)
        let rate = try reader.integer("rate", default: 48_000, in: 8_000...192_000)
        let channels = try reader.integer("channels", default: 2, in: 1...64)
        self.init(name: name, rate: Int(rate), channels: Int(channels))
    }

    package func open() throws -> Int {
        close()
        let finding = pcmName.find(in: system.cards(.playback))
        let pcm: any PCMPort
        do throws(Errno) {
            switch finding {
            case .absent, .other: throw .noSuchFile
            case .found, .unlisted: pcm = try system.open(pcmName.opened(finding), .playback)
            }
        } catch {
            throw fault(error, .open)
        }
        do throws(Errno) {
            let shape = try pcm.negotiate(
                PCMWish(
                    encodings: [.s16, .s32, .s24, .f32], rate: rate, channels: channels, period: Self.period,
                    buffer: Self.buffer))
            opened = Opened(pcm: pcm, shape: shape)
            return shape.format.rate
        } catch {
            pcm.close()
            throw fault(error, .format)
        }
    }

    /// Plays; returns when the last sample has left.
    ///
    /// An instant that is past or too near is played as soon as possible: the returned emission says when that was. A
    /// task that is cancelled before the card has begun takes the sound back and throws `CancellationError`.
    package func play(_ samples: [Float], at instant: Timestamp<HostTime>) async throws -> Emission {
        guard let opened else {
            throw DeviceError(.notFound, stream: Self.id, cause: "\(label) isn't open", cure: "open it first")
        }
        let mostSamples = Self.longest * opened.shape.format.rate
        guard samples.count <= mostSamples, samples.allSatisfy({ $0.isFinite }) else {
            throw DeviceError(
                .unsupported, stream: Self.id,
                cause: "a sound of \(samples.count) samples, or with values that are no numbers, can't be played",
                cure: "play at most \(mostSamples) finite samples at a time")
        }
        guard !isPlaying else {
            throw DeviceError(
                .busy, stream: Self.id, cause: "\(label) is playing another sound", cure: "wait until it has ended")
        }
        isPlaying = true
        defer { isPlaying = false }
        // Made before the card runs: from then on there is no time to lose.
        let format = opened.shape.format
        let sound = PCMSamples.bytes(
            samples, format.encoding, channels: format.channels, isPadded: opened.shape.isPadded)
        try await loop.sleep(until: instant - Self.lead)
        do {
            defer { opened.pcm.drop() }
            for _ in 0..<Self.mostRunIns {
                if let place = try await runIn(for: instant, opened) { return try await emit(sound, place, opened) }
            }
            throw Errno.brokenPipe
        } catch let error as Errno {
            if error == .brokenPipe {
                throw DeviceError(
                    .inputOutput, stream: Self.id,
                    cause: "\(label) ran out of sound while it played: the machine was too busy to feed it in time",
                    cure: "close other programs on this host")
            }
            throw fault(error, .write)
        }
    }

    package func close() {
        opened?.pcm.close()
        opened = nil
    }

    // MARK: One sound, on the loop's thread

    /// How far has been written, and what is known of the time of one frame.
    private struct Progress {
        var written = 0
        var estimate: EmissionEstimate
    }

    /// Where in what is written the sound begins.
    private struct Place {
        var frame: Int
        var progress: Progress
    }

    /// Starts the card with silence, and writes silence up to the instant.
    ///
    /// - Returns: nil when the silence ran dry.
    private func runIn(for instant: Timestamp<HostTime>, _ opened: Opened) async throws -> Place? {
        let shape = opened.shape
        opened.pcm.drop()
        try opened.pcm.prepare()
        var progress = Progress(estimate: EmissionEstimate(of: 0, shape))
        do throws(Errno) {
            try feed(silence(min(frames(Self.runIn, shape), shape.bufferFrames), shape), opened, &progress)
            try opened.pcm.start()
            let end = HostClock.now + Self.measuring
            while HostClock.now < end {
                progress.estimate.take(try opened.pcm.ask(), written: progress.written)
                try? await loop.sleep(for: .milliseconds(5))
            }
            guard let beginning = progress.estimate.emission else { return nil }
            // From here on the sound can be placed to a sample frame.
            let wanted = (instant - beginning.instant).seconds * Double(shape.format.rate)
            let frame = wanted < Double(progress.written) ? progress.written : Int(min(wanted, 1e9).rounded())
            let late = Interval.seconds((Double(frame) - wanted) / Double(shape.format.rate))
            if late > .milliseconds(1) {
                Self.log.warning(
                    "the sound due at \(instant) leaves \(late.milliseconds) ms late: it was asked for too late")
            }
            try feed(silence(frame - progress.written, shape), opened, &progress)
            return Place(frame: frame, progress: progress)
        } catch {
            guard error == .brokenPipe else { throw error }
            return nil
        }
    }

    private func emit(_ sound: [UInt8], _ place: Place, _ opened: Opened) async throws -> Emission {
        let shape = opened.shape
        var progress = place.progress
        progress.estimate = EmissionEstimate(of: place.frame, shape)
        try feed(sound + silence(frames(Self.tail, shape), shape), opened, &progress)
        try await drain(place.frame + sound.count / shape.cardBytesPerFrame, opened, &progress)
        guard let emission = progress.estimate.emission else { throw Errno.inputOutput }
        return emission
    }

    /// Writes all of it, measuring on the way.
    private func feed(_ bytes: [UInt8], _ opened: Opened, _ progress: inout Progress) throws(Errno) {
        var rest = bytes[...]
        let size = opened.shape.cardBytesPerFrame
        var idle = 0
        while !rest.isEmpty {
            let taken = try opened.pcm.write(rest, opened.shape)
            rest = rest.dropFirst(taken * size)
            progress.written += taken
            if taken == 0 {
                // Ten times a tenth of a second without a step: the card stands still.
                let isReady = try opened.pcm.wait(milliseconds: 100)
                idle = isReady ? 0 : idle + 1
                if idle >= 10 { throw .timedOut }
            }
            progress.estimate.take(try opened.pcm.ask(), written: progress.written)
        }
    }

    /// Waits until the sound, and enough silence after it, has left.
    private func drain(_ end: Int, _ opened: Opened, _ progress: inout Progress) async throws {
        let rest = Interval.seconds(Double(opened.shape.bufferFrames) / Double(opened.shape.format.rate))
        let deadline = HostClock.now + rest + .milliseconds(500)
        let target = end + frames(Self.tail, opened.shape) / 2
        while HostClock.now < deadline {
            let status = try opened.pcm.ask()
            progress.estimate.take(status, written: progress.written)
            // It stops by itself when the silence after the sound has left too.
            if status.state != .running || progress.written - status.delay >= target { return }
            try? await loop.sleep(for: .milliseconds(10))
        }
    }

    private func frames(_ length: Interval, _ shape: PCMShape) -> Int {
        Int(length.seconds * Double(shape.format.rate))
    }

    private func silence(_ frames: Int, _ shape: PCMShape) -> [UInt8] {
        [UInt8](repeating: 0, count: frames * shape.cardBytesPerFrame)
    }

    private func fault(_ error: Errno, _ operation: ALSAFault.Operation) -> DeviceError {
        system.fault(error, operation, pcmName, .playback).error(for: Self.id)
    }
}
