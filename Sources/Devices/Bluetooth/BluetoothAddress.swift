/// The address of a low-energy device: six bytes and whether they are public or random.
package struct BluetoothAddress: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case `public`
        case random
    }

    /// The most significant first, as it is written.
    package let bytes: [UInt8]
    package let kind: Kind

    /// From the order of the air, the least significant byte first; nil unless it is six bytes.
    package init?(littleEndian raw: some Collection<UInt8>, _ kind: Kind) {
        guard raw.count == 6 else { return nil }
        bytes = raw.reversed()
        self.kind = kind
    }

    /// "C0:FF:EE:00:00:01"; nil when it isn't one.
    package init?(_ text: String, _ kind: Kind = .public) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let bytes = parts.compactMap { $0.count == 2 ? UInt8($0, radix: 16) : nil }
        guard parts.count == 6, bytes.count == 6 else { return nil }
        self.bytes = bytes
        self.kind = kind
    }

    package var littleEndian: [UInt8] { bytes.reversed() }

    /// As it is written, without its kind.
    package var description: String {
        bytes.map { (String($0 >> 4, radix: 16) + String($0 & 0xF, radix: 16)).uppercased() }.joined(separator: ":")
    }
}
