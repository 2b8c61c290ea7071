internal import CCrypto
internal import Glibc

/// SHA-256 by OpenSSL's EVP, which uses the processor's SHA instructions.
package struct SHA256: ~Copyable {
    private let context: OpaquePointer

    package init() {
        // EVP fails here only when memory is gone.
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("EVP_MD_CTX_new: out of memory") }
        self.context = context
        EVP_DigestInit_ex(context, EVP_sha256(), nil)
    }

    deinit { EVP_MD_CTX_free(context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    }

    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// 64 lower-case hexadecimal digits.
    package consuming func finish() -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        return Hex.encode(digest)
    }

    /// The hash of a file's content, read in pieces of 1 MiB.
    package static func ofFile(_ path: String) throws(SystemError) -> String {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        var hash = SHA256()
        do {
            while true {
                let part = try file.read(upTo: 1 << 20)
                if part.isEmpty { break }
                hash.update(part)
            }
        } catch {
            throw SystemError(error, "reading \(path)")
        }
        return hash.finish()
    }

    package static func of(_ bytes: [UInt8]) -> String {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }
}

/// HMAC-SHA-256 by OpenSSL.
package enum HMACSHA256 {
    package static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        _ = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &length)
        return code
    }

    /// Compares in constant time.
    ///
    /// The corresponding C function is `CRYPTO_memcmp`.
    package static func equal(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
    }
}

/// Random bytes from OpenSSL's generator.
package enum SecureRandom {
    package static func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let done = RAND_bytes(&bytes, Int32(count))
        precondition(done == 1, "the system has no randomness to give")
        return bytes
    }
}

/// Hexadecimal text.
package enum Hex {
    package static func encode(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil when the text isn't an even number of hexadecimal digits.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 ? $0 - 48 : ($0 | 32) &- 87 }
        guard digits.count % 2 == 0, text.utf8.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else {
            return nil
        }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
