internal import Glibc
internal import Platform
package import Timing

/// A folder of sockets in place of the air: each one is a device, its name without `.sock` is what it advertises.
///
/// For emulators and tests; the packets are the same as over a radio.
package struct SocketRadio: LowEnergyRadio {
    /// Nil: only sockets that are named by their whole path.
    package var folder: String?

    package init(folder: String? = nil) { self.folder = folder }

    package var scans: Bool { folder != nil }

    package func reaches(_ peer: LowEnergyPeer) -> Bool {
        if case .socket = peer { true } else { false }
    }

    package func scan(_ found: @escaping @Sendable (Advertisement) -> Bool) async throws(LowEnergyError) {
        guard let folder else { return }
        let loop = EventLoop(name: "sock-scan")
        while true {
            for name in (try? Files.list(folder)) ?? [] where name.hasSuffix(".sock") {
                let advertisement = Advertisement(
                    peer: .socket("\(folder)/\(name)"), name: String(name.dropLast(5)), arrival: HostClock.now)
                if !found(advertisement) { return }
            }
            do { try await loop.sleep(for: .milliseconds(50)) } catch { return }
        }
    }

    package func channel(
        to peer: LowEnergyPeer, within patience: Interval
    ) async throws(LowEnergyError) -> any LowEnergyChannel {
        guard case .socket(let path) = peer else { throw .notFound("'\(peer)' isn't the path of a socket") }
        do throws(Errno) { return try SocketChannel(path: path) } catch {
            throw .notFound("nobody listens at \(path) (\(error))")
        }
    }
}
