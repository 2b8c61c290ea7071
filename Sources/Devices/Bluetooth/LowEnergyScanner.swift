internal import Glibc
internal import Platform
internal import Timing

/// One scan over HCI: the reports of the controller, whoever asked for them.
///
/// A controller takes either the old commands or those of extended advertising, whichever came first since its reset, and
/// none while another program scans; then the reports come all the same. So both are tried, and it is tried anew every few
/// seconds, since a connection of the kernel's ends the scan.
///
/// Concurrency: an actor on its event loop.
actor LowEnergyScanner {
    private enum Dialect { case plain, extended }

    private static let renewal = Interval.seconds(4)
    private nonisolated let loop: EventLoop
    private var socket: HCISocket?
    private var dialect = Dialect.plain
    private var hasWorked = false
    private var found: (@Sendable (Advertisement) -> Bool)?
    private var heard: [LowEnergyPeer: Advertisement] = [:]
    private var timer: EventLoop.TimerID?
    private var waiter: CheckedContinuation<Result<Void, LowEnergyError>, Never>?
    private var isCancelled = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(on loop: EventLoop) { self.loop = loop }

    nonisolated func cancel() {
        loop.perform { [self] in
            assumeIsolated { scanner in
                scanner.isCancelled = true
                scanner.finish(.success(()))
            }
        }
    }

    func run(
        adapter: BluetoothAdapter, _ found: @escaping @Sendable (Advertisement) -> Bool
    ) async throws(LowEnergyError) {
        guard !isCancelled else { return }
        self.found = found
        do throws(Errno) {
            let socket = try HCISocket(adapter: adapter.index)
            self.socket = socket
            if RadioTurns.shared.join(self) { try enable() }
        } catch {
            stop()
            throw Self.words(error, adapter)
        }
        guard let socket else { return }
        do {
            try loop.watch(socket.descriptor, for: .readable) { [weak self] _ in
                self?.assumeIsolated { $0.read() }
            }
        } catch {
            stop()
            throw Self.words(error.errno, adapter)
        }
        renew()
        let result = await withCheckedContinuation { waiter = $0 }
        stop()
        try result.get()
    }

    private static func words(_ error: Errno, _ adapter: BluetoothAdapter) -> LowEnergyError {
        switch error {
        case .notPermitted, .accessDenied:
            .unavailable(
                cause: "this program may not scan for Bluetooth devices",
                cure: "give the agent CAP_NET_RAW and CAP_NET_ADMIN, as downbeat-agent.service does, or name each "
                    + "device's address in the configuration")
        default:
            .unavailable(
                cause: "scanning with Bluetooth adapter \(adapter.name) failed (\(error))",
                cure: "unplug the adapter and plug it in again")
        }
    }

    // MARK: On the loop's thread

    /// Active, 60 ms windows each 60 ms, own public address, no filter; repeated reports are wanted for their signal.
    private func enable() throws(Errno) {
        guard let socket else { return }
        switch dialect {
        case .plain:
            try socket.send(.setScanParameters, [1, 0x60, 0, 0x60, 0, 0, 0])
            try socket.send(.setScanEnable, [1, 0])
        case .extended:
            // One physical layer, LE 1M.
            try socket.send(.setExtendedScanParameters, [0, 0, 1, 1, 0x60, 0, 0x60, 0])
            try socket.send(.setExtendedScanEnable, [1, 0, 0, 0, 0, 0])
        }
    }

    private func disable() {
        switch dialect {
        case .plain: try? socket?.send(.setScanEnable, [0, 0])
        case .extended: try? socket?.send(.setExtendedScanEnable, [0, 0, 0, 0, 0, 0])
        }
    }

    /// A connection is about to be made.
    func pause() {
        if hasWorked { disable() }
    }

    /// It stands, or has failed.
    nonisolated func resume() {
        loop.perform { [weak self] in
            self?.assumeIsolated { scanner in
                if scanner.socket != nil, RadioTurns.shared.mayScan { try? scanner.enable() }
            }
        }
    }

    private func renew() {
        timer = loop.schedule(at: HostClock.now + Self.renewal) { [weak self] in
            self?.assumeIsolated { scanner in
                if RadioTurns.shared.mayScan { try? scanner.enable() }
                scanner.renew()
            }
        }
    }

    private func read() {
        for _ in 0..<256 {
            guard let socket else { return }
            let event: HCIEvent?
            do throws(Errno) { event = try socket.next() } catch {
                finish(
                    .failure(
                        .unavailable(cause: "the Bluetooth adapter is gone (\(error))", cure: "plug it in again")))
                return
            }
            switch event {
            case nil: return
            case .reports(let reports): for report in reports { take(report) }
            case .commandResult(let opcode, let status): take(result: status, of: opcode)
            default: break
            }
        }
    }

    private func take(result status: UInt8, of opcode: UInt16) {
        switch (opcode, status) {
        case (HCISocket.Command.setScanEnable.opcode, 0), (HCISocket.Command.setExtendedScanEnable.opcode, 0):
            hasWorked = true
        // Unknown, or disallowed since the others are in use.
        case (HCISocket.Command.setScanParameters.opcode, 0x01), (HCISocket.Command.setScanParameters.opcode, 0x0C):
            guard dialect == .plain, !hasWorked else { return }
            dialect = .extended
            if RadioTurns.shared.mayScan { try? enable() }
        case (HCISocket.Command.setExtendedScanParameters.opcode, 0x01):
            dialect = .plain
        default: break
        }
    }

    private func take(_ report: HCIEvent.Report) {
        let peer = LowEnergyPeer.radio(report.address)
        // A hall full of phones must not fill the memory.
        if heard.count >= 1024, heard[peer] == nil { heard = [:] }
        var advertisement = heard[peer] ?? Advertisement(peer: peer, arrival: HostClock.now)
        advertisement.arrival = HostClock.now
        advertisement.signal = report.signal
        advertisement.isConnectable = report.isConnectable
        advertisement.add(data: report.data)
        heard[peer] = advertisement
        guard waiter != nil, let found else { return }
        if !found(advertisement) { finish(.success(())) }
    }

    private func finish(_ result: Result<Void, LowEnergyError>) {
        waiter?.resume(returning: result)
        waiter = nil
    }

    private func stop() {
        if let timer { loop.cancel(timer) }
        timer = nil
        let isLast = RadioTurns.shared.leave(self)
        if let socket {
            loop.unwatch(socket.descriptor)
            if hasWorked, isLast { disable() }
        }
        socket = nil
        found = nil
    }
}
