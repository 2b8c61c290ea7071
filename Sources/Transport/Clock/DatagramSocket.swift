internal import CLinux
internal import Glibc
internal import Platform
internal import Timing

/// A UDP socket with the kernel's stamps: IPv6 with IPv4 mapped into it, or IPv4 where the kernel has no IPv6.
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
    /// Whether the kernel also stamps what is sent.
    let hasSendStamps: Bool

    private let file: FileDescriptor
    private var stamper = KernelStamper()
    /// An instant at which nothing was waiting.
    private var emptyAt: Int64
    private var buffer = [UInt8](repeating: 0, count: 2048)
    /// How the kernel counts what is sent.
    private var sendCount: UInt32 = 0

    /// Opens and binds; port zero is any that is free.
    ///
    /// With `stampsSends`, `sendStamped` gives the kernel's stamp; no other way of sending may be used then.
    init(port: UInt16, stampsSends: Bool = false) throws(SystemError) {
        let six = try? Self.open(AF_INET6, port: port)
        if let six {
            file = FileDescriptor(owning: six)
            family = AF_INET6
        } else {
            file = FileDescriptor(owning: try Self.open(AF_INET, port: port))
            family = AF_INET
        }
        hasSendStamps = stampsSends && clinux_ask_send_stamps(file.rawValue) == 0
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
        precondition(!hasSendStamps, "the kernel counts each datagram of this socket: use sendStamped")
        try transmit(bytes, to: address)
    }

    /// Sends a datagram now, or not at all; returns when it left: CLOCK_MONOTONIC in ns, not after the true departure.
    mutating func sendStamped(_ bytes: [UInt8], to address: SocketAddress) throws(Errno) -> Int64 {
        let before = HostClock.now.nanoseconds
        try transmit(bytes, to: address)
        guard hasSendStamps else { return before }
        let number = sendCount
        sendCount &+= 1
        var (stamped, stamp): (UInt32, Int64) = (0, 0)
        var kernel: Int64?
        // Most drivers stamp within the call; where a queue holds the datagram back, the time before the call has to do.
        reading: while kernel == nil {
            switch clinux_send_stamp(file.rawValue, &stamped, &stamp) {
            case 1 where stamped == number: kernel = stamp
            case 1 where Int32(bitPattern: stamped &- number) > 0:
                // The kernel counted a datagram that it then couldn't send.
                sendCount = stamped &+ 1
                break reading
            // Of an earlier one, or an error that an ICMP message brought.
            case 1, 2: continue
            default: break reading
            }
        }
        return stamper.departure(kernel: kernel, sent: before, reading: Self.read())
    }

    /// Throws away what waits in the error queue: stamps that came too late, and ICMP messages.
    ///
    /// It has to be called when the loop reports `.error`, or it will report it again and again.
    func forgetErrors() {
        var (stamped, stamp): (UInt32, Int64) = (0, 0)
        while clinux_send_stamp(file.rawValue, &stamped, &stamp) > 0 {}
    }

    private func transmit(_ bytes: [UInt8], to address: SocketAddress) throws(Errno) {
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

    private static func read() -> KernelStamper.Reading {
        let before = HostClock.now.nanoseconds
        let wall = HostClock.wall.nanoseconds
        return KernelStamper.Reading(before: before, wall: wall, after: HostClock.now.nanoseconds)
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
