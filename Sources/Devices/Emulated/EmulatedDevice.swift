internal import Platform
package import Protocol
internal import Timing

/// A device made of software: a source, its pace and its faults.
///
/// It keeps absolute deadlines of CLOCK_MONOTONIC, so it never drifts from its pace; when it is woken too late it hands
/// over what its buffer holds and tells the rest as lost, as a driver does.
///
/// Concurrency: all of it runs on its own event loop's thread; the sink is called there.
package actor EmulatedDevice<Source: EmulatedSource>: CaptureDevice {
    private struct Run {
        let sink: any SampleSink
        let pace: Pace
        let start: Timestamp<RoomTime>
        var next: Int64 = 0
        /// The first sample of a loss that isn't told yet.
        var lostFrom: Int64?
        var timer: EventLoop.TimerID?
    }

    package nonisolated let stream: StreamID
    private let loop: EventLoop
    private let clock: RoomClock
    private let faults: EmulatedFaults
    private var source: Source
    private var noise: SeededNoise
    private var run: Run?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(
        _ stream: StreamID, source: Source, faults: EmulatedFaults = EmulatedFaults(),
        clock: RoomClock = .ofThisProcess
    ) {
        self.stream = stream
        self.source = source
        self.faults = faults
        self.clock = clock
        noise = SeededNoise(seed: SeededNoise.seed("faults", stream.rawValue))
        loop = EventLoop(name: "emu-\(stream)")
    }

    package func open() throws -> StreamDescription {
        try source.open(stream: stream, at: clock.now)
        return source.description(of: stream)
    }

    package func start(_ sink: any SampleSink) {
        precondition(run == nil, "\(stream) was started twice")
        let now = clock.now
        run = Run(sink: sink, pace: source.begin(at: now), start: now)
        schedule()
    }

    package func stop() {
        if let timer = run?.timer { loop.cancel(timer) }
        run = nil
    }

    package func close() { stop() }

    // MARK: On the loop's thread

    private func schedule() {
        guard let run else { return }
        var deadline = run.pace.ready(run.next + source.batch - 1)
        if let failAfter = faults.failAfter { deadline = min(deadline, run.start + .seconds(failAfter)) }
        self.run?.timer = loop.schedule(at: clock.host(deadline)) { [weak self] in
            self?.assumeIsolated { $0.tick() }
        }
    }

    private func tick() {
        guard var current = run else { return }
        let now = clock.now
        if let failAfter = faults.failAfter, now >= current.start + .seconds(failAfter) {
            run = nil
            current.sink.report(.failed("the emulated device broke, as 'fail_after_s' asked"))
            return
        }
        let latest = current.pace.latest(at: now)
        if latest - current.next >= source.depth {
            current.lostFrom = current.lostFrom ?? current.next
            current.next = latest - source.depth + 1
        }
        while current.next <= latest {
            deliver(&current)
            current.next += 1
        }
        run = current
        schedule()
    }

    private func deliver(_ current: inout Run) {
        let taken = current.pace.taken(current.next)
        let dropped = faults.dropPercent > 0 && noise.uniform() * 100 < faults.dropPercent
        guard !dropped, !faults.stalls(at: (taken - current.start).seconds) else {
            current.lostFrom = current.lostFrom ?? current.next
            return
        }
        var sample = source.sample(current.next, taken: taken)
        if let first = current.lostFrom {
            let from = clock.host(current.pace.taken(first))
            current.sink.report(source.loss(first..<current.next, from: from, before: sample))
            current.lostFrom = nil
        }
        sample.capture += .seconds(faults.stampErrorMilliseconds / 1000)
        sample.arrival = HostClock.now
        current.sink.deliver(sample)
    }
}
