internal import Glibc
internal import Platform
internal import TestSupport
internal import Testing

@testable internal import Transport

@Suite("Keys of CURVE")
struct CurveKeyTests {
    /// The test key of RFC 32 (Z85): these 32 bytes are these 40 characters.
    static let hex = "BB88471D65E2659B30C55A5321CEBB5AAB2B70A398645C26DCA2B2FCB43FC518"
    static let z85 = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

    @Test("Z85 has the vectors of RFC 32")
    func vectors() throws {
        let bytes = try #require(Hex.decode(Self.hex))
        let key = try #require(CurveKey(z85: Self.z85))
        #expect(key.bytes == bytes)
        #expect(CurveKey(bytes: bytes)?.z85 == Self.z85)
        #expect(Z85.encode([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]) == "HelloWorld")
    }

    @Test("A fingerprint is the first 16 digits of the SHA-256 of the bytes, and a description says no more")
    func fingerprint() throws {
        let key = try #require(CurveKey(z85: Self.z85))
        // sha256sum of the 32 bytes.
        #expect(key.fingerprint == "ebb3af4dd99ceff3")
        #expect("\(key)" == key.fingerprint)
    }

    @Test(
        "What isn't a key is refused",
        arguments: [
            "", "HelloWorld", String(repeating: "~", count: 40), String(repeating: "#", count: 40),
            String(repeating: "é", count: 20), String(repeating: "0", count: 41),
        ])
    func notAKey(_ text: String) { #expect(CurveKey(z85: text) == nil) }

    @Test("A pair is made once, kept in a file that only its owner reads, and found again")
    func keyFile() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/trust/curve_key.json"
        let made = try CurveKeyPair.load(orCreateAt: path)
        let found = try CurveKeyPair.load(orCreateAt: path)
        #expect(made.publicKey == found.publicKey && made.secretKey == found.secretKey)
        #expect(made.publicKey != CurveKeyPair.generate().publicKey)
        #expect(mode(path) == 0o600)
        #expect(mode("\(folder.path)/trust") == 0o700)
        #expect(try Files.list("\(folder.path)/trust") == ["curve_key.json"])
        chmod(path, 0o644)
        _ = try CurveKeyPair.load(orCreateAt: path)
        #expect(mode(path) == 0o600)
    }

    @Test("Programs that start at once get the same pair", .timeLimit(.minutes(1)))
    func race() async throws {
        let folder = try TemporaryFolder()
        let keys = try await withThrowingTaskGroup(of: CurveKey.self) { group in
            for _ in 0..<16 { group.addTask { try CurveKeyPair.load(orCreateAt: "\(folder.path)/k.json").publicKey } }
            return try await group.reduce(into: Set<CurveKey>()) { $0.insert($1) }
        }
        #expect(keys.count == 1)
        #expect(try Files.list(folder.path) == ["k.json"])
    }

    @Test("A file that is no pair is named, and never replaced", arguments: ["", "{}", "{\"public\":\"x\"}", "other"])
    func broken(_ text: String) throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/k.json"
        let (a, b) = (CurveKeyPair.generate(), CurveKeyPair.generate())
        let other = "{\"public\":\"\(a.publicKey.z85)\",\"secret\":\"\(b.secretKey.z85)\"}"
        // Some characters of Z85 would need no escape in JSON; none of them is '"' or '\'.
        try AtomicFile.write(text == "other" ? other : text, to: path)
        let error = #expect(throws: TrustError.self) { try CurveKeyPair.load(orCreateAt: path) }
        #expect(error?.description.contains(path) == true)
        #expect(try Files.read(path) == Array((text == "other" ? other : text).utf8))
    }

    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }
}
