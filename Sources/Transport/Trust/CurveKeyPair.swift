internal import CZMQ
internal import Glibc
internal import Platform
internal import Protocol

/// The key that a program is known by, with its secret half.
package struct CurveKeyPair: Sendable {
    package let publicKey: CurveKey
    package let secretKey: CurveKey

    /// A new pair.
    ///
    /// The corresponding C function is `zmq_curve_keypair`.
    package static func generate() -> CurveKeyPair {
        var publicText = [CChar](repeating: 0, count: 41)
        var secretText = [CChar](repeating: 0, count: 41)
        let done = zmq_curve_keypair(&publicText, &secretText) == 0
        // It fails only in a libzmq that was built without CURVE.
        guard done, let publicKey = key(publicText), let secretKey = key(secretText) else {
            preconditionFailure("this libzmq has no CURVE security; install libzmq5 with libsodium")
        }
        return CurveKeyPair(publicKey: publicKey, secretKey: secretKey)
    }

    /// Reads the pair from its file, of mode 0600; makes pair and file when there is none.
    ///
    /// Two programs that start at once get the same pair. It touches the disk.
    ///
    /// - Throws: `TrustError` when the file can't be read as a pair; a key is never replaced silently.
    package static func load(orCreateAt path: String) throws -> CurveKeyPair {
        if !Files.exists(path) { try create(at: path) }
        // A copy from another machine may have lost its mode.
        _ = chmod(path, 0o600)
        let file = try TrustFile.read(KeyFile.self, path)
        let pair = CurveKeyPair(publicKey: file.publicKey, secretKey: file.secretKey)
        guard pair.isConsistent else {
            throw TrustError.unreadable(
                file: path, reason: "the public key doesn't belong to the secret one",
                cure: "restore it from a copy, or remove it and pair again")
        }
        return pair
    }

    private static func create(at path: String) throws {
        let pair = generate()
        try Files.makeFolder(FilePath.parent(of: path), mode: 0o700)
        let side = "\(path).\(UniqueID.random())"
        defer { unlink(side) }
        try TrustFile.write(KeyFile(publicKey: pair.publicKey, secretKey: pair.secretKey), side)
        do throws(SystemError) { try Files.hardLink(side, to: path) } catch {
            // Where another program was faster, its pair is the one.
            guard error.errno == .exists else { throw error }
        }
        try AtomicFile.synchronizeFolder(of: path)
    }

    /// The corresponding C function is `zmq_curve_public`.
    private var isConsistent: Bool {
        var text = [CChar](repeating: 0, count: 41)
        return zmq_curve_public(&text, secretKey.z85) == 0 && Self.key(text) == publicKey
    }

    private static func key(_ text: [CChar]) -> CurveKey? {
        CurveKey(z85: String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
}

private struct KeyFile: Codable {
    var publicKey: CurveKey
    var secretKey: CurveKey

    private enum CodingKeys: String, CodingKey {
        case publicKey = "public"
        case secretKey = "secret"
    }
}
