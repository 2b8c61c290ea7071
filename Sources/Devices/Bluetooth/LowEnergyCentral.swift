package import Platform
internal import Synchronization
package import Timing

/// The side that looks for low-energy devices and connects to them.
///
/// Concurrency: a value; from anywhere. Nothing of it blocks a cooperative thread.
package struct LowEnergyCentral: Sendable {
    private let radios: [any LowEnergyRadio]

    /// The machine's adapter (nil: the first one that works), and the sockets of emulators.
    package init(adapter: String? = nil) { self.init(radios: [BlueZRadio(adapter: adapter), SocketRadio()]) }

    package init(radios: [any LowEnergyRadio]) { self.radios = radios }

    /// Hears what is advertised until `found` answers false, `patience` is over, or the task is cancelled.
    ///
    /// `found` is called on a thread of the scan. With several radios a failure of one is told when all have failed.
    package func scan(
        _ filter: AdvertisementFilter, for patience: Interval,
        _ found: @escaping @Sendable (Advertisement) -> Bool
    ) async throws(LowEnergyError) {
        let wanted = radios.filter { radio in
            radio.scans && (filter.peers.map { $0.contains(where: radio.reaches) } ?? true)
        }
        let gate = ScanGate(filter, found)
        let stopper = EventLoop(name: "ble-limit")
        let failures = await withTaskGroup(of: ScanEnd.self) { group in
            for radio in wanted {
                group.addTask {
                    do throws(LowEnergyError) {
                        try await radio.scan { gate.take($0) }
                        return .radio(nil)
                    } catch {
                        return .radio(error)
                    }
                }
            }
            group.addTask {
                try? await stopper.sleep(for: patience)
                return .timeIsUp
            }
            var failures: [LowEnergyError] = []
            var left = wanted.count
            while left > 0, let end = await group.next(), case .radio(let failure) = end {
                left -= 1
                if let failure { failures.append(failure) }
                if gate.isDone { break }
            }
            group.cancelAll()
            return failures
        }
        if let first = failures.first, failures.count >= wanted.count { throw first }
    }

    /// Lets through what is meant, until the one who asked has enough.
    private final class ScanGate: Sendable {
        private let filter: AdvertisementFilter
        private let found: @Sendable (Advertisement) -> Bool
        private let done = Mutex(false)

        init(_ filter: AdvertisementFilter, _ found: @escaping @Sendable (Advertisement) -> Bool) {
            self.filter = filter
            self.found = found
        }

        var isDone: Bool { done.withLock { $0 } }

        /// False when no more is wanted.
        func take(_ advertisement: Advertisement) -> Bool {
            guard filter.admits(advertisement) else { return true }
            return done.withLock { done in
                if !done { done = !found(advertisement) }
                return !done
            }
        }
    }

    private enum ScanEnd: Sendable {
        case radio(LowEnergyError?)
        case timeIsUp
    }

    /// The first device that the filter admits.
    package func find(
        _ filter: AdvertisementFilter, within patience: Interval
    ) async throws(LowEnergyError) -> Advertisement {
        let first = FirstFound()
        try await scan(filter, for: patience) { advertisement in
            first.advertisement.withLock { $0 = $0 ?? advertisement }
            return false
        }
        guard let found = first.advertisement.withLock({ $0 }) else {
            throw .notFound("no such device was heard within \(patience.seconds) s")
        }
        return found
    }

    private final class FirstFound: Sendable { let advertisement = Mutex<Advertisement?>(nil) }

    /// Connects within `patience`; the handler gets what the device sends, on the loop's thread.
    package func connect(
        to peer: LowEnergyPeer, within patience: Interval, on loop: EventLoop,
        _ handler: @escaping LowEnergyLink.Handler
    ) async throws(LowEnergyError) -> LowEnergyLink {
        guard let radio = radios.first(where: { $0.reaches(peer) }) else {
            throw .notFound("nothing here reaches '\(peer)'")
        }
        let channel = try await radio.channel(to: peer, within: patience)
        let link = LowEnergyLink(peer: peer, channel: channel, on: loop, handler)
        try await link.begin()
        return link
    }
}
