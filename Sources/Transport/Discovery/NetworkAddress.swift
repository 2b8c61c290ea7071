/// A numeric address of a host, with the interface where it needs one.
package struct NetworkAddress: Hashable, Sendable, Codable {
    /// "10.8.0.1", "fe80::1".
    package let text: String
    /// The scope of a link-local address: "eth0".
    package let interface: String?

    package init(text: String, interface: String? = nil) {
        self.text = text
        self.interface = interface
    }

    package var isIPv6: Bool { text.contains(":") }

    /// As it stands in an endpoint of ZeroMQ: "10.8.0.1", "[fe80::1%eth0]".
    package var zeroMQ: String {
        guard isIPv6 else { return text }
        return "[\(text)\(interface.map { "%\($0)" } ?? "")]"
    }
}
