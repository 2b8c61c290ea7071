internal import CCrypto

/// HMAC-SHA-256 under one key, cut to 16 bytes: the mark of a clock datagram.
///
/// The key's schedule is kept, so a mark costs a microsecond or less between the stamp and the wire. One thread at a
/// time: it is not `Sendable`.
final class DatagramKey {
    static let markLength = 16

    private let context: OpaquePointer

    /// - Parameter key: 32 bytes.
    init(_ key: [UInt8]) {
        // All of this fails only when memory is gone or OpenSSL has no SHA-256.
        let method = EVP_MAC_fetch(nil, "HMAC", nil)
        defer { EVP_MAC_free(method) }
        guard let context = EVP_MAC_CTX_new(method) else { preconditionFailure("EVP_MAC_CTX_new: out of memory") }
        self.context = context
        var name = Array("SHA256\0".utf8CString)
        let done = name.withUnsafeMutableBufferPointer { name in
            var parameters = [
                OSSL_PARAM_construct_utf8_string("digest", name.baseAddress, 0), OSSL_PARAM_construct_end(),
            ]
            return EVP_MAC_init(context, key, key.count, &parameters)
        }
        precondition(done == 1, "OpenSSL has no HMAC-SHA-256")
    }

    deinit { EVP_MAC_CTX_free(context) }

    /// The mark of a message.
    func mark(_ message: some Collection<UInt8>) -> [UInt8] {
        var bytes = Array(message)
        bytes += [UInt8](repeating: 0, count: Self.markLength)
        sign(&bytes)
        return Array(bytes.suffix(Self.markLength))
    }

    /// Writes the mark of all bytes before it into the last 16 bytes; nothing is allocated.
    func sign(_ bytes: inout [UInt8]) {
        precondition(bytes.count >= Self.markLength, "no room for a mark")
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { code in
            bytes.withUnsafeMutableBytes { raw in
                let signed = raw.count - Self.markLength
                var length = 0
                EVP_MAC_init(context, nil, 0, nil)
                EVP_MAC_update(context, raw.baseAddress, signed)
                EVP_MAC_final(context, code.baseAddress, &length, code.count)
                raw[signed...].copyBytes(from: code.prefix(Self.markLength))
            }
        }
    }

    /// Whether a mark is right; it takes as long when it isn't.
    func isMark(_ mark: some Collection<UInt8>, of message: some Collection<UInt8>) -> Bool {
        let right = self.mark(message)
        let given = Array(mark)
        return given.count == right.count && CRYPTO_memcmp(given, right, right.count) == 0
    }
}
