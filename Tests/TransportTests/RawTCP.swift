internal import Glibc
internal import Platform

/// A TCP connection to loopback that speaks no protocol; it is closed with its owner.
final class RawTCP: Sendable {
    private let descriptor: Int32

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let descriptor = descriptor
        try withUnsafePointer(to: &address) { pointer in
            _ = try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try throwingErrno { connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) }
            }
        }
    }

    /// As much as goes at once.
    func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

    deinit { close(descriptor) }
}
