internal import Glibc
internal import Platform
package import Protocol
internal import Timing

/// A sound card that captures: blocks of 20 ms with the card's own stamps, overruns as gaps of measured length.
///
/// A block's sequence is the number of its first sample frame among those that were read since the start.
///
/// Concurrency: all of it runs on its own event loop's thread, which waits for the card while it captures, a tenth of a
/// second at most at a time; the sink is called there.
package actor ALSAMicrophone: CaptureDevice {
    package struct Options: Sendable, Hashable {
        package enum Format: String, Sendable, CaseIterable { case auto, s16, s24, s32 }

        package var name: PCMName
        /// Sample frames a second.
        package var rate = 48_000
        package var channels = 1
        package var format = Format.auto

        package init(name: PCMName) { self.name = name }

        var encodings: [AudioFormat.Encoding] {
            switch format {
            case .auto: [.s16, .s24, .s32]
            case .s16: [.s16]
            case .s24: [.s24]
            case .s32: [.s32]
            }
        }
    }

    private struct Opened {
        let pcm: PCM
        let shape: PCMShape
        let notes: [String]
    }

    private struct Run {
        let sink: any SampleSink
        let start: Timestamp<HostTime>
        var stamper: BlockStamper
        var frames: Int64 = 0
        /// Where a gap began that isn't told yet, and why.
        var gap: (from: Timestamp<HostTime>, cause: String)?
        /// Restarts without a block in between.
        var restarts = 0
        /// When the frames so far could have been captured at the earliest: a PCM without a clock must not flood.
        var due: Timestamp<HostTime>
    }

    private static let period = Interval.milliseconds(20)
    private static let buffer = Interval.milliseconds(500)
    private static let mostRestarts = 10

    package nonisolated let stream: StreamID
    private let options: Options
    private let loop: EventLoop
    private let log: Log
    private var opened: Opened?
    private var run: Run?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ stream: StreamID, _ options: Options) {
        self.stream = stream
        self.options = options
        loop = EventLoop(name: "mic-\(stream)")
        log = Log("microphone \(stream)")
    }

    // MARK: Life

    package func open() throws -> StreamDescription {
        close()
        let pcm: PCM
        do throws(Errno) { pcm = try PCM(name: options.name.description, .capture) } catch {
            throw fault(error, .open)
        }
        let shape: PCMShape
        do throws(Errno) {
            shape = try pcm.negotiate(
                PCMWish(
                    encodings: options.encodings, rate: options.rate, channels: options.channels,
                    period: Self.period, buffer: Self.buffer))
        } catch {
            pcm.close()
            throw fault(error, .format)
        }
        let opened = Opened(pcm: pcm, shape: shape, notes: differences(shape))
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
            throw fault(error, .start)
        }
        let now = HostClock.now
        run = Run(sink: sink, start: now, stamper: stamper(opened.shape), due: now)
        for note in opened.notes { sink.report(.note(note)) }
        loop.perform { [weak self] in self?.assumeIsolated { $0.step() } }
    }

    package func stop() {
        guard let run else { return }
        self.run = nil
        opened?.pcm.drop()
        if let gap = run.gap { run.sink.report(.gap(from: gap.from, to: HostClock.now, cause: gap.cause)) }
    }

    package func close() {
        stop()
        opened?.pcm.close()
        opened = nil
    }

    // MARK: Opening

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
        let format = opened.shape.format
        let stamper = stamper(opened.shape)
        let entry = SoundCards.all(.capture).first { $0.card == options.name.card && $0.device == options.name.device }
        let difference = opened.notes.isEmpty ? "" : " (\(opened.notes.joined(separator: "; ")))"
        return StreamDescription(
            id: stream, kind: .audio, deviceKind: ALSAMicrophoneKind.name, deviceIdentity: options.name.description,
            label: "\(entry?.label ?? options.name.description), \(format.encoding.rawValue) \(format.rate) Hz, "
                + "\(format.channels) channels\(difference)",
            nominalRate: Double(format.rate), audio: format,
            capabilities: StreamCapabilities(
                producesFile: true, providesAudioTrack: true, supportsPreciseTimestamps: opened.shape.isMonotonic),
            timestampSource: stamper.words)
    }

    private func fault(_ error: Errno, _ operation: ALSAFault.Operation) -> DeviceError {
        let name = options.name
        return ALSAFault(
            error, during: operation, name: name.description, cards: { SoundCards.names(.capture) },
            holder: {
                SoundCards.node(of: name, .capture).map { DeviceHolder.words(for: $0) } ?? "another program"
            }
        ).error(for: stream)
    }

    // MARK: Blocks, on the loop's thread

    private func step() {
        guard var current = run, let opened else { return }
        do throws(Errno) {
            do throws(Errno) {
                try capture(opened, &current)
            } catch {
                // EPIPE: overrun. ESTRPIPE: the machine slept. All else ends the stream.
                guard error == .brokenPipe || error == Errno(rawValue: ESTRPIPE) else { throw error }
                try restart(opened, &current, slept: error != .brokenPipe)
            }
        } catch {
            run = current
            fail(error)
            return
        }
        run = current
        let next: @Sendable () -> Void = { [weak self] in self?.assumeIsolated { $0.step() } }
        if current.due - HostClock.now > opened.shape.period {
            loop.schedule(at: current.due - opened.shape.period, next)
        } else {
            loop.perform(next)
        }
    }

    private func capture(_ opened: Opened, _ run: inout Run) throws(Errno) {
        guard try opened.pcm.wait(milliseconds: 100) else { return }
        let status = try opened.pcm.ask()
        switch status.state {
        case .overrun: throw .brokenPipe
        case .suspended: throw Errno(rawValue: ESTRPIPE)
        case .disconnected: throw .noDevice
        case .running, .idle: break
        }
        let period = opened.shape.periodFrames
        guard status.available >= period else { return }
        if let change = run.stamper.update(status) { run.sink.report(.note(change)) }
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
            run.sink.report(.gap(from: gap.from, to: max(gap.from, capture), cause: gap.cause))
            run.gap = nil
        }
        run.restarts = 0
        run.sink.deliver(
            Sample(
                payload: .audio(bytes, frames: frames), capture: capture, uncertainty: uncertainty, arrival: arrival,
                device: device, sequence: run.frames))
        run.frames += Int64(frames)
        // A percent more than the nominal rate: no card's clock is that far off.
        let length = Interval.seconds(Double(frames) / (Double(shape.format.rate) * 1.01))
        let buffer = Interval.seconds(Double(shape.bufferFrames) / Double(shape.format.rate))
        run.due = max(run.due, arrival - buffer) + length
    }

    private func restart(_ opened: Opened, _ run: inout Run, slept: Bool) throws(Errno) {
        run.restarts += 1
        guard run.restarts <= Self.mostRestarts else { throw .inputOutput }
        if run.gap == nil {
            let cause =
                slept
                ? "the machine slept"
                : "the sound card's buffer ran over: the machine was too busy to read it in time"
            run.gap = (run.stamper.end ?? run.start, cause)
        }
        run.stamper.reset()
        try opened.pcm.prepare()
        try opened.pcm.start()
    }

    private func fail(_ error: Errno) {
        guard let sink = run?.sink else { return }
        let sentence = fault(opened?.pcm.cause(of: error) ?? error, .read).description
        stop()
        sink.report(.failed(sentence))
    }
}
