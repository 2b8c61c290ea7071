internal import Glibc
internal import Platform
package import Protocol
package import Timing

/// A camera of the kernel: mapped buffers, the driver's stamps, losses, and coming back after a stall or an unplug.
///
/// `FrameIntake` decides what becomes of a buffer and `CameraSupervisor` what becomes of a camera that doesn't deliver;
/// this actor makes the calls.
///
/// Concurrency: all of it runs on its own event loop's thread, which only waits for the camera; the sink is called there.
package actor V4L2Camera: CaptureDevice {
    package struct Options: Sendable {
        /// A link below /dev/v4l, a serial number, bus information or a card's name; a node with a warning.
        package var device: String
        package var wish = V4L2Choice.Wish()
        /// How long a camera that isn't attached is waited for when it is opened.
        package var wait = Interval.zero
        /// Which camera it was in the last take; nil: nobody remembers.
        package var memory: CameraMemory?

        package init(device: String) { self.device = device }
    }

    /// The machine that the camera is attached to, or a script in its place.
    package struct Machine: Sendable {
        package var nodes: @Sendable () -> [CameraNode]
        package var connect: V4L2Connect
        package var plugs: PlugWatch

        package init(
            nodes: @escaping @Sendable () -> [CameraNode], connect: @escaping V4L2Connect,
            plugs: @escaping PlugWatch = { nil }
        ) {
            self.nodes = nodes
            self.connect = connect
            self.plugs = plugs
        }

        /// This one.
        package static let own = Machine(
            nodes: { CameraNodes.all() }, connect: { path throws(Errno) in try V4L2Node(path: path) },
            plugs: { UdevMonitor() })
    }

    private struct Run {
        let sink: any SampleSink
        var intake: FrameIntake
        var supervisor: CameraSupervisor?
        var isWatching = false
    }

    private static let tick = Interval.milliseconds(100)

    package nonisolated let stream: StreamID
    private let options: Options
    private let machine: Machine
    private let loop: EventLoop
    private let log: Log
    private var camera: OpenCamera?
    private var run: Run?
    private var monitor: (any PlugMonitor)?
    private var timer: EventLoop.TimerID?
    /// Waits for the first frame.
    private var starter: CheckedContinuation<Void, any Error>?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ stream: StreamID, _ options: Options, machine: Machine = .own) {
        self.stream = stream
        self.options = options
        self.machine = machine
        loop = EventLoop(name: "cam-\(stream)")
        log = Log("camera \(stream)")
    }

    // MARK: Life

    package func open() async throws -> StreamDescription {
        close()
        let deadline = HostClock.now + options.wait
        while true {
            do throws(CameraTrouble) {
                let camera = try find()
                self.camera = camera
                let description = camera.shape.description
                for finding in description.findings ?? [] { log.warning(finding) }
                return description
            } catch {
                guard error.kind == .gone, HostClock.now < deadline else { throw error.error }
                try await loop.sleep(for: Self.tick)
            }
        }
    }

    /// Returns when the first frame has come: only frames are a stream.
    package func start(_ sink: any SampleSink) async throws {
        guard let camera else {
            throw DeviceError(.notFound, stream: stream, cause: "the camera isn't open", cure: "open it first")
        }
        precondition(run == nil, "\(stream) was started twice")
        run = Run(sink: sink, intake: FrameIntake(camera.shape))
        do throws(CameraTrouble) { try streamOn(camera) } catch {
            stop()
            throw error.error
        }
        for note in camera.differences { sink.report(.note(note)) }
        watchPlugs()
        let begin = HostClock.now
        scheduleTick(since: begin)
        try await withCheckedThrowingContinuation { starter = $0 }
        guard run != nil else { throw CancellationError() }
        do { try options.memory?.remember(stream.rawValue, named: options.device, camera.fingerprint) } catch {
            log.warning("what camera this was can't be remembered: \(error)")
        }
    }

    package func stop() {
        guard var ending = run else { return }
        run = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        unwatchPlugs()
        if ending.isWatching, let camera {
            loop.unwatch(camera.port.descriptor)
            camera.port.streamOff()
        }
        let now = HostClock.now
        for event in ending.intake.rest(at: now) { ending.sink.report(event) }
        if let gap = ending.supervisor?.openGap, let last = ending.intake.lastCapture, last + ending.intake.period < now
        {
            ending.sink.report(.gap(from: last + ending.intake.period, to: now, cause: gap))
        }
        finishStart(with: CancellationError())
    }

    package func close() {
        stop()
        camera?.close()
        camera = nil
    }

    // MARK: Opening

    private func find() throws(CameraTrouble) -> OpenCamera {
        let nodes = machine.nodes()
        let name = options.device
        switch CameraSelection(name, resolved: CameraNodes.resolve(name), among: nodes) {
        case .found(let node, let warning):
            let notes = try [warning, moved(node, nodes)].compactMap { $0 }
            return try OpenCamera(node, among: nodes, for: stream, options.wish, notes: notes, connect: machine.connect)
        case .refused(let cause, let cure):
            throw CameraTrouble(
                kind: .broken, error: DeviceError(.unsupported, stream: stream, cause: cause, cure: cure))
        case .missing(let cause, let cure):
            throw CameraTrouble(kind: .gone, error: DeviceError(.notFound, stream: stream, cause: cause, cure: cure))
        }
    }

    /// A sentence where the camera is in another port than in the last take; throws where it is another camera.
    private func moved(_ node: CameraNode, _ nodes: [CameraNode]) throws(CameraTrouble) -> String? {
        let now = node.fingerprint
        let last = options.memory?.camera(of: stream.rawValue, named: options.device)
        switch CameraMove(last: last, now: now, hasOwnSerial: now.hasOwnSerial(among: nodes)) {
        case .same: return nil
        case .otherPort(let port):
            return "the camera is in another port than in the last take (\(port), now \(now.port))"
        case .refused(let cause):
            throw CameraTrouble(
                kind: .broken,
                error: DeviceError(
                    .unsupported, stream: stream, cause: "'\(options.device)' means another camera: \(cause)",
                    cure: "swap the cables back, name the camera by its serial number, or say that it is meant with "
                        + "`downbeat-agent devices --accept \(stream)`"))
        }
    }

    private func streamOn(_ camera: OpenCamera) throws(CameraTrouble) {
        do throws(Errno) {
            for index in 0..<camera.buffers { try camera.port.queue(index) }
        } catch { throw camera.trouble(error, .queue) }
        do throws(Errno) { try camera.port.streamOn() } catch { throw camera.trouble(error, .streamOn) }
        do {
            try loop.watch(camera.port.descriptor, for: .readable) { [weak self] events in
                self?.assumeIsolated { $0.drain(events) }
            }
            run?.isWatching = true
        } catch {
            camera.port.streamOff()
            throw CameraTrouble(
                kind: .broken,
                error: DeviceError(
                    .inputOutput, stream: stream, cause: "the camera can't be waited for: \(error)",
                    cure: "restart the program"))
        }
    }

    private func finishStart(with error: (any Error)?) {
        guard let starter else { return }
        self.starter = nil
        if let error { starter.resume(throwing: error) } else { starter.resume() }
    }

    // MARK: Frames, on the loop's thread

    private func drain(_ events: EventLoop.Events) {
        guard var current = run, current.isWatching, let camera else { return }
        var taken = 0
        // At most what was queued at the wake-up, so that a stop gets its turn.
        for _ in 0..<camera.buffers {
            do throws(Errno) {
                guard let filled = try camera.port.dequeue() else { break }
                taken += 1
                let now = FrameStamper.Clocks(
                    monotonic: HostClock.now, wall: HostClock.wall.nanoseconds, boottime: HostClock.boottimeNanoseconds)
                // Copied before the buffer goes back to the driver.
                let bytes = camera.port.bytes(of: filled, limit: camera.shape.wholeSize ?? .max)
                let last = current.intake.lastCapture
                let outputs = current.intake.take(filled, bytes: bytes, at: now)
                deliver(outputs, since: last, &current)
                try camera.port.queue(filled.index)
            } catch {
                run = current
                broke(camera.trouble(error, .dequeue))
                return
            }
        }
        run = current
        // The driver says that something is wrong and has no errno for it: it would wake this thread for ever.
        if taken == 0, !events.isDisjoint(with: [.error, .hangup]) {
            broke(camera.trouble(.inputOutput, .dequeue))
        }
    }

    private func deliver(_ outputs: [FrameIntake.Output], since last: Timestamp<HostTime>?, _ run: inout Run) {
        guard case .sample(let sample) = outputs.last else {
            for case .event(let event) in outputs { run.sink.report(event) }
            return
        }
        let now = sample.arrival
        if run.supervisor == nil {
            run.supervisor = CameraSupervisor(rate: camera?.shape.description.nominalRate, at: now)
            finishStart(with: nil)
        }
        for case .resumed(_, let cause) in run.supervisor?.handle(.frame, at: now) ?? [] {
            if let last, last + run.intake.period < sample.capture {
                run.sink.report(.gap(from: last + run.intake.period, to: sample.capture, cause: cause))
            }
        }
        for output in outputs {
            switch output {
            case .event(let event): run.sink.report(event)
            case .sample(let sample): run.sink.deliver(sample)
            }
        }
    }

    // MARK: Trouble

    private func broke(_ trouble: CameraTrouble) {
        guard let run else { return }
        guard run.supervisor != nil else {
            // Before its first frame a camera is what it is: `start` says so.
            let starter = starter
            self.starter = nil
            stop()
            starter?.resume(throwing: trouble.error)
            return
        }
        feed(.broke(trouble.kind, trouble.error.description))
    }

    private func feed(_ event: CameraSupervisor.Event) {
        guard let actions = run?.supervisor?.handle(event, at: HostClock.now) else { return }
        for action in actions { perform(action) }
    }

    private func perform(_ action: CameraSupervisor.Action) {
        guard let sink = run?.sink else { return }
        switch action {
        case .close: closeForNow()
        case .reopen: reopen()
        case .interrupted(let since, let cause):
            log.warning(cause)
            sink.report(.interrupted(since: since, cause: cause))
        case .resumed: break
        case .fail(let sentence):
            stop()
            sink.report(.failed("\(stream): \(sentence)"))
        }
    }

    private func closeForNow() {
        guard let camera, var current = run else { return }
        if current.isWatching {
            loop.unwatch(camera.port.descriptor)
            camera.port.streamOff()
            current.isWatching = false
        }
        for event in current.intake.rest(at: HostClock.now) { current.sink.report(event) }
        run = current
        camera.close()
    }

    private func reopen() {
        guard let old = camera, run != nil else { return }
        let nodes = machine.nodes()
        switch CameraReturn(of: old.fingerprint, hadOwnSerial: old.hasOwnSerial, among: nodes) {
        case .away: feed(.notReopened(.gone, CameraFaults(stream: stream, node: old.node).unplugged))
        case .another(let node):
            feed(
                .notReopened(
                    .gone,
                    "\(stream): '\(node.card)' is in the port of the camera that was unplugged; plug that one in again")
            )
        case .back(let node):
            do throws(CameraTrouble) {
                let camera = try OpenCamera(node, among: nodes, for: stream, options.wish, connect: machine.connect)
                self.camera = camera
                run?.intake.reopened(camera.shape, cause: "it was opened again after it had broken off")
                feed(.reopened)
                try streamOn(camera)
            } catch {
                feed(.notReopened(error.kind, error.error.description))
                feed(.broke(error.kind, error.error.description))
            }
        }
    }

    // MARK: Waiting

    private func scheduleTick(since begin: Timestamp<HostTime>) {
        timer = loop.schedule(at: HostClock.now + Self.tick) { [weak self] in
            self?.assumeIsolated { camera in
                guard camera.run != nil else { return }
                camera.look(since: begin)
                if camera.run != nil { camera.scheduleTick(since: begin) }
            }
        }
    }

    private func look(since begin: Timestamp<HostTime>) {
        guard run?.supervisor == nil else { return feed(.tick) }
        let silence = HostClock.now - begin
        let rate = camera?.shape.description.nominalRate
        guard silence >= CameraSupervisor(rate: rate, at: begin).firstFrameLimit, let node = camera?.node else {
            return
        }
        broke(
            CameraTrouble(
                kind: .broken,
                error: DeviceError(
                    .timedOut, stream: stream,
                    cause: "camera '\(node.card)' (\(node.path)) is open and sends no frame for "
                        + CameraSupervisor.words(silence),
                    cure: "unplug it and plug it in again; see whether its lens cover or its switch turns it off")))
    }

    private func watchPlugs() {
        guard let monitor = machine.plugs() else { return }
        do {
            try loop.watch(monitor.descriptor, for: .readable) { [weak self] _ in
                self?.assumeIsolated { camera in
                    if camera.monitor?.drain() == true { camera.feed(.plugged) }
                }
            }
            self.monitor = monitor
        } catch { log.warning("plugged cameras are looked for every 2 s only: \(error)") }
    }

    private func unwatchPlugs() {
        if let monitor { loop.unwatch(monitor.descriptor) }
        monitor = nil
    }
}
