internal import CBlueZ
internal import Glibc
package import Platform

/// The channel of the attribute protocol over the kernel's L2CAP: fixed channel 4 of a low-energy link.
///
/// The controller's events are heard beside it, for the parameters and the reason of an end; without CAP_NET_RAW the
/// kernel tells only the reason.
///
/// Concurrency: used by one thread at a time: the one that connects, then the link's. The checker can't see that
/// handover.
package final class L2CAPChannel: LowEnergyChannel, @unchecked Sendable {
    /// -1 when closed.
    package private(set) var descriptor: Int32
    private var events: HCISocket?
    private let address: BluetoothAddress
    private var handle: UInt16?
    package private(set) var parameters: ConnectionParameters?
    package private(set) var reason: DisconnectReason?

    package var newsDescriptor: Int32? { events?.descriptor }

    /// Begins to connect; `isConnected` says when it is done.
    package init(to address: BluetoothAddress, through adapter: BluetoothAdapter) throws(Errno) {
        self.address = address
        // Before the connection, whose parameters come in an event.
        events = try? HCISocket(adapter: adapter.index)
        let local = BluetoothAddress(adapter.address)?.littleEndian
        let number: Int32
        if let local {
            number = try throwingErrno { cbluez_att_socket(local) }
        } else {
            number = try throwingErrno { cbluez_att_socket(nil) }
        }
        let file = FileDescriptor(owning: number)
        let target = address.littleEndian
        let isRandom: Int32 = address.kind == .random ? 1 : 0
        do throws(Errno) {
            try throwingErrno { cbluez_att_connect(number, target, isRandom) }
        } catch {
            guard error == Errno(rawValue: EINPROGRESS) || error == .again else { throw error }
        }
        descriptor = file.release()
    }

    /// Whether the connection stands, when the socket has become writable; throws why it failed.
    package func finishConnecting() throws(Errno) {
        let error = cbluez_socket_error(descriptor)
        guard error == 0 else { throw Errno(rawValue: error) }
        let number = try throwingErrno { cbluez_connection_handle(descriptor) }
        handle = UInt16(truncatingIfNeeded: number)
        update()
    }

    package func update() {
        // What lies in the socket is bounded by the kernel; a burst of reports is passed over.
        for _ in 0..<1024 {
            guard let events, let event = (try? events.next()) ?? nil else { return }
            switch event {
            case .connected(let handle, let address, let parameters) where address == self.address:
                if self.handle == nil { self.handle = handle }
                if handle == self.handle { self.parameters = parameters }
            case .parametersChanged(let handle, let parameters) where handle == self.handle:
                self.parameters = parameters
            case .disconnected(let handle, let reason) where handle == self.handle:
                self.reason = .hci(reason)
            default: break
            }
        }
    }

    package func ask(for wish: ConnectionWish) throws(LowEnergyError) {
        guard let events, let handle else {
            throw .unavailable(
                cause: "the connection's parameters can't be asked for", cure: "give the agent CAP_NET_RAW")
        }
        do throws(Errno) {
            try events.send(.connectionUpdate, [UInt8(handle & 0xFF), UInt8(handle >> 8)] + wish.commandBytes)
        } catch {
            throw .unavailable(
                cause: "the connection's parameters can't be asked for (\(error))",
                cure: "give the agent CAP_NET_RAW, as downbeat-agent.service does")
        }
    }

    package func setSecurity(_ level: LinkSecurity) throws(LowEnergyError) {
        do throws(Errno) { try throwingErrno { cbluez_set_security(descriptor, level.rawValue) } } catch {
            throw .unavailable(
                cause: "the link to \(address) can't be encrypted (\(error))", cure: "pair with it: bluetoothctl pair")
        }
    }

    deinit { close() }

    package func close() {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        descriptor = -1
        events = nil
    }
}
