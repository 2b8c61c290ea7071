internal import Devices
package import Episode
internal import Platform
package import Protocol
internal import Synchronization
package import Timing

/// Writes one stream of a take: ring → gate → files, on a thread of its own.
///
/// Concurrency: an actor on its own event loop, which may block on the disk; the device's thread only meets the ring, and
/// the agent's thread only the figures.
package actor StreamRecorder {
    /// How far the stream has come in this take.
    package struct Figures: Sendable, Hashable {
        /// Written; sample frames of audio.
        package var samples: Int64 = 0
        package var dropped: Int64 = 0
        package var bytes: Int64 = 0
        package var first: Timestamp<HostTime>?
        package var last: Timestamp<HostTime>?
        package var error: String?
    }

    /// What the agent should know at once.
    package enum Notice: Sendable, Hashable {
        case firstSample
        case failed(String, diskIsFull: Bool)
        case dropped(Int64, String)
        case note(String)
    }

    /// How long a sample may take from its capture to the ring; after T1 it is waited for this long.
    private static let leastGrace = Interval.milliseconds(500)
    private static let mostGrace = Interval.seconds(2)
    private static let syncInterval = Interval.seconds(1)
    private static let batch = 64
    private static let mostSentences = 100

    package nonisolated let stream: StreamID
    package nonisolated let ring: SampleRing
    private nonisolated let loop: EventLoop
    private nonisolated let shared = Mutex(Figures())
    private nonisolated let notify: @Sendable (Notice) -> Void
    private nonisolated let makeWriter: @Sendable (StreamDescription, WriterPlace) throws -> any StreamWriter

    private var description: StreamDescription?
    private var writer: (any StreamWriter)?
    private var gate: StampGate?
    private var entry: ManifestStream?
    private var deviceFailed = false
    private var refused: Int64 = 0
    private var lastKept: Timestamp<HostTime>?
    private var waiter: CheckedContinuation<Void, Never>?
    private var syncTimer: EventLoop.TimerID?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - stream: its name.
    ///   - limits: of the ring.
    ///   - notify: called on this recorder's thread; must not block.
    package init(
        _ stream: StreamID, limits: SampleRing.Limits = SampleRing.Limits(),
        notify: @escaping @Sendable (Notice) -> Void
    ) {
        self.init(stream, limits: limits, writers: { try StreamWriters.writer($0, $1) }, notify: notify)
    }

    /// With files of one's own: a disk that a test makes slow.
    init(
        _ stream: StreamID, limits: SampleRing.Limits,
        writers: @escaping @Sendable (StreamDescription, WriterPlace) throws -> any StreamWriter,
        notify: @escaping @Sendable (Notice) -> Void
    ) {
        self.stream = stream
        self.notify = notify
        makeWriter = writers
        ring = SampleRing(limits: limits)
        loop = EventLoop(name: "w-\(stream)")
    }

    /// As they are now; from any thread.
    package nonisolated var figures: Figures { shared.withLock { $0 } }

    // MARK: A take

    /// Makes the files and lets the gate open at `start`.
    package func prepare(
        _ description: StreamDescription, _ place: WriterPlace, start: Timestamp<HostTime>, stop: Timestamp<HostTime>
    ) throws {
        shared.withLock { $0 = Figures() }
        self.description = description
        (deviceFailed, refused, lastKept) = (false, 0, nil)
        entry = ManifestStream(description)
        gate = StampGate(start: start, stop: stop, audio: description.audio)
        writer = try makeWriter(description, place)
        ring.beginTake(at: start, until: stop, bytesPerSecond: StreamCost.delivered(description)) { [weak self] in
            self?.drainSoon()
        }
        scheduleSync()
    }

    /// Moves T1; from any thread, and before any sample that comes in later.
    package nonisolated func closeGate(at stop: Timestamp<HostTime>) {
        ring.moveEnd(to: stop)
        loop.perform { [weak self] in self?.assumeIsolated { $0.gate?.stop = stop } }
    }

    /// Waits until the gate has closed on a sample after T1, or none can be expected any more.
    package func awaitGate() async {
        guard let gate, !gate.isPassed, !deviceFailed, writer != nil else { return }
        let periods = description?.nominalRate.map { $0 > 0 ? Interval.seconds(3 / $0) : .zero } ?? .zero
        let grace = min(max(Self.leastGrace, periods + Self.leastGrace), Self.mostGrace)
        await withCheckedContinuation { continuation in
            waiter = continuation
            loop.schedule(at: gate.stop + grace) { [weak self] in self?.assumeIsolated { $0.wakeWaiter() } }
        }
    }

    /// Writes what is left; call it after the device has stopped.
    func settle() { while drain() {} }

    /// Closes the files, and says what is in them.
    ///
    /// The microphone must have settled before the video is finished that it is heard in.
    package func finish() -> ManifestStream? {
        settle()
        ring.endTake()
        cancelSync()
        wakeWaiter()
        if let writer {
            do { try writer.finish() } catch { fail("\(error)", diskIsFull: Self.isDiskFull(error)) }
            let bytes = writer.bytesWritten
            shared.withLock { $0.bytes = bytes }
        }
        defer { (writer, gate, entry) = (nil, nil, nil) }
        return summary()
    }

    /// Forgets the take; the files are removed by whoever made the folder.
    package func discard() {
        ring.endTake()
        cancelSync()
        wakeWaiter()
        (writer, gate, entry) = (nil, nil, nil)
        shared.withLock { $0 = Figures() }
    }

    private func wakeWaiter() {
        waiter?.resume()
        waiter = nil
    }

    // MARK: Draining

    private nonisolated func drainSoon() {
        loop.perform { [weak self] in
            self?.assumeIsolated { recorder in
                // Other jobs of this thread get their turn between two batches.
                if recorder.drain() { recorder.drainSoon() }
            }
        }
    }

    /// False when the ring was empty.
    private func drain() -> Bool {
        let (lost, entries) = ring.take(atMost: Self.batch)
        if let lost { overflowed(lost) }
        for entry in entries {
            switch entry {
            case .sample(let sample): take(sample)
            case .event(let event): take(event)
            }
        }
        if gate?.isPassed == true || deviceFailed { wakeWaiter() }
        return !entries.isEmpty
    }

    private func take(_ sample: Sample) {
        guard let verdict = gate?.judge(sample) else { return }
        switch verdict {
        case .before: writer?.passed(sample)
        case .after: return
        case .inside(let sample): write(sample)
        case .cut(let part):
            if part.capture > sample.capture, case .audio(_, let all) = sample.payload,
                case .audio(_, let kept) = part.payload
            {
                var head = sample
                head.payload = .audio([], frames: all - kept)
                writer?.passed(head)
            }
            write(part)
        }
    }

    private func write(_ sample: Sample) {
        guard let writer, figures.error == nil || deviceFailed else { return }
        do {
            let written = try writer.append(sample)
            let bytes = writer.bytesWritten
            guard written > 0 else {
                refused += 1
                if refused == 1 { notify(.note(writer.lastRefusal ?? "a sample can't be written")) }
                return drop(1, why: writer.lastRefusal ?? "it can't be written")
            }
            let isFirst = lastKept == nil
            lastKept = endOf(sample)
            shared.withLock { figures in
                figures.samples += written
                figures.bytes = bytes
                figures.first = figures.first ?? sample.capture
                figures.last = lastKept
            }
            if isFirst { notify(.firstSample) }
        } catch {
            fail("\(error)", diskIsFull: Self.isDiskFull(error))
        }
    }

    /// The stamp of the last sample frame of a block; else the sample's own.
    private func endOf(_ sample: Sample) -> Timestamp<HostTime> {
        guard case .audio(_, let frames) = sample.payload, let rate = description?.audio?.rate, frames > 1 else {
            return sample.capture
        }
        return sample.capture + StampGate.length(frames - 1, rate: rate)
    }

    private func fail(_ text: String, diskIsFull: Bool) {
        let isNew = shared.withLock { figures in
            defer { figures.error = figures.error ?? text }
            return figures.error == nil
        }
        if entry?.errors.contains(text) == false { entry?.errors.append(text) }
        if isNew { notify(.failed(text, diskIsFull: diskIsFull)) }
    }

    private static func isDiskFull(_ error: any Error) -> Bool {
        switch error {
        case let error as SystemError: error.errno == .noSpace || error.errno.rawValue == 122  // EDQUOT
        case let error as EpisodeError: error.errno == .noSpace
        default: false
        }
    }

    // MARK: Losses

    private func take(_ event: DeviceEvent) {
        guard let gate else { return }
        switch event {
        case .lost(let count, let before):
            guard count > 0, before >= gate.start, before < gate.stop else { return }
            // Of what was lost before the first sample of the take, only what is after T0 counts.
            let from = lastKept ?? gate.start
            var inside = count
            if lastKept == nil, let rate = description?.nominalRate, rate > 0 {
                inside = min(count, Int64(((before - from).seconds * rate).rounded(.down)))
            }
            guard inside > 0 else { return }
            lose(inside, from: from, to: before, why: "the device lost \(inside) samples")
        case .gap(let from, let to, let cause):
            let (from, to) = (max(from, gate.start), min(to, gate.stop))
            guard from < to else { return }
            let missing = description?.nominalRate.map { max(0, min(1e15, ((to - from).seconds * $0).rounded())) } ?? 0
            lose(Int64(missing), from: from, to: to, why: cause)
        case .failed(let text):
            deviceFailed = true
            fail(text, diskIsFull: false)
        case .clock(let report): entry?.deviceClock = report
        case .note(let text):
            if (entry?.errors.count ?? 0) < Self.mostSentences { entry?.errors.append(text) }
            notify(.note(text))
        }
    }

    private func overflowed(_ lost: SampleRing.Overflow) {
        guard let gate, lost.from < gate.stop else { return }
        lose(
            lost.count, from: lost.from, to: lost.last, why: "the disk is too slow: \(lost.count) samples had to go",
            first: lost.firstSequence, last: lost.lastSequence)
    }

    private func lose(
        _ count: Int64, from: Timestamp<HostTime>, to: Timestamp<HostTime>, why: String, first: Int64? = nil,
        last: Int64? = nil
    ) {
        entry?.add(
            ManifestStream.Gap(
                from: from, to: to, cause: why, count: count, firstSequence: first, lastSequence: last))
        writer?.interrupted()
        drop(count, why: why)
    }

    private func drop(_ count: Int64, why: String) {
        shared.withLock { $0.dropped += count }
        notify(.dropped(count, why))
    }

    // MARK: The disk

    private func scheduleSync() {
        syncTimer = loop.schedule(at: HostClock.now + Self.syncInterval) { [weak self] in
            self?.assumeIsolated { recorder in
                recorder.synchronize()
                recorder.scheduleSync()
            }
        }
    }

    private func synchronize() {
        guard let writer, figures.error == nil else { return }
        do { try writer.sync() } catch { fail("\(error)", diskIsFull: Self.isDiskFull(error)) }
    }

    private func cancelSync() {
        if let syncTimer { loop.cancel(syncTimer) }
        syncTimer = nil
    }

    // MARK: The report

    private func summary() -> ManifestStream? {
        guard var entry, let gate else { return nil }
        let figures = figures
        entry.frameCount = figures.samples
        entry.dropped = figures.dropped
        entry.bytes = figures.bytes
        (entry.first, entry.last) = (figures.first, figures.last)
        entry.adjustedStamps = writer?.adjustedStamps
        entry.sound = writer?.sound
        if entry.sound != nil { entry.capabilities.providesAudioTrack = true }
        for note in writer?.notes ?? [] {
            entry.errors.append(note)
            notify(.note(note))
        }
        if let first = figures.first, let last = figures.last, last > first {
            entry.rate = Double(figures.samples - 1) / (last - first).seconds
        }
        let silence = StallWatch(rate: description?.nominalRate, start: gate.start).threshold
        let endedEarly = figures.last.map { gate.stop - $0 > silence } ?? true
        if figures.samples == 0 {
            entry.status = .failed
            if entry.errors.isEmpty { entry.errors.append("no sample came between T0 and T1") }
        } else if endedEarly {
            entry.status = .truncated
            entry.truncatedAt = figures.last
            if figures.error == nil { entry.errors.append("it fell silent before the take ended") }
        } else if figures.error != nil || figures.dropped > 0 {
            entry.status = .partial
        } else {
            entry.status = .completed
        }
        return entry
    }
}
