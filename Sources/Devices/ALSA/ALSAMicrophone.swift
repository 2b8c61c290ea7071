internal import Platform
package import Protocol
internal import Timing

/// A sound card that captures: blocks of 20 ms with the card's own stamps, overruns as gaps of measured length.
///
/// A block's sequence is the number of its first sample frame among those that were read since the start. A card that is
/// unplugged is waited for: when it comes back, in whatever order the kernel counts the cards then, the stream goes on
/// after a gap.
///
/// Concurrency: all of it runs on its own event loop's thread, which waits for the card while it captures, a tenth of a
/// second at most at a time; the sink is called there.
package actor ALSAMicrophone: CaptureDevice {
    private struct Opened {
        let pcm: any PCMPort
        let shape: PCMShape
        /// Nil for a name of alsa-lib's.
        let card: SoundCard?
        let notes: [String]
    }

    private struct Run {
        let sink: any SampleSink
        let start: Timestamp<HostTime>
        let format: AudioFormat
        var stamper: BlockStamper
        var frames: Int64 = 0
        /// Where a gap began that isn't told yet, and why.
        var gap: (from: Timestamp<HostTime>, cause: String)?
        /// Restarts without a block in between.
        var restarts = 0
        /// When the frames so far could have been captured at the earliest: a PCM without a clock must not flood.
        var due: Timestamp<HostTime>
        /// Set while the card is gone.
        var absence: Absence?
    }

    private struct Absence {
        let card: SoundCard
        let since: Timestamp<HostTime>
        /// Why a card that is there again can't be used; told once.
        var problem: String?
    }

    private static let period = Interval.milliseconds(20)
    /// What a machine may stand still without a loss; a card that has less gives what it has.
    private static let buffer = Interval.milliseconds(2_000)
    private static let mostRestarts = 10
    /// How often an absent card is looked for.
    private static let lookInterval = Interval.milliseconds(500)

    package nonisolated let stream: StreamID
    private let options: ALSAMicrophoneOptions
    private let system: SoundSystem
    private let loop: EventLoop
    private let log: Log
    private var opened: Opened?
    private var run: Run?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - stream: its name.
    ///   - options: what is asked of the card.
    ///   - system: the machine's, or a scripted one.
    package init(_ stream: StreamID, _ options: ALSAMicrophoneOptions, system: SoundSystem = .alsa) {
        self.stream = stream
        self.options = options
        self.system = system
        loop = EventLoop(name: "mic-\(stream)")
        log = Log("microphone \(stream)")
    }

    // MARK: Life

    package func open() throws -> StreamDescription {
        close()
        let opened = try connect(options.name.find(in: system.cards(.capture)))
        self.opened = opened
        for note in opened.notes { log.warning(note) }
        return description(opened)
    }

    package func start(_ sink: any SampleSink) throws {
        guard let opened else {
            throw DeviceError(.notFound, stream: stream, cause: "the microphone isn't open", cure: "open it first")
        }
        precondition(run == nil, "\(stream) was started twice")
        do throws(Errno) {
            try opened.pcm.prepare()
            try opened.pcm.start()
        } catch {
            throw fault(opened.pcm.cause(of: error), .start)
        }
        let now = system.now()
        run = Run(
            sink: sink, start: now, format: options.format(of: opened.shape), stamper: stamper(opened.shape), due: now)
        for note in opened.notes { sink.report(.note(note)) }
        loop.perform { [weak self] in self?.assumeIsolated { $0.step() } }
    }

    package func stop() {
        guard let run else { return }
        self.run = nil
        opened?.pcm.drop()
        if let gap = run.gap { run.sink.report(.gap(from: gap.from, to: system.now(), cause: gap.cause)) }
        if let report = run.stamper.report { run.sink.report(.clock(report)) }
        // A card that is gone has to be looked for anew.
        if run.absence != nil { close() }
    }

    package func close() {
        stop()
        opened?.pcm.close()
        opened = nil
    }

    // MARK: Opening

    private func connect(_ finding: PCMName.Finding) throws -> Opened {
        if case .other(let card) = finding {
            throw DeviceError(
                .notFound, stream: stream,
                cause: "port \(card.port ?? "") holds sound card '\(card.id)', not '\(options.name.card ?? "")'",
                cure: "plug the right one in there, or write what `downbeat-agent devices` shows into agent.json5")
        }
        let pcm: any PCMPort
        do throws(Errno) {
            if case .absent = finding { throw .noSuchFile }
            pcm = try system.open(options.name.opened(finding), .capture)
        } catch {
            throw fault(error, .open)
        }
        do throws(Errno) {
            let shape = try pcm.negotiate(
                PCMWish(
                    encodings: options.format.encodings, rate: options.rate, channels: options.channels,
                    period: Self.period, buffer: Self.buffer))
            if let last = options.picked.max(), last > shape.format.channels { throw .invalidArgument }
            var card: SoundCard?
            if case .found(let found) = finding { card = found }
            return Opened(pcm: pcm, shape: shape, card: card, notes: differences(shape))
        } catch {
            pcm.close()
            throw fault(error, .format)
        }
    }

    private func stamper(_ shape: PCMShape) -> BlockStamper {
        BlockStamper(
            rate: shape.format.rate, period: shape.period, isBatch: shape.isBatch, isMonotonic: shape.isMonotonic)
    }

    /// Asked against got, in words.
    private func differences(_ shape: PCMShape) -> [String] {
        var notes: [String] = []
        if shape.format.rate != options.rate {
            notes.append("asked for \(options.rate) Hz, got \(shape.format.rate) Hz")
        }
        if shape.format.channels != options.channels {
            notes.append("asked for \(options.channels) channels, got \(shape.format.channels)")
        }
        return notes
    }

    private func description(_ opened: Opened) -> StreamDescription {
        let format = options.format(of: opened.shape)
        let difference = opened.notes.isEmpty ? "" : " (\(opened.notes.joined(separator: "; ")))"
        let place = opened.card.map { $0.place.isEmpty ? "" : " (\($0.place))" } ?? ""
        let name = opened.card.map { PCMName(card: $0.id, device: $0.device) } ?? options.name
        let picked =
            options.picked.isEmpty
            ? "" : " (\(options.picked.map(String.init).joined(separator: ", ")) of \(opened.shape.format.channels))"
        return StreamDescription(
            id: stream, kind: .audio, deviceKind: ALSAMicrophoneKind.name, deviceIdentity: "\(name)\(place)",
            label: "\(opened.card?.label ?? name.description), \(format.encoding.rawValue) \(format.rate) Hz, "
                + "\(format.channels) channels\(picked)\(difference)",
            nominalRate: Double(format.rate), audio: format,
            capabilities: StreamCapabilities(
                producesFile: true, providesAudioTrack: true, supportsPreciseTimestamps: opened.shape.isMonotonic),
            timestampSource: stamper(opened.shape).words)
    }

    private func fault(_ error: Errno, _ operation: ALSAFault.Operation) -> DeviceError {
        system.fault(error, operation, options.name, .capture).error(for: stream)
    }

    // MARK: Blocks, on the loop's thread

    private func step() {
        guard var current = run else { return }
        if let absence = current.absence {
            look(for: absence, &current)
        } else if let opened {
            do throws(Errno) {
                do throws(Errno) {
                    try capture(opened, &current)
                } catch {
                    // An overrun, or the machine slept. All else ends the stream, or makes it wait.
                    guard error == .brokenPipe || error == .suspended else { throw error }
                    try restart(opened, &current, slept: error == .suspended)
                }
            } catch {
                broke(opened, error, &current)
            }
        }
        // A failure has ended the run.
        guard run != nil else { return }
        run = current
        let next: @Sendable () -> Void = { [weak self] in self?.assumeIsolated { $0.step() } }
        if current.absence != nil {
            loop.schedule(at: HostClock.now + Self.lookInterval, next)
        } else if let period = opened?.shape.period, current.due - system.now() > period {
            loop.schedule(at: current.due - period, next)
        } else {
            loop.perform(next)
        }
    }

    private func capture(_ opened: Opened, _ run: inout Run) throws(Errno) {
        guard try opened.pcm.wait(milliseconds: 100) else { return }
        let status = try opened.pcm.ask()
        switch status.state {
        case .overrun: throw .brokenPipe
        case .suspended: throw .suspended
        case .disconnected: throw .noDevice
        case .running, .idle: break
        }
        let period = opened.shape.periodFrames
        guard status.available >= period else { return }
        for note in run.stamper.update(status) { run.sink.report(.note(note)) }
        var offset = 0
        while status.available - offset >= period {
            let bytes = try opened.pcm.read(frames: period, opened.shape)
            let frames = bytes.count / opened.shape.format.bytesPerFrame
            guard frames > 0 else { return }
            deliver(bytes, frames, offset, status.now, opened.shape, &run)
            offset += frames
        }
    }

    private func deliver(
        _ bytes: [UInt8], _ frames: Int, _ offset: Int, _ arrival: Timestamp<HostTime>, _ shape: PCMShape,
        _ run: inout Run
    ) {
        let (capture, uncertainty, device) = run.stamper.stamp(offset: offset, frames: frames)
        if let gap = run.gap {
            run.gap = nil
            end(gap, at: max(gap.from, capture), arrival, shape, &run)
        }
        run.restarts = 0
        let kept =
            options.picked.isEmpty
            ? bytes
            : PCMSamples.picked(
                bytes, options.picked, channels: shape.format.channels, width: shape.format.encoding.bytes)
        run.sink.deliver(
            Sample(
                payload: .audio(kept, frames: frames), capture: capture, uncertainty: uncertainty, arrival: arrival,
                device: device, sequence: run.frames))
        run.frames += Int64(frames)
        // A percent more than the nominal rate: no card's clock is that far off.
        let length = Interval.seconds(Double(frames) / (Double(shape.format.rate) * 1.01))
        let buffer = Interval.seconds(Double(shape.bufferFrames) / Double(shape.format.rate))
        run.due = max(run.due, arrival - buffer) + length
    }

    /// Tells a gap, and puts silence in its place when that was asked for.
    private func end(
        _ gap: (from: Timestamp<HostTime>, cause: String), at end: Timestamp<HostTime>, _ arrival: Timestamp<HostTime>,
        _ shape: PCMShape, _ run: inout Run
    ) {
        let format = options.format(of: shape)
        let missing = options.fillsGaps ? Int((min((end - gap.from).seconds, 1e6) * Double(format.rate)).rounded()) : 0
        guard missing > 0, missing <= ALSAMicrophoneOptions.mostFilledBytes / format.bytesPerFrame else {
            let words = missing > 0 ? "\(gap.cause); it is too long to be filled with silence" : gap.cause
            return run.sink.report(.gap(from: gap.from, to: end, cause: words))
        }
        run.sink.report(
            .gap(from: gap.from, to: end, cause: "\(gap.cause); \(missing) frames of silence stand in its place"))
        var done = 0
        while done < missing {
            let frames = min(missing - done, format.rate)
            run.sink.deliver(
                Sample(
                    payload: .audio([UInt8](repeating: 0, count: frames * format.bytesPerFrame), frames: frames),
                    capture: gap.from + .seconds(Double(done) / Double(format.rate)), uncertainty: end - gap.from,
                    arrival: arrival, isFilling: true))
            done += frames
        }
    }

    private func restart(_ opened: Opened, _ run: inout Run, slept: Bool) throws(Errno) {
        run.restarts += 1
        guard run.restarts <= Self.mostRestarts else { throw .inputOutput }
        begin(
            &run,
            gap: slept
                ? "the machine slept"
                : "the sound card's buffer ran over: the machine was too busy to read it in time")
        try opened.pcm.prepare()
        try opened.pcm.start()
    }

    /// A gap begins where the blocks so far end; one that isn't told yet goes on.
    private func begin(_ run: inout Run, gap cause: String) {
        if run.gap == nil { run.gap = (run.stamper.end ?? run.start, cause) }
        run.stamper.reset()
    }

    // MARK: Unplugged

    private func broke(_ opened: Opened, _ error: Errno, _ run: inout Run) {
        let cause = opened.pcm.cause(of: error)
        let fault = system.fault(cause, .read, options.name, .capture)
        guard cause.isUnplugged, let card = opened.card else { return fail(fault, run) }
        begin(&run, gap: fault.cause)
        run.absence = Absence(card: card, since: system.now())
        opened.pcm.close()
        self.opened = nil
        log.warning(fault.cause)
        run.sink.report(.note("\(fault.cause); the stream goes on when it is plugged in again"))
    }

    private func look(for absence: Absence, _ run: inout Run) {
        guard let card = absence.card.again(in: system.cards(.capture)) else { return }
        do {
            let opened = try connect(.found(card))
            guard options.format(of: opened.shape) == run.format else {
                opened.pcm.close()
                throw DeviceError(
                    .unsupported, stream: stream,
                    cause: "sound card '\(card.id)' came back with another format, which can't go on in the same file",
                    cure: "end this take, and begin a new one")
            }
            do throws(Errno) {
                try opened.pcm.prepare()
                try opened.pcm.start()
            } catch {
                opened.pcm.close()
                throw fault(error, .start)
            }
            self.opened = opened
            run.absence = nil
            run.stamper.replaced(
                period: opened.shape.period, isBatch: opened.shape.isBatch, isMonotonic: opened.shape.isMonotonic)
            let now = system.now()
            run.due = now
            let seconds = ((now - absence.since).seconds * 10).rounded() / 10
            run.sink.report(.note("sound card '\(card.id)' is plugged in again, after \(seconds) s"))
        } catch {
            // Permissions and other programs take their time after a plug; it is tried again, and said once.
            let words = "\((error as? DeviceError)?.cause ?? "\(error)")"
            guard absence.problem != words, system.now() - absence.since > .seconds(5) else { return }
            run.absence?.problem = words
            run.sink.report(.note("the sound card is there again and can't be used yet: \(words)"))
        }
    }

    private func fail(_ fault: ALSAFault, _ current: Run) {
        run = current
        stop()
        current.sink.report(.failed(fault.error(for: stream).description))
    }
}
