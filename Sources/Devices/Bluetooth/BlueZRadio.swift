internal import CBlueZ
internal import Glibc
internal import Platform
internal import Synchronization
package import Timing

/// This machine's Bluetooth adapter: scanning by HCI, connecting by L2CAP; beside a bluetoothd or without one.
///
/// Concurrency: each scan and each connecting has a thread of its own for as long as it lasts.
package struct BlueZRadio: LowEnergyRadio {
    /// "hci0" or an address; nil takes the first one that works.
    package var adapter: String?

    package init(adapter: String? = nil) { self.adapter = adapter }

    package var scans: Bool { true }

    package func reaches(_ peer: LowEnergyPeer) -> Bool {
        if case .radio = peer { true } else { false }
    }

    // MARK: Scanning

    package func scan(_ found: @escaping @Sendable (Advertisement) -> Bool) async throws(LowEnergyError) {
        let loop = EventLoop(name: "ble-scan")
        let scanner = LowEnergyScanner(on: loop)
        do {
            try await withTaskCancellationHandler {
                let ready = try await loop.run { [adapter] in try BluetoothAdapter.ready(named: adapter) }
                try await scanner.run(adapter: ready, found)
            } onCancel: {
                scanner.cancel()
            }
        } catch let error as LowEnergyError {
            throw error
        } catch {
            throw .malformed("\(error)")
        }
    }

    // MARK: Connecting

    package func channel(
        to peer: LowEnergyPeer, within patience: Interval
    ) async throws(LowEnergyError) -> any LowEnergyChannel {
        guard case .radio(let address) = peer else {
            throw .notFound("'\(peer)' isn't the address of a Bluetooth device")
        }
        let loop = EventLoop(name: "ble-connect")
        do {
            let ready = try await loop.run { [adapter] in try BluetoothAdapter.ready(named: adapter) }
            let deadline = HostClock.now + patience
            await RadioTurns.shared.beginConnecting()
            defer { RadioTurns.shared.endConnecting() }
            while true {
                do {
                    return try await connect(address, ready, until: deadline, on: loop)
                } catch let error as Errno {
                    // The kernel makes one connection at a time, and another may be under way.
                    guard error == .busy || error == .again, HostClock.now + .milliseconds(200) < deadline else {
                        throw Self.words(error, address, patience)
                    }
                    try await loop.sleep(for: .milliseconds(200))
                }
            }
        } catch let error as LowEnergyError {
            throw error
        } catch {
            throw .notFound("connecting to \(address) was given up")
        }
    }

    private func connect(
        _ address: BluetoothAddress, _ adapter: BluetoothAdapter, until deadline: Timestamp<HostTime>,
        on loop: EventLoop
    ) async throws -> L2CAPChannel {
        let channel = try L2CAPChannel(to: address, through: adapter)
        let gate = ConnectGate()
        defer { loop.unwatch(channel.descriptor) }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                gate.install(continuation)
                let descriptor = channel.descriptor
                loop.perform {
                    do throws(SystemError) {
                        try loop.watch(descriptor, for: .writable) { _ in
                            loop.unwatch(descriptor)
                            gate.finish(with: Result { try channel.finishConnecting() })
                        }
                    } catch { gate.finish(with: .failure(error.errno)) }
                }
                loop.schedule(at: deadline) {
                    loop.unwatch(descriptor)
                    gate.finish(with: .failure(Errno.timedOut))
                }
            }
        } onCancel: {
            gate.finish(with: .failure(CancellationError()))
        }
        return channel
    }

    private static func words(_ error: Errno, _ address: BluetoothAddress, _ patience: Interval) -> LowEnergyError {
        switch error {
        case .timedOut, Errno(rawValue: ECONNREFUSED), Errno(rawValue: EHOSTUNREACH), Errno(rawValue: EINPROGRESS):
            .notFound(
                "device \(address) wasn't heard within \(patience.seconds) s: see whether it is on, near, and not "
                    + "connected to another host")
        case .notPermitted, .accessDenied:
            .unavailable(
                cause: "this program may not connect by Bluetooth (\(error))",
                cure: "give the agent CAP_NET_RAW and CAP_NET_ADMIN, as downbeat-agent.service does")
        default: .disconnected(.socket(error))
        }
    }
}

/// Resumes the one who waits for a connection exactly once.
private final class ConnectGate: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Void, any Error>?
        var result: Result<Void, any Error>?
    }
    private let state = Mutex(State())

    func install(_ continuation: CheckedContinuation<Void, any Error>) {
        let early = state.withLock { state in
            if state.result == nil { state.continuation = continuation }
            return state.result
        }
        if let early { continuation.resume(with: early) }
    }

    func finish(with result: Result<Void, any Error>) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        waiting?.resume(with: result)
    }
}
