internal import Platform
package import Protocol
internal import Timing

/// A WitMotion sensor over the air: acceleration, angular rate and attitude at the rate that is asked for.
///
/// A link that is lost is made again for as long as the sensor is open; the time between is a gap in the same stream.
///
/// Concurrency: an actor on its own event loop, on which the link lives too; the sink is called there.
package actor WitMotionIMU: CaptureDevice {
    package struct Options: Sendable, Hashable {
        /// Those of one sensor (its address as public and as random); empty when its name must do.
        package var peers: Set<LowEnergyPeer>
        /// A part of its name.
        package var name: String
        package var rate = WitMotionRate.hz100

        package init(peers: Set<LowEnergyPeer> = [], name: String = "WT") {
            self.peers = peers
            self.name = name
        }
    }

    /// The service and its characteristics.
    ///
    /// The maker's firmware has 9a where Bluetooth's own numbers have 9b.
    package enum UUIDs {
        package static let service = number(0xFFE5)
        package static let data = number(0xFFE4)
        package static let command = number(0xFFE9)

        private static func number(_ short: UInt16) -> BluetoothUUID {
            let bytes: [UInt8] = [
                0xFB, 0x34, 0x9A, 0x5F, 0x80, 0, 0, 0x80, 0, 0x10, 0, 0, UInt8(short & 0xFF), UInt8(short >> 8), 0, 0,
            ]
            return BluetoothUUID(littleEndian: bytes) ?? BluetoothUUID(short)
        }

        /// By the maker's number, else by Bluetooth's.
        static func find(_ uuid: BluetoothUUID, _ short: UInt16, in services: [GATTService]) -> GATTCharacteristic? {
            services.characteristic(uuid) ?? services.characteristic(BluetoothUUID(short))
        }
    }

    private static let openPatience = Interval.milliseconds(15_000)
    private static let attemptPatience = Interval.milliseconds(8000)
    private static let firstRow = Interval.milliseconds(3000)
    private static let silence = Interval.milliseconds(2500)
    /// What the sensor needs between two commands.
    private static let commandPause = Interval.milliseconds(100)

    package nonisolated let stream: StreamID
    private let options: Options
    private let central: LowEnergyCentral
    private let loop: EventLoop
    private let log: Log
    private var link: LowEnergyLink?
    private var flow: WitMotionFlow?
    private var sink: (any SampleSink)?
    private var timer: EventLoop.TimerID?
    private var isOpen = false
    private var isConnecting = false
    private var attempts = 0
    private var nextTry = HostClock.now
    private var lastRow = HostClock.now
    /// Events of an earlier link are nobody's.
    private var epoch = 0
    private var handle: UInt16?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ stream: StreamID, _ options: Options, central: LowEnergyCentral) {
        self.stream = stream
        self.options = options
        self.central = central
        loop = EventLoop(name: "wit-\(stream)")
        log = Log("witmotion \(stream)")
    }

    // MARK: Life

    package func open() async throws -> StreamDescription {
        await close()
        isOpen = true
        let deadline = HostClock.now + Self.openPatience
        while true {
            do {
                let description = try await connect()
                tick()
                return description
            } catch let error as DeviceError {
                await drop()
                guard isOpen, HostClock.now + .milliseconds(500) < deadline, error.code != .accessDenied,
                    error.code != .unsupported
                else {
                    isOpen = false
                    throw error
                }
                try await loop.sleep(for: .milliseconds(500))
            }
        }
    }

    package func start(_ sink: any SampleSink) throws {
        guard isOpen else {
            throw DeviceError(.notFound, stream: stream, cause: "the sensor isn't open", cure: "open it first")
        }
        precondition(self.sink == nil, "\(stream) was started twice")
        flow?.begin()
        self.sink = sink
    }

    package func stop() { sink = nil }

    package func close() async {
        stop()
        isOpen = false
        if let timer { loop.cancel(timer) }
        timer = nil
        await drop()
        flow = nil
    }

    // MARK: Connecting

    /// Until the first whole motion: a link alone is no sensor.
    private func connect() async throws -> StreamDescription {
        epoch += 1
        let mine = epoch
        do {
            let peer = try await find()
            let link = try await central.connect(to: peer, within: Self.attemptPatience, on: loop) {
                [weak self] event in
                self?.assumeIsolated { $0.handle(event, epoch: mine) }
            }
            guard mine == epoch else {
                await link.disconnect()
                throw LowEnergyError.disconnected(.local)
            }
            self.link = link
            // Without the right to ask, the link stays as it is.
            try? await link.ask(for: .fast)
            try await link.exchangeMTU()
            let parameters = await link.parameters
            let services = try await link.discover()
            guard let data = UUIDs.find(UUIDs.data, 0xFFE4, in: services),
                let command = UUIDs.find(UUIDs.command, 0xFFE9, in: services)
            else {
                throw DeviceError(
                    .unsupported, stream: stream,
                    cause: "\(peer) isn't a WitMotion sensor: it lacks the sensor's service",
                    cure: "correct its address in the configuration")
            }
            if flow == nil { flow = WitMotionFlow(rate: options.rate.hertz, path: Self.path(parameters, peer)) }
            handle = data.handle
            try await link.subscribe(to: data)
            let confirmed = try await setRate(link, command)
            try await awaitRow()
            return description(peer, parameters, confirmed)
        } catch let error as LowEnergyError {
            throw fault(error)
        }
    }

    private func find() async throws(LowEnergyError) -> LowEnergyPeer {
        if options.peers.count == 1, let only = options.peers.first, case .socket = only { return only }
        var filter = AdvertisementFilter()
        if options.peers.isEmpty { filter.nameContains = options.name } else { filter.peers = options.peers }
        return try await central.find(filter, within: Self.attemptPatience).peer
    }

    /// Sets the rate and reads it back; false when the sensor doesn't answer.
    private func setRate(_ link: LowEnergyLink, _ command: GATTCharacteristic) async throws -> Bool {
        for word in [WitMotionCommand.unlock, .setRate(options.rate.rawValue), .read(register: 3)] {
            if command.properties.contains(.write) {
                try await link.write(word.bytes, to: command)
            } else {
                try await link.send(word.bytes, to: command)
            }
            try await loop.sleep(for: Self.commandPause)
        }
        for _ in 0..<5 where flow?.register == nil { try await loop.sleep(for: Self.commandPause) }
        guard let register = flow?.register, register.number == 3 else { return false }
        guard register.value == UInt16(options.rate.rawValue) else {
            throw DeviceError(
                .unsupported, stream: stream, cause: "the sensor refuses \(options.rate.hertz) rows/s",
                cure: "set 'rate' to one that it has")
        }
        return true
    }

    private func awaitRow() async throws {
        let (deadline, known) = (HostClock.now + Self.firstRow, flow?.rows ?? 0)
        while (flow?.rows ?? 0) == known {
            guard HostClock.now < deadline else {
                throw DeviceError(
                    .timedOut, stream: stream,
                    cause: "the sensor is connected and sends no motion in \(Self.firstRow.seconds) s",
                    cure: "switch it off and on")
            }
            try await loop.sleep(for: .milliseconds(20))
        }
        lastRow = HostClock.now
    }

    private static func path(_ parameters: ConnectionParameters?, _ peer: LowEnergyPeer) -> DeviceClock.Path {
        if let parameters { return .bluetooth(connectionInterval: parameters.interval) }
        if case .radio = peer { return .bluetooth(connectionInterval: .milliseconds(50)) }
        return DeviceClock.Path(leastDelay: .zero ... .milliseconds(1), burst: .milliseconds(50))
    }

    private func description(
        _ peer: LowEnergyPeer, _ parameters: ConnectionParameters?, _ isConfirmed: Bool
    ) -> StreamDescription {
        let link = parameters.map { "\($0)" } ?? "connection parameters unknown"
        let doubt = isConfirmed ? "" : " (not confirmed by the sensor)"
        let axes = ["x", "y", "z"]
        let channels =
            axes.map { SensorFormat.Channel(name: "accel_\($0)", unit: "m/s^2") }
            + axes.map { .init(name: "gyro_\($0)", unit: "rad/s") }
            + ["roll", "pitch", "yaw"].map { .init(name: $0, unit: "rad") }
        return StreamDescription(
            id: stream, kind: .sensor, deviceKind: WitMotionKind.name, deviceIdentity: "\(peer)",
            label: "WitMotion sensor at \(options.rate.hertz) rows/s\(doubt); \(link)", nominalRate: options.rate.hertz,
            sensor: SensorFormat(channels: channels), capabilities: StreamCapabilities(producesFile: false),
            timestampSource: "count of frames at the sensor's pace, on host time by the quickest arrivals")
    }

    private func fault(_ error: LowEnergyError) -> DeviceError {
        let (code, cause, cure): (DeviceError.Code, String, String) =
            switch error {
            case .unavailable(let cause, let cure): (.accessDenied, cause, cure)
            case .notFound(let what):
                (.notFound, what, "switch the sensor on, bring it near, and see that no other host has it")
            case .noAnswer: (.timedOut, "the sensor: \(error)", "switch it off and on")
            default: (.disconnected, "the sensor: \(error)", "bring it nearer, or switch it off and on")
            }
        return DeviceError(code, stream: stream, cause: cause, cure: cure)
    }

    // MARK: Rows, on the loop's thread

    private func handle(_ event: LinkEvent, epoch mine: Int) {
        guard mine == epoch else { return }
        switch event {
        case .value(let handle, let bytes, let arrival):
            guard handle == self.handle, let actions = flow?.take(bytes, at: arrival), !actions.isEmpty else { return }
            lastRow = arrival
            attempts = 0
            guard let sink else { return }
            for action in actions {
                switch action {
                case .deliver(let sample): sink.deliver(sample)
                case .report(let event): sink.report(event)
                }
            }
        case .parameters(let parameters): sink?.report(.note("the link now meets \(parameters)"))
        case .ended(let reason): interrupt("the sensor's link was lost: \(reason)")
        }
    }

    private func interrupt(_ cause: String) {
        epoch += 1
        let old = link
        link = nil
        flow?.interrupted(cause)
        guard isOpen else { return }
        log.warning(cause)
        sink?.report(.note(cause))
        nextTry = HostClock.now
        // The radio's own end of it; nobody waits for that.
        Task { await old?.disconnect() }
    }

    private func drop() async {
        epoch += 1
        let old = link
        link = nil
        await old?.disconnect()
    }

    /// Looks after the link four times a second.
    private func tick() {
        guard isOpen else { return }
        let now = HostClock.now
        if link != nil, !isConnecting, now - lastRow > Self.silence {
            interrupt("no motion came from the sensor for \(Self.silence.seconds) s")
        }
        if link == nil, !isConnecting, now >= nextTry { reconnect() }
        timer = loop.schedule(at: now + .milliseconds(250)) { [weak self] in self?.assumeIsolated { $0.tick() } }
    }

    private func reconnect() {
        isConnecting = true
        attempts += 1
        // The tick can't wait; its next round sees what came of it.
        Task {
            do {
                _ = try await connect()
                log.info("the sensor's link is back")
                sink?.report(.note("the sensor's link is back"))
            } catch {
                log.info("\(error)")
                await drop()
                nextTry = HostClock.now + min(.milliseconds(500) * Int64(attempts), .milliseconds(5000))
            }
            isConnecting = false
            if !isOpen { await drop() }
        }
    }
}
