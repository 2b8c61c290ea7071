internal import Glibc
internal import Platform
package import Protocol
internal import Timing

/// A sensor that prints lines on a serial port: UART, USB CDC, or a pseudo-terminal.
///
/// The line is read from `open` on, so that the device's clock is known when a take begins. A line that is unplugged is
/// opened again as soon as it is back; the time between is a gap in the same stream.
///
/// Concurrency: all of it runs on its own event loop's thread; the sink is called there.
package actor SerialIMU: CaptureDevice {
    package struct Options: Sendable, Hashable {
        /// A link below /dev/serial, or another path of a terminal.
        package var device: String
        package var port: SerialPort.Settings
        package var layout: LineLayout
        /// Nominal rows a second; nil when the device has none.
        package var rate: Double?
        /// Lines to send after each opening, without their end.
        package var start: [String]

        package init(
            device: String, port: SerialPort.Settings, layout: LineLayout, rate: Double? = nil, start: [String] = []
        ) {
            self.device = device
            self.port = port
            self.layout = layout
            self.rate = rate
            self.start = start
        }
    }

    /// How long a first whole row may take.
    private static let firstRow = Interval.milliseconds(3000)
    /// A silence that is told.
    private static let silence = Interval.milliseconds(2500)
    /// A silence after which the line is opened anew: a wedged USB chip comes back by that.
    private static let wedged = Interval.milliseconds(5000)

    package nonisolated let stream: StreamID
    private let options: Options
    private let loop: EventLoop
    private let log: Log
    private var port: SerialPort?
    private var flow: SerialFlow?
    private var sink: (any SampleSink)?
    private var timer: EventLoop.TimerID?
    private var isOpen = false
    private var attempts = 0
    private var lastRow = HostClock.now

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ stream: StreamID, _ options: Options) {
        self.stream = stream
        self.options = options
        loop = EventLoop(name: "tty-\(stream)")
        log = Log("serial \(stream)")
    }

    // MARK: Life

    package func open() throws -> StreamDescription {
        close()
        let node = SerialNodes.resolve(options.device)
        let port = try connect(node)
        var flow = SerialFlow(options.layout, rate: options.rate, path: path(to: node))
        try awaitRow(port, &flow)
        self.port = port
        self.flow = flow
        isOpen = true
        do { try watch(port) } catch {
            close()
            throw DeviceError(
                .inputOutput, stream: stream, cause: "\(options.device) can't be waited for: \(error)",
                cure: "restart the program")
        }
        tick()
        if let warning = SerialNodes.warning(for: options.device) { log.warning(warning) }
        return description(node)
    }

    package func start(_ sink: any SampleSink) throws {
        guard isOpen else {
            throw DeviceError(.notFound, stream: stream, cause: "the sensor isn't open", cure: "open it first")
        }
        precondition(self.sink == nil, "\(stream) was started twice")
        flow?.begin()
        lastRow = HostClock.now
        self.sink = sink
        if let warning = SerialNodes.warning(for: options.device) { sink.report(.note(warning)) }
    }

    package func stop() {
        if let sink, let note = flow?.summary { sink.report(.note(note)) }
        sink = nil
    }

    package func close() {
        stop()
        isOpen = false
        if let timer { loop.cancel(timer) }
        timer = nil
        drop()
        flow = nil
    }

    // MARK: Opening

    private func connect(_ node: String?) throws(DeviceError) -> SerialPort {
        guard let node else { throw fault(.noSuchFile, options.device) }
        do throws(Errno) {
            let holders = DeviceHolder.of(node)
            if !holders.isEmpty { throw .busy }
            let port = try SerialPort(path: node, options.port)
            for line in options.start { try port.write(Array((line + "\r\n").utf8)) }
            return port
        } catch { throw fault(error, node) }
    }

    /// Success is a whole row, not an open line: a wrong baud rate opens as well.
    private func awaitRow(_ port: SerialPort, _ flow: inout SerialFlow) throws(DeviceError) {
        let deadline = HostClock.now + Self.firstRow
        var bytes: Int64 = 0
        while HostClock.now < deadline {
            var state = pollfd(fd: port.descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&state, 1, 100)
            do throws(Errno) {
                let part = try port.read(upTo: 4096)
                bytes += Int64(part.count)
                flow.take(part, at: HostClock.now)
            } catch { throw fault(error, options.device) }
            if flow.rows > 0 { return }
        }
        let seen = flow.firstUnfit.map { "the first line that doesn't fit is '\($0)'" } ?? "no whole line among them"
        throw DeviceError(
            .timedOut, stream: stream,
            cause: bytes == 0
                ? "\(options.device) is silent for \(Int(Self.firstRow.seconds)) s at \(options.port.baud) baud"
                : "\(options.device) sent \(bytes) bytes but no row as configured at \(options.port.baud) baud; \(seen)",
            cure: bytes == 0
                ? "switch the sensor on, or have it started by 'start'" : "correct 'baud', 'format' or the channels")
    }

    private func path(to node: String?) -> DeviceClock.Path {
        // A UART's line is whole when its last bit has come, ten bits a byte; on USB the baud rate is only a number.
        let isUART = ["/dev/ttyS", "/dev/ttyUSB", "/dev/ttyAMA"].contains { node?.hasPrefix($0) == true }
        let line = isUART ? Interval.seconds(600 / Double(max(options.port.baud, 1))) : .zero
        return DeviceClock.Path(
            leastDelay: .zero...(line + .microseconds(500)), burst: .milliseconds(20),
            grid: node?.hasPrefix("/dev/pts/") == true ? .zero : .milliseconds(1))
    }

    private func description(_ node: String?) -> StreamDescription {
        let rate = options.rate.map { " at \(V4L2Choice.rate($0)) rows/s" } ?? ""
        return StreamDescription(
            id: stream, kind: .sensor, deviceKind: SerialIMUKind.name,
            deviceIdentity: SerialNodes.identity(of: options.device),
            label: "serial sensor \(options.device), \(options.port.baud) baud\(rate)", nominalRate: options.rate,
            sensor: options.layout.sensor,
            capabilities: StreamCapabilities(
                producesFile: false, supportsPreciseTimestamps: options.layout.counter != nil),
            timestampSource: options.layout.counter == nil
                ? "arrival of the line, CLOCK_MONOTONIC"
                : "the device's counter, by the envelope of arrivals on CLOCK_MONOTONIC")
    }

    private func fault(_ error: Errno, _ node: String) -> DeviceError {
        SerialFault.error(error, node: node, options.port.baud, for: stream)
    }

    // MARK: Rows, on the loop's thread

    private func watch(_ port: SerialPort) throws {
        try loop.watch(port.descriptor, for: .readable) { [weak self] _ in
            self?.assumeIsolated { $0.drain() }
        }
    }

    private func drain() {
        guard let port else { return }
        do throws(Errno) {
            let bytes = try port.read(upTo: 16_384)
            let now = HostClock.now
            guard let actions = flow?.take(bytes, at: now) else { return }
            if actions.contains(where: \.isRow) {
                lastRow = now
                attempts = 0
            }
            guard let sink else { return }
            for action in actions {
                switch action {
                case .deliver(let sample): sink.deliver(sample)
                case .report(let event): sink.report(event)
                }
            }
        } catch {
            interrupt("the serial line was lost: \(error)")
        }
    }

    private func interrupt(_ cause: String) {
        drop()
        flow?.interrupted(cause)
        log.warning("\(options.device): \(cause)")
        sink?.report(.note(cause))
    }

    private func drop() {
        if let port { loop.unwatch(port.descriptor) }
        port = nil
    }

    /// Looks after the line each quarter of a second.
    private func tick() {
        guard isOpen else { return }
        let now = HostClock.now
        if port == nil {
            reopen()
        } else if now - lastRow > Self.wedged {
            interrupt("silent for \(Int(Self.wedged.seconds)) s; the line is opened anew")
            lastRow = now
        } else if now - lastRow > Self.silence, flow?.noteSilence() == true {
            sink?.report(.note("no row for \(Self.silence.seconds) s"))
        }
        timer = loop.schedule(at: now + .milliseconds(250)) { [weak self] in self?.assumeIsolated { $0.tick() } }
    }

    private func reopen() {
        attempts += 1
        // A try each quarter of a second at first, later each two seconds.
        guard attempts < 20 || attempts % 8 == 0 else { return }
        guard let node = SerialNodes.resolve(options.device), let new = try? connect(node) else { return }
        do { try watch(new) } catch { return }
        port = new
        lastRow = HostClock.now
        log.info("\(options.device) is open again")
    }
}
