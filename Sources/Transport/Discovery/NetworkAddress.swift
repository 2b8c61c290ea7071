internal import Glibc

/// A literal IPv4 or IPv6 address; a link-local one with the interface that it is valid on.
package struct NetworkAddress: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The address alone, as `inet_ntop` prints it: "10.8.0.1", "fe80::1".
    package let text: String

    /// The interface of a link-local IPv6 address, on the machine that uses it; nil for all others.
    package let interface: String?

    package let isIPv6: Bool

    /// From "10.8.0.1", "fe80::1%eth0", or the same in brackets; nil when it isn't a literal address.
    package init?(_ text: String) {
        var text = text[...]
        if text.first == "[", text.last == "]" { text = text.dropFirst().dropLast() }
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first else { return nil }
        self.init(String(address), interface: parts.count == 2 ? String(parts[1]) : nil)
    }

    /// From a literal address; the interface is taken only for a link-local IPv6 address.
    package init?(_ text: String, interface: String?) {
        var raw = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &raw) == 1 {
            (self.text, self.interface, isIPv6) = (text, nil, false)
            return
        }
        guard inet_pton(AF_INET6, text, &raw) == 1 else { return nil }
        var canonical = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, raw, &canonical, socklen_t(canonical.count)) != nil else { return nil }
        self.text = String(decoding: canonical.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let isLinkLocal = raw[0] == 0xFE && raw[1] & 0xC0 == 0x80
        self.interface = isLinkLocal ? interface.flatMap { $0.isEmpty ? nil : $0 } : nil
        isIPv6 = true
    }

    /// "0.0.0.0" or "::".
    init(any isIPv6: Bool) { (text, interface, self.isIPv6) = (isIPv6 ? "::" : "0.0.0.0", nil, isIPv6) }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = NetworkAddress(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "'\(text.prefix(80))' is no address")
        }
        self = value
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    package var isLoopback: Bool { text.hasPrefix("127.") && !isIPv6 || text == "::1" }

    package var isLinkLocal: Bool {
        isIPv6
            ? text.hasPrefix("fe8") || text.hasPrefix("fe9") || text.hasPrefix("fea") || text.hasPrefix("feb")
            : text.hasPrefix("169.254.")
    }

    /// As it is written with a port: "10.8.0.1", "[fe80::1%eth0]".
    package var bracketed: String { isIPv6 ? "[\(description)]" : description }

    /// As a ZeroMQ endpoint takes it, between "tcp://" and the port.
    package var zeroMQ: String { bracketed }

    /// "10.8.0.1", "fe80::1%eth0".
    package var description: String { interface.map { "\(text)%\($0)" } ?? text }

    /// The order of trying: IPv4, IPv6, link-local, loopback; equal ones by their text.
    package static func isPreferred(_ a: Self, over b: Self) -> Bool {
        (a.rank, a.description) < (b.rank, b.description)
    }

    private var rank: Int { isLoopback ? 3 : isLinkLocal ? 2 : isIPv6 ? 1 : 0 }
}
