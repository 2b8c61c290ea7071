internal import Platform

/// A Curve25519 key of 32 bytes, public or secret.
///
/// Its text is Z85 of 40 characters, as libzmq has it; a description never shows more than the fingerprint.
package struct CurveKey: Hashable, Sendable, CustomStringConvertible {
    /// 32 bytes.
    package let bytes: [UInt8]

    /// Nil unless there are 32 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// Nil unless the text is Z85 of 40 characters.
    package init?(z85: String) {
        guard z85.utf8.count == 40, let bytes = Z85.decode(z85) else { return nil }
        self.bytes = bytes
    }

    package var z85: String { Z85.encode(bytes) }

    /// The first 16 hexadecimal digits of the SHA-256 of the bytes: what people compare.
    package var fingerprint: String { String(SHA256.of(bytes).prefix(16)) }

    package var description: String { fingerprint }
}

extension CurveKey: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let key = CurveKey(z85: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "no key: legal are 40 characters of Z85")
        }
        self = key
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(z85)
    }
}
