internal import Synchronization

/// Whose turn it is on the adapters: scans give way to connections.
///
/// The kernel connects by scanning for the device itself. A scan of ours beside it, and even more its end, would switch
/// that off without the kernel's knowledge: the device then isn't heard although it is there.
///
/// Concurrency: one `Mutex`; from anywhere.
final class RadioTurns: Sendable {
    static let shared = RadioTurns()

    private struct State {
        var connecting = 0
        var scanners: [ObjectIdentifier: LowEnergyScanner] = [:]
    }
    private let state = Mutex(State())

    /// A scan begins; false when it has to wait for its turn.
    func join(_ scanner: LowEnergyScanner) -> Bool {
        state.withLock { state in
            state.scanners[ObjectIdentifier(scanner)] = scanner
            return state.connecting == 0
        }
    }

    /// A scan ends; true when it should switch scanning off, since nobody else needs it.
    func leave(_ scanner: LowEnergyScanner) -> Bool {
        state.withLock { state in
            state.scanners[ObjectIdentifier(scanner)] = nil
            return state.scanners.isEmpty && state.connecting == 0
        }
    }

    var mayScan: Bool { state.withLock { $0.connecting == 0 } }

    /// Ends all scans until the connection stands or has failed.
    func beginConnecting() async {
        let scanners = state.withLock { state in
            state.connecting += 1
            return Array(state.scanners.values)
        }
        for scanner in scanners { await scanner.pause() }
    }

    func endConnecting() {
        let scanners = state.withLock { state in
            state.connecting -= 1
            return state.connecting == 0 ? Array(state.scanners.values) : []
        }
        for scanner in scanners { scanner.resume() }
    }
}
