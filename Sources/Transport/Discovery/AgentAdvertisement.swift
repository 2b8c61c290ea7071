package import Protocol

/// What an agent tells everyone about itself: the TXT record of its `_downbeat._tcp` service, and the text that answers an
/// identify question. Both have the same form, strings of `key=value`:
///
///     v=1                 version of the wire
///     uuid=<32 hex>       the host's identity
///     host=<host_id>      its name
///     product=<text>      "downbeat 0.1.0"
///     key=<40 characters> the CURVE key in Z85
///     port=<number>       TCP port for commands
///     clock=<number>      UDP port of the clock echo
///     join0=<64 hex> …    proofs for coordinators whose join token was given to this agent
///
/// Unknown keys are ignored, and of two equal keys the first counts (RFC 6763, 6.4). Nothing in it is trusted: the
/// connection proves who is there.
package struct AgentAdvertisement: Hashable, Sendable {
    /// The service type of agents.
    package static let serviceType = "_downbeat._tcp"

    /// More proofs are not advertised: the identify answer has to fit its question.
    package static let joinProofLimit = 8

    package var hostUUID: UniqueID
    package var host: HostID
    package var protocolVersion: UInt8
    package var product: String
    /// Z85, 40 characters.
    package var key: String
    package var joinProofs: [String]
    package var commandPort: UInt16
    package var clockPort: UInt16
    /// Where it was found, the likeliest to work first; not part of the record.
    package var addresses: [NetworkAddress]

    package init(
        hostUUID: UniqueID, host: HostID, protocolVersion: UInt8 = ProtocolVersion.current,
        product: String = "downbeat \(ProductVersion.current)", key: String, joinProofs: [String] = [],
        commandPort: UInt16, clockPort: UInt16, addresses: [NetworkAddress] = []
    ) {
        self.hostUUID = hostUUID
        self.host = host
        self.protocolVersion = protocolVersion
        self.product = product
        self.key = key
        self.joinProofs = joinProofs
        self.commandPort = commandPort
        self.clockPort = clockPort
        self.addresses = addresses
    }

    /// The strings of the TXT record, each at most 255 bytes.
    package var textRecord: [String] {
        let proofs = joinProofs.prefix(Self.joinProofLimit).enumerated().map { "join\($0.offset)=\($0.element)" }
        return [
            "v=\(protocolVersion)", "uuid=\(hostUUID)", "host=\(host)", "product=\(product)", "key=\(key)",
            "port=\(commandPort)", "clock=\(clockPort)",
        ].map { String(decoding: $0.utf8.prefix(255), as: UTF8.self) } + proofs
    }

    /// The strings of the TXT record, one a line: the answer to an identify question.
    package var identifyText: [UInt8] { Array(textRecord.joined(separator: "\n").utf8) }

    /// Reads the answer to an identify question.
    package init(identifyText: [UInt8], addresses: [NetworkAddress]) throws(AdvertisementError) {
        guard let text = String(validating: identifyText, as: UTF8.self) else { throw .notText }
        try self.init(textRecord: text.split(separator: "\n").map(String.init), addresses: addresses)
    }

    /// Reads a TXT record.
    ///
    /// - Throws: `AdvertisementError`, which says what is missing or wrong.
    package init(textRecord: [String], addresses: [NetworkAddress]) throws(AdvertisementError) {
        var values: [String: String] = [:]
        for string in textRecord.prefix(64) {
            let parts = string.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty, string.utf8.count <= 255 else { continue }
            let name = parts[0].lowercased()
            if values[name] == nil { values[name] = String(parts[1]) }
        }
        func value<Value>(_ name: String, _ read: (String) -> Value?) throws(AdvertisementError) -> Value {
            guard let text = values[name] else { throw .missing(name) }
            guard let value = read(text) else { throw .illegal(name, String(text.prefix(80))) }
            return value
        }
        protocolVersion = try value("v") { UInt8($0) }
        hostUUID = try value("uuid") { UniqueID(rawValue: $0) }
        host = try value("host") { HostID(rawValue: $0) }
        key = try value("key") { Self.isZ85Key($0) ? $0 : nil }
        commandPort = try value("port") { UInt16($0).flatMap { $0 == 0 ? nil : $0 } }
        clockPort = try value("clock") { UInt16($0).flatMap { $0 == 0 ? nil : $0 } }
        product = String(
            (values["product"] ?? "unknown").unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F })
        joinProofs = (0..<Self.joinProofLimit).compactMap { values["join\($0)"] }.filter(Self.isProof)
        self.addresses = addresses
    }

    private static func isZ85Key(_ text: String) -> Bool {
        let alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
        return text.utf8.count == 40 && text.allSatisfy { alphabet.contains($0) }
    }

    private static func isProof(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}

/// What is wrong with an advertisement.
package enum AdvertisementError: Error, Sendable, Hashable, CustomStringConvertible {
    case notText
    case missing(String)
    case illegal(String, String)

    package var description: String {
        switch self {
        case .notText: "it is no UTF-8 text"
        case .missing(let name): "it has no '\(name)'"
        case .illegal(let name, let text): "its '\(name)' is '\(text)', which is not legal"
        }
    }
}
