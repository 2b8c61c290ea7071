internal import CBlueZ
internal import Glibc
package import Platform
internal import Timing

/// Offers emulated devices at sockets: one central at a time each, as over the air.
///
/// Concurrency: an actor on its own event loop, on which the device lives too.
package actor SocketPeripheral {
    private final class Link: PeripheralLink {
        var descriptor: Int32
        init(_ descriptor: Int32) { self.descriptor = descriptor }

        func send(_ packet: [UInt8]) { _ = try? PacketSocket.send(descriptor, packet) }

        func disconnect() {
            // The reader sees the end.
            _ = shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    package nonisolated let path: String
    private nonisolated let loop: EventLoop
    private let device: any EmulatedPeripheral
    private var listener: Int32 = -1
    private var link: Link?
    private var timer: EventLoop.TimerID?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - path: of the socket; a name that ends with `.sock` is heard by a scan of its folder.
    ///   - make: makes the device, on the thread that it will live on.
    package init(path: String, _ make: sending @escaping () -> any EmulatedPeripheral) {
        self.path = path
        loop = EventLoop(name: "emu-ble")
        device = make()
    }

    package func begin() throws(SystemError) {
        try? Files.remove(path)
        do throws(Errno) { listener = try throwingErrno { cbluez_local_socket(path, 1) } } catch {
            throw SystemError(error, "listening at \(path)")
        }
        try loop.watch(listener, for: .readable) { [weak self] _ in self?.assumeIsolated { $0.accept() } }
        step()
    }

    package func end() {
        drop()
        if let timer { loop.cancel(timer) }
        timer = nil
        guard listener >= 0 else { return }
        loop.unwatch(listener)
        _ = close(listener)
        listener = -1
        try? Files.remove(path)
    }

    /// Runs something on the device, such as a fault that is asked for.
    package func with<T: Sendable>(_ body: sending (any EmulatedPeripheral) -> T) -> T {
        defer { step() }
        return body(device)
    }

    // MARK: On the loop's thread

    private func accept() {
        let new = Glibc.accept(listener, nil, nil)
        guard new >= 0 else { return }
        guard link == nil, device.isAdvertising(at: HostClock.now) else {
            _ = close(new)
            return
        }
        let link = Link(new)
        do {
            try loop.watch(new, for: .readable) { [weak self] _ in self?.assumeIsolated { $0.read() } }
        } catch {
            _ = close(new)
            return
        }
        self.link = link
        device.connected(link, at: HostClock.now)
        step()
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 2048)
        while let link {
            switch PacketSocket.receive(link.descriptor, into: &buffer) {
            case .nothing:
                step()
                return
            case .end:
                drop()
                return
            case .packet(let packet): device.received(packet, at: HostClock.now)
            }
        }
    }

    private func drop() {
        guard let link else { return }
        self.link = nil
        loop.unwatch(link.descriptor)
        _ = close(link.descriptor)
        link.descriptor = -1
        device.disconnected(at: HostClock.now)
        step()
    }

    private func step() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let next = device.step(at: HostClock.now) else { return }
        timer = loop.schedule(at: next) { [weak self] in self?.assumeIsolated { $0.step() } }
    }
}
