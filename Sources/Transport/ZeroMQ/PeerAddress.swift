internal import CLinux
internal import Glibc

/// Numeric addresses of peers, for people.
enum PeerAddress {
    /// Without the prefix that an IPv4 address has on a socket for both families.
    static func plain(_ text: String) -> String {
        text.hasPrefix("::ffff:") && text.contains(".") ? String(text.dropFirst(7)) : text
    }

    /// Who is at the other end of a connected descriptor; nil when it is closed already.
    ///
    /// The corresponding C functions are `getpeername` and `getnameinfo`.
    static func of(descriptor: Int32) -> String? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var text = [CChar](repeating: 0, count: 128)
        let done = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getpeername(descriptor, address, &length) == 0
                    && getnameinfo(address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
            }
        }
        guard done else { return nil }
        return plain(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
}
