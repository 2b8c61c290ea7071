internal import CLinux
internal import Glibc
internal import Platform
internal import Timing

/// A UDP socket with kernel receive stamps: IPv6 with IPv4 mapped into it, or IPv4 where the kernel has no IPv6.
///
/// It never blocks. One owner, one thread.
struct DatagramSocket: ~Copyable {
    struct Datagram {
        var bytes: ArraySlice<UInt8>
        var from: SocketAddress
        /// CLOCK_MONOTONIC in ns, not before the true arrival.
        var arrival: Int64
    }

    /// AF_INET6 or AF_INET.
    let family: Int32
    /// For watching it in an event loop.
    var descriptor: Int32 { file.rawValue }

    private let file: FileDescriptor
    private var stamper = ReceiveStamper()
    /// An instant at which nothing was waiting.
    private var emptyAt: Int64
    private var buffer = [UInt8](repeating: 0, count: 2048)

    /// Opens and binds; port zero is any that is free.
    init(port: UInt16) throws(SystemError) {
        let six = try? Self.open(AF_INET6, port: port)
        if let six {
            file = FileDescriptor(owning: six)
            family = AF_INET6
        } else {
            file = FileDescriptor(owning: try Self.open(AF_INET, port: port))
            family = AF_INET
        }
        emptyAt = HostClock.now.nanoseconds
        stamper.note(Self.read())
    }

    /// The port that it is bound to.
    var port: UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let failed = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(file.rawValue, $0, &length) }
        }
        return failed == 0 ? SocketAddress(storage, length: length).port : 0
    }

    /// Steps of the wall clock that were noticed by the stamps.
    var wallClockSteps: Int { stamper.steps }

    /// Datagrams without a kernel stamp that could be used.
    var stampFallbacks: Int { stamper.fallbacks }

    /// The next datagram that waits; nil when there is none.
    ///
    /// A datagram above 2048 bytes is cut.
    mutating func receive() -> Datagram? {
        while true {
            let asked = HostClock.now.nanoseconds
            var from = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            var wall: Int64 = 0
            let got = buffer.withUnsafeMutableBytes {
                clinux_recv_stamped(file.rawValue, $0.baseAddress, $0.count, &from, &length, &wall)
            }
            if got < 0 {
                let error = Errno.current
                if error == .again || error.rawValue == EWOULDBLOCK {
                    emptyAt = asked
                    return nil
                }
                // What an ICMP message brought, or an interruption: the next one may be a datagram.
                continue
            }
            let arrival = stamper.arrival(
                kernel: wall == 0 ? nil : wall, reading: Self.read(), notBefore: emptyAt)
            return Datagram(
                bytes: buffer[..<min(Int(got), buffer.count)], from: SocketAddress(from, length: length),
                arrival: arrival)
        }
    }

    /// Sends a datagram now, or not at all.
    func send(_ bytes: [UInt8], to address: SocketAddress) throws(Errno) {
        let sent = bytes.withUnsafeBytes { raw in
            address.bytes.withUnsafeBytes { target in
                target.withMemoryRebound(to: sockaddr.self) {
                    sendto(
                        file.rawValue, raw.baseAddress, raw.count, Int32(MSG_DONTWAIT), $0.baseAddress,
                        socklen_t(target.count))
                }
            }
        }
        if sent < 0 { throw .current }
    }

    private static func read() -> ReceiveStamper.Reading {
        let before = HostClock.now.nanoseconds
        let wall = HostClock.wall.nanoseconds
        return ReceiveStamper.Reading(before: before, wall: wall, after: HostClock.now.nanoseconds)
    }

    private static func open(_ family: Int32, port: UInt16) throws(SystemError) -> Int32 {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(.current, "opening a UDP socket") }
        do {
            if family == AF_INET6 { try set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
            try set(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, 1)
            // Expedited forwarding: switches and the queue of the network card prefer it; nothing depends on it.
            try? set(descriptor, Int32(IPPROTO_IP), IP_TOS, 0xB8)
            if family == AF_INET6 { try? set(descriptor, Int32(IPPROTO_IPV6), IPV6_TCLASS, 0xB8) }
            try bindAny(descriptor, family, port)
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) throws(SystemError) {
        var value = value
        guard setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw SystemError(.current, "setting option \(option) of a UDP socket")
        }
    }

    private static func bindAny(_ descriptor: Int32, _ family: Int32, _ port: UInt16) throws(SystemError) {
        let any = NetworkAddress(any: family == AF_INET6)
        guard let address = SocketAddress(any, port: port, family: family) else {
            throw SystemError(Errno(rawValue: EAFNOSUPPORT), "binding UDP port \(port)")
        }
        let failed = address.bytes.withUnsafeBytes { raw in
            raw.withMemoryRebound(to: sockaddr.self) { bind(descriptor, $0.baseAddress, socklen_t(raw.count)) }
        }
        if failed != 0 { throw SystemError(.current, "binding UDP port \(port)") }
    }
}
