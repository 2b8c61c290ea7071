internal import CBlueZ
internal import Glibc
package import Platform

/// A channel over a SEQPACKET socket of this machine: an emulator's, or one half of a pair.
///
/// Concurrency: used by one thread at a time.
package final class SocketChannel: LowEnergyChannel, @unchecked Sendable {
    /// -1 when closed.
    package private(set) var descriptor: Int32
    package var newsDescriptor: Int32? { nil }
    package var parameters: ConnectionParameters? { nil }
    package var reason: DisconnectReason? { nil }

    package init(owning descriptor: Int32) { self.descriptor = descriptor }

    /// Connects to the socket at a path; it doesn't block for longer than the listener's queue is full.
    package init(path: String) throws(Errno) {
        descriptor = try throwingErrno { cbluez_local_socket(path, 0) }
    }

    /// Two ends that hear each other.
    package static func pair() throws(Errno) -> (SocketChannel, SocketChannel) {
        var ends: [Int32] = [-1, -1]
        try throwingErrno { cbluez_local_pair(&ends) }
        return (SocketChannel(owning: ends[0]), SocketChannel(owning: ends[1]))
    }

    package func update() {}

    package func ask(for wish: ConnectionWish) throws(LowEnergyError) {
        throw .unavailable(cause: "an emulated link has no parameters", cure: "none is needed")
    }

    package func setSecurity(_ level: LinkSecurity) throws(LowEnergyError) {}

    deinit { close() }

    package func close() {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        descriptor = -1
    }
}
