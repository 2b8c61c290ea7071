internal import Glibc
internal import Platform
package import Protocol
internal import Timing

/// A sensor of the kernel's IIO: its buffer with the driver's stamps, or its values one by one where it has no buffer.
///
/// The buffer runs from `open` on. A device that is unplugged is looked for by its identity until it is back; the time
/// between is a gap in the same stream.
///
/// Concurrency: all of it runs on its own event loop's thread; the sink is called there.
package actor IIOIMU: CaptureDevice {
    package struct Options: Sendable, Hashable {
        package enum Mode: String, Sendable, CaseIterable { case auto, buffer, poll }

        /// A label, a serial number, a place on the bus or a name that only one device has.
        package var device: String
        /// Wanted rows a second; nil leaves the driver's.
        package var rate: Double?
        package var mode = Mode.auto
        /// Whether the firmware's mount matrix is applied.
        package var turns = true

        package init(device: String) { self.device = device }
    }

    private enum Source {
        case buffer(IIOBuffer)
        case poll(IIOPoller)
    }

    private static let firstRow = Interval.milliseconds(3000)
    private static let silence = Interval.milliseconds(2500)
    /// Rows a second without a buffer, when nothing is asked for.
    private static let pollRate = 50.0

    package nonisolated let stream: StreamID
    private let options: Options
    private let root: IIOFolder.Root
    private let loop: EventLoop
    private let log: Log
    private var source: Source?
    private var flow: IIOFlow?
    private var sink: (any SampleSink)?
    private var timer: EventLoop.TimerID?
    private var pollTimer: EventLoop.TimerID?
    private var nextPoll = HostClock.now
    private var lastRow = HostClock.now
    private var isOpen = false
    private var toldSilence = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ stream: StreamID, _ options: Options, root: IIOFolder.Root = IIOFolder.Root()) {
        self.stream = stream
        self.options = options
        self.root = root
        loop = EventLoop(name: "iio-\(stream)")
        log = Log("iio \(stream)")
    }

    // MARK: Life

    package func open() throws -> StreamDescription {
        close()
        let folder = try find()
        let (source, flow, description) = try begin(folder)
        self.source = source
        self.flow = flow
        isOpen = true
        do {
            try awaitRow(folder)
            try watch()
        } catch {
            close()
            throw error
        }
        tick()
        return description
    }

    package func start(_ sink: any SampleSink) throws {
        guard isOpen else {
            throw DeviceError(.notFound, stream: stream, cause: "the sensor isn't open", cure: "open it first")
        }
        precondition(self.sink == nil, "\(stream) was started twice")
        flow?.begin()
        lastRow = HostClock.now
        self.sink = sink
    }

    package func stop() { sink = nil }

    package func close() {
        stop()
        isOpen = false
        for pending in [timer, pollTimer] { if let pending { loop.cancel(pending) } }
        (timer, pollTimer) = (nil, nil)
        drop()
        flow = nil
    }

    // MARK: Opening

    private func find() throws(DeviceError) -> IIOFolder {
        switch IIOSelection(options.device, among: IIOFolder.all(root)) {
        case .found(let folder): return folder
        case .missing(let cause, let cure): throw DeviceError(.notFound, stream: stream, cause: cause, cure: cure)
        case .refused(let cause, let cure): throw DeviceError(.unsupported, stream: stream, cause: cause, cure: cure)
        }
    }

    private func begin(_ folder: IIOFolder) throws(DeviceError) -> (Source, IIOFlow, StreamDescription) {
        let shape = IIOShape(folder, turns: options.turns)
        guard !shape.converter.channels.isEmpty else {
            throw DeviceError(
                .unsupported, stream: stream, cause: "IIO sensor '\(folder.name)' has no quantity that is known here",
                cure: "use another sensor")
        }
        do throws(IIOFault) {
            let hasBuffer = !shape.elements.isEmpty && folder.has("buffer/enable")
            guard options.mode != .poll, hasBuffer || options.mode == .buffer else {
                return try poll(folder, shape)
            }
            let buffer = try IIOBuffer(folder, elements: shape.elements, rate: options.rate)
            let flow = IIOFlow(
                buffer.layout, shape.converter, rate: buffer.rate, stamps: buffer.isMonotonic ? .monotonic : .otherClock
            )
            return (.buffer(buffer), flow, description(folder, shape, buffer.rate, flow.stamps))
        } catch {
            throw self.error(error, folder)
        }
    }

    private func poll(_ folder: IIOFolder, _ shape: IIOShape) throws(IIOFault) -> (Source, IIOFlow, StreamDescription) {
        let poller = try IIOPoller(folder, channels: shape.converter.channels)
        let rate = options.rate ?? Self.pollRate
        IIORates.set(rate, folder)
        let flow = IIOFlow(IIOScanLayout([]), shape.converter, rate: rate, stamps: .none)
        return (.poll(poller), flow, description(folder, shape, rate, nil))
    }

    private func awaitRow(_ folder: IIOFolder) throws {
        let deadline = HostClock.now + Self.firstRow
        while HostClock.now < deadline {
            switch source {
            case .buffer(let buffer):
                var state = pollfd(fd: buffer.descriptor, events: Int16(POLLIN), revents: 0)
                _ = Glibc.poll(&state, 1, 100)
                do throws(Errno) { _ = flow?.take(try buffer.read(), at: HostClock.now) } catch {
                    throw self.error(IIOFault(error, "reading the buffer"), folder)
                }
            case .poll(let poller):
                let from = HostClock.now
                do throws(Errno) { _ = flow?.polled(try poller.read(), from: from, to: HostClock.now) } catch {
                    throw self.error(IIOFault(error, "reading the values"), folder)
                }
            case nil: return
            }
            if let rows = flow?.rows, rows > 0 { return }
        }
        throw DeviceError(
            .timedOut, stream: stream,
            cause: "IIO sensor '\(folder.name)' gave no sample in \(Int(Self.firstRow.seconds)) s",
            cure: "plug it in anew, or set 'mode' to 'poll'")
    }

    private func error(_ fault: IIOFault, _ folder: IIOFolder) -> DeviceError {
        let what = "IIO sensor '\(folder.name)' (\(folder.identity))"
        let (code, cause, cure): (DeviceError.Code, String, String) =
            switch fault.error {
            case .busy:
                (
                    .busy, "\(what) is held by \(DeviceHolder.words(for: folder.node))",
                    "close that program (iio-sensor-proxy.service takes such sensors for turning screens)"
                )
            case .accessDenied, .notPermitted:
                (
                    .accessDenied, "\(what) may not be set up: \(fault.doing): \(fault.error)",
                    "run the agent as a service, or give its user the sensor's files with a udev rule"
                )
            case .noSuchFile, .noDevice:
                (.disconnected, "\(what) is gone: \(fault.doing): \(fault.error)", "plug it in")
            default:
                (.inputOutput, "\(what) can't be started: \(fault.doing): \(fault.error)", "set 'mode' to 'poll'")
            }
        return DeviceError(code, stream: stream, cause: cause, cure: cure)
    }

    private func description(
        _ folder: IIOFolder, _ shape: IIOShape, _ rate: Double?, _ stamps: IIOFlow.Stamps?
    ) -> StreamDescription {
        let text = rate.map { " at \(V4L2Choice.rate($0)) rows/s" } ?? ""
        let asked = options.rate.flatMap { wish in
            rate.flatMap { abs($0 - wish) > 0.01 * wish ? " (asked for \(V4L2Choice.rate(wish)) rows/s)" : nil }
        }
        let turned = shape.converter.isTurned ? ", turned by its mount matrix" : ""
        let words =
            switch stamps {
            case .monotonic: "driver at its trigger, CLOCK_MONOTONIC"
            case .otherClock: "driver at its trigger, mapped to CLOCK_MONOTONIC by arrivals"
            case .some(.none): "arrival of the buffer, CLOCK_MONOTONIC"
            case nil: "reading of the values, CLOCK_MONOTONIC"
            }
        return StreamDescription(
            id: stream, kind: .sensor, deviceKind: IIOIMUKind.name, deviceIdentity: folder.identity,
            label: "\(folder.name)\(text)\(asked ?? "")\(turned)", nominalRate: rate,
            sensor: SensorFormat(channels: shape.converter.channels.map { .init(name: $0.name, unit: $0.unit) }),
            capabilities: StreamCapabilities(producesFile: false, supportsPreciseTimestamps: stamps == .monotonic),
            timestampSource: words)
    }

    // MARK: Rows, on the loop's thread

    private func watch() throws {
        switch source {
        case .buffer(let buffer):
            try loop.watch(buffer.descriptor, for: .readable) { [weak self] _ in self?.assumeIsolated { $0.drain() } }
        case .poll:
            nextPoll = HostClock.now
            pollNext()
        case nil: break
        }
    }

    private func drain() {
        guard case .buffer(let buffer) = source else { return }
        do throws(Errno) {
            let bytes = try buffer.read()
            hand(flow?.take(bytes, at: HostClock.now) ?? [])
        } catch {
            interrupt("the sensor is gone: \(error)")
        }
    }

    private func pollNext() {
        guard case .poll(let poller) = source, isOpen else { return }
        let from = HostClock.now
        do throws(Errno) {
            let raw = try poller.read()
            hand(flow?.polled(raw, from: from, to: HostClock.now) ?? [])
        } catch {
            interrupt("the sensor can't be read: \(error)")
            return
        }
        let period = Interval.seconds(1 / (options.rate ?? Self.pollRate))
        nextPoll = max(nextPoll + period, HostClock.now)
        pollTimer = loop.schedule(at: nextPoll) { [weak self] in self?.assumeIsolated { $0.pollNext() } }
    }

    private func hand(_ actions: [IIOFlow.Action]) {
        guard !actions.isEmpty else { return }
        lastRow = HostClock.now
        toldSilence = false
        guard let sink else { return }
        for action in actions {
            switch action {
            case .deliver(let sample): sink.deliver(sample)
            case .report(let event): sink.report(event)
            }
        }
    }

    private func interrupt(_ cause: String) {
        drop()
        flow?.interrupted(cause)
        log.warning(cause)
        sink?.report(.note(cause))
    }

    private func drop() {
        if case .buffer(let buffer) = source { loop.unwatch(buffer.descriptor) }
        source = nil
    }

    /// Looks after the sensor twice a second.
    private func tick() {
        guard isOpen else { return }
        if source == nil {
            reopen()
        } else if HostClock.now - lastRow > Self.silence, !toldSilence {
            toldSilence = true
            flow?.interrupted("no sample came from the sensor")
            sink?.report(.note("no sample for \(Self.silence.seconds) s"))
        }
        timer = loop.schedule(at: HostClock.now + .milliseconds(500)) { [weak self] in
            self?.assumeIsolated { $0.tick() }
        }
    }

    private func reopen() {
        guard let folder = try? find(), let (new, _, _) = try? begin(folder) else { return }
        source = new
        lastRow = HostClock.now
        do { try watch() } catch { source = nil }
        if source != nil { log.info("the sensor is back") }
    }
}
