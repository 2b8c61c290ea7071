internal import Glibc
package import Platform
package import Timing

/// A glove at a USB port: tagged frames over CDC, with lines of text in between.
///
/// The glove sends only with DTR up, and takes RTS beside it as a reset: RTS is put down as soon as the port is open. It is
/// good with the first tagged frame; a heartbeat's text isn't data.
package struct USBGlove: GloveTransport {
    private static let answerPatience = Interval.milliseconds(800)
    private static let attempts = 3
    /// Nominal, of a glove that samples its taxels 250 times a second: 500 inertial rows and 125 of the field.
    private static let imuPerTactile = 2.0
    private static let magPerTactile = 0.5

    /// A link below /dev/serial/by-id, which is the same glove in any port.
    private let path: String

    package init(path: String) { self.path = path }

    package var label: String { path }

    package func connect(
        as side: GloveSide, claims: any GloveClaims, within patience: Interval, on loop: EventLoop,
        _ handler: @escaping @Sendable (GloveEvent) -> Void
    ) async throws(GloveFault) -> GloveConnection {
        guard claims.claim(path) else {
            throw GloveFault(
                .busy, "the glove \(path) is in use as another stream of this host",
                cure: "give each glove its own address in the configuration", isFinal: true)
        }
        let line = USBGloveLine(on: loop, handler)
        do {
            try await line.open(path)
            for _ in 0..<Self.attempts {
                guard let text = try await line.askConfiguration(within: Self.answerPatience) else { continue }
                let configuration: GloveConfiguration
                do throws(GloveConfiguration.Invalid) { configuration = try GloveConfiguration(text) } catch {
                    throw GloveFault(
                        .unsupported, "\(path): \(error)", cure: "write its side with the maker's tool", isFinal: true)
                }
                try BluetoothGlove.check(configuration, path, side)
                try await line.stream(configuration)
                return connection(configuration, line)
            }
            // A port whose firmware hangs comes back by a reset of the bus.
            let wasReset = USBPort.reset(path)
            throw GloveFault(
                .timedOut, "the glove at \(path) doesn't answer\(wasReset ? "; its port was reset" : "")",
                cure: "unplug it and plug it in again")
        } catch {
            await line.close()
            throw (error as? GloveFault) ?? Self.fault(error, path)
        }
    }

    private func connection(_ configuration: GloveConfiguration, _ line: USBGloveLine) -> GloveConnection {
        let rate = configuration.rate
        return GloveConnection(
            configuration: configuration, identity: path, link: "tagged frames over USB", battery: nil, path: .usb,
            rate: { modality in
                switch modality {
                case .tactile: rate
                case .imu: configuration.hasIMU ? rate * Self.imuPerTactile : nil
                case .mag: configuration.hasIMU ? rate * Self.magPerTactile : nil
                }
            }, close: { await line.close() })
    }

    private static func fault(_ error: any Error, _ path: String) -> GloveFault {
        switch error as? Errno {
        case Errno.noSuchFile?, Errno.noDevice?:
            GloveFault(.notFound, "there is no glove at \(path)", cure: "plug it in; `ls /dev/serial/by-id` shows it")
        case Errno.busy?:
            GloveFault(
                .busy, "the glove at \(path) is held by \(DeviceHolder.words(for: path))", cure: "close that program")
        case Errno.accessDenied?:
            GloveFault(
                .accessDenied, "this program may not open \(path)",
                cure: "add its user to the group 'dialout'", isFinal: true)
        default:
            GloveFault(.inputOutput, "the glove at \(path): \(error)", cure: "unplug it and plug it in again")
        }
    }
}

/// The open port of a glove.
///
/// Concurrency: an actor on the glove's event loop.
actor USBGloveLine {
    private static let nudge = Interval.milliseconds(400)
    private static let mostNudges = 8

    private nonisolated let loop: EventLoop
    private let handler: @Sendable (GloveEvent) -> Void
    private var port: SerialPort?
    private var reader = TagFrameReader()
    private var waiter: CheckedContinuation<[UInt8]?, Never>?
    private var isStreaming = false
    private var hasData = false
    private var toldMalformed = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(on loop: EventLoop, _ handler: @escaping @Sendable (GloveEvent) -> Void) {
        self.loop = loop
        self.handler = handler
    }

    func open(_ path: String) throws {
        let port = try SerialPort(path: path, SerialPort.Settings(baud: 115_200, dtr: true, rts: false))
        self.port = port
        try loop.watch(port.descriptor, for: .readable) { [weak self] _ in self?.assumeIsolated { $0.read() } }
    }

    /// The text after `#CONFIG`; nil when none comes.
    func askConfiguration(within patience: Interval) async throws -> [UInt8]? {
        // Whatever it was told by an earlier program, it keeps quiet now.
        try write("STREAM TAG OFF\nSTREAM BIN OFF\nSTREAM TAXEL OFF\nGET CONFIG\n")
        return await withCheckedContinuation { continuation in
            waiter = continuation
            loop.schedule(at: HostClock.now + patience) { [weak self] in
                self?.assumeIsolated { $0.answer(nil) }
            }
        }
    }

    func stream(_ configuration: GloveConfiguration) throws {
        reader = TagFrameReader(values: configuration.valuesPerSample)
        isStreaming = true
        try write("STREAM TAG ON\n")
        nudge(1)
    }

    func close() {
        answer(nil)
        guard let port else { return }
        try? write("STREAM TAG OFF\n")
        loop.unwatch(port.descriptor)
        self.port = nil
    }

    private func write(_ text: String) throws { try port?.write(Array(text.utf8)) }

    /// A command that came while the glove was starting is lost.
    private func nudge(_ count: Int) {
        guard count <= Self.mostNudges else { return }
        loop.schedule(at: HostClock.now + Self.nudge) { [weak self] in
            self?.assumeIsolated { line in
                guard line.port != nil, !line.hasData else { return }
                try? line.write("STREAM TAG ON\n")
                line.nudge(count + 1)
            }
        }
    }

    private func answer(_ text: [UInt8]?) {
        waiter?.resume(returning: text)
        waiter = nil
    }

    private func read() {
        guard let port else { return }
        let bytes: [UInt8]
        do throws(Errno) { bytes = try port.read(upTo: 16_384) } catch {
            loop.unwatch(port.descriptor)
            self.port = nil
            answer(nil)
            handler(.ended("the USB port is gone (\(error))"))
            return
        }
        let arrival = HostClock.now
        var readings: [GloveReading] = []
        for item in reader.append(bytes) {
            switch item {
            case .reading(let reading): if isStreaming { readings.append(reading) }
            case .line(let line):
                guard line.hasPrefix("#CONFIG ") else { continue }
                answer(Array(line.dropFirst("#CONFIG ".count).utf8))
            }
        }
        if reader.malformed > toldMalformed {
            toldMalformed = reader.malformed
            handler(.malformed("a damaged frame came over USB"))
        }
        guard !readings.isEmpty else { return }
        hasData = true
        handler(.readings(readings, arrival: arrival))
    }
}
