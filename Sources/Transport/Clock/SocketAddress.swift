internal import CLinux
internal import Glibc

/// An address and a UDP port, as the socket calls take it.
struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    /// The bytes of the `sockaddr`.
    let bytes: [UInt8]

    private init(bytes: [UInt8]) { self.bytes = bytes }

    init(_ storage: sockaddr_storage, length: socklen_t) {
        bytes = withUnsafeBytes(of: storage) { Array($0.prefix(Int(length))) }
    }

    /// From a literal address, without asking any server; nil when it isn't one or its interface isn't there.
    ///
    /// The family is that of the socket; for an IPv6 socket IPv4 addresses are mapped.
    init?(_ address: NetworkAddress, port: UInt16, family: Int32) {
        let text = address.interface.map { "\(address.text)%\($0)" } ?? address.text
        guard let found = try? Self.lookUp(text, port: port, family: family, numeric: true).first else { return nil }
        self = found
    }

    /// All addresses of a name or a literal address.
    ///
    /// It blocks: call it on a thread that may.
    static func resolve(_ name: String, port: UInt16, family: Int32) throws(ResolveError) -> [SocketAddress] {
        try lookUp(name, port: port, family: family, numeric: false)
    }

    /// The address without the port; a mapped IPv4 address as plain IPv4, a link-local one with its interface.
    var networkAddress: NetworkAddress? {
        guard bytes.count >= 2 else { return nil }
        let family = bytes.withUnsafeBytes { $0.loadUnaligned(as: sa_family_t.self) }
        switch Int32(family) {
        case AF_INET where bytes.count >= 8:
            return NetworkAddress(bytes[4..<8].map(String.init).joined(separator: "."))
        case AF_INET6 where bytes.count >= 28:
            let raw = Array(bytes[8..<24])
            if raw[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255] {
                return NetworkAddress(raw[12...].map(String.init).joined(separator: "."))
            }
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(AF_INET6, raw, &text, socklen_t(text.count)) != nil else { return nil }
            let plain = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let scope = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 24, as: UInt32.self) }
            return NetworkAddress(scope == 0 ? plain : "\(plain)%\(NetworkInterface.name(index: scope) ?? "\(scope)")")
        default: return nil
        }
    }

    /// The port in host order; zero when there is none.
    var port: UInt16 { bytes.count < 4 ? 0 : UInt16(bytes[2]) << 8 | UInt16(bytes[3]) }

    var description: String { networkAddress.map { "\($0.bracketed):\(port)" } ?? "an unknown address" }

    private static func lookUp(_ name: String, port: UInt16, family: Int32, numeric: Bool) throws(ResolveError)
        -> [SocketAddress]
    {
        var hints = addrinfo()
        hints.ai_family = family
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        hints.ai_flags =
            AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0) | (family == AF_INET6 ? AI_V4MAPPED | AI_ALL : 0)
        var list: UnsafeMutablePointer<addrinfo>?
        let failed = getaddrinfo(name, String(port), &hints, &list)
        guard failed == 0 else { throw ResolveError(name: name, reason: String(cString: gai_strerror(failed))) }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr {
                let raw = UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen))
                found.append(SocketAddress(bytes: Array(raw)))
            }
            next = entry.pointee.ai_next
        }
        return found
    }
}

/// A name that no address was found for.
struct ResolveError: Error {
    let name: String
    let reason: String
}

/// Network interfaces of this machine.
enum NetworkInterface {
    /// The name of an interface; nil when there is none of this index (now).
    static func name(index: UInt32) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &buffer) != nil else { return nil }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
