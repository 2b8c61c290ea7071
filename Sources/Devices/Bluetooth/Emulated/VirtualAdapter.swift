internal import Glibc
package import Platform
package import Timing

/// Gives the kernel an adapter that isn't there (/dev/vhci), with emulated devices in its range.
///
/// It needs the module `hci_vhci` and root; the adapter is gone when this ends.
///
/// Concurrency: an actor on its own event loop, on which the devices live too.
package actor VirtualAdapter {
    private nonisolated let loop: EventLoop
    private let devices: [(BluetoothAddress, any EmulatedPeripheral)]
    private let own: BluetoothAddress
    private var descriptor: Int32 = -1
    private var controller: VirtualController?
    private var timer: EventLoop.TimerID?
    /// hci0 and so on; known when the kernel has answered.
    package private(set) var index: Int?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Called on this thread when a packet of a device has been handed to the kernel, with the instant just before it.
    private let onDelivery: (@Sendable (BluetoothAddress, [UInt8], Timestamp<HostTime>) -> Void)?

    package init(
        own: BluetoothAddress,
        onDelivery: (@Sendable (BluetoothAddress, [UInt8], Timestamp<HostTime>) -> Void)? = nil,
        _ make: sending @escaping () -> [(BluetoothAddress, any EmulatedPeripheral)]
    ) {
        self.onDelivery = onDelivery
        self.own = own
        loop = EventLoop(name: "emu-vhci", fifoPriority: 6)
        devices = make()
    }

    package func begin() throws(SystemError) {
        let file = try FileDescriptor(path: "/dev/vhci", flags: O_RDWR | O_NONBLOCK)
        // The vendor packet 0xFF asks for an adapter; 0 is the usual kind.
        do throws(Errno) { try file.writeAll([0xFF, 0x00]) } catch { throw SystemError(error, "making an adapter") }
        let number = file.release()
        descriptor = number
        controller = VirtualController(own: own, devices: devices) { packet in
            _ = packet.withUnsafeBytes { write(number, $0.baseAddress, $0.count) }
        }
        controller?.onDelivery = onDelivery
        try loop.watch(number, for: .readable) { [weak self] _ in self?.assumeIsolated { $0.read() } }
        step()
    }

    package func end() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard descriptor >= 0 else { return }
        loop.unwatch(descriptor)
        _ = close(descriptor)
        (descriptor, controller) = (-1, nil)
    }

    // MARK: On the loop's thread

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 2048)
        for _ in 0..<64 {
            guard descriptor >= 0 else { return }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            let packet = Array(buffer.prefix(count))
            if packet.first == 0xFF {
                if packet.count >= 4 { index = Int(packet[2]) | Int(packet[3]) << 8 }
                continue
            }
            controller?.receive(packet, at: HostClock.now)
        }
        step()
    }

    private func step() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let next = controller?.step(at: HostClock.now) else { return }
        timer = loop.schedule(at: next) { [weak self] in self?.assumeIsolated { $0.step() } }
    }
}
