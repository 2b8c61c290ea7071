internal import Platform
internal import TestSupport
internal import Testing

@Suite struct FilesTests {
    @Test("a file is replaced whole, and no side file stays")
    func atomic() throws {
        let folder = try TemporaryFolder()
        try AtomicFile.write("old", to: "\(folder.path)/a")
        try AtomicFile.write("new", to: "\(folder.path)/a")
        #expect(try Files.read("\(folder.path)/a") == Array("new".utf8))
        #expect(try Files.list(folder.path) == ["a"])
    }

    @Test("an error names the operation, the path and the cause")
    func errors() {
        #expect {
            try AtomicFile.write("x", to: "/no/such/folder/file")
        } throws: { error in
            "\(error)" == "opening /no/such/folder/file.part: No such file or directory"
        }
    }

    @Test("a file above the limit is refused")
    func limit() throws {
        let folder = try TemporaryFolder()
        try AtomicFile.write("12345", to: "\(folder.path)/a")
        #expect(try Files.read("\(folder.path)/a", limit: 5).count == 5)
        #expect(throws: SystemError.self) { try Files.read("\(folder.path)/a", limit: 4) }
    }

    @Test(
        "only paths below the folder are inside",
        arguments: [
            ("a.mp4", true), ("sub/ü b.jsonl", true), ("..", false), ("a/../b", false), ("/etc/passwd", false),
            ("a//b", false), ("./a", false), ("", false), ("a\u{0}b", false), ("...", true),
        ])
    func inside(path: String, legal: Bool) { #expect(FilePath.staysInside(path) == legal) }

    // FIPS 180-2, appendix B.1 and B.3.
    @Test("SHA-256 of the standard's examples")
    func hashes() throws {
        #expect(
            SHA256.of(Array("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let folder = try TemporaryFolder()
        try AtomicFile.write([UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000), to: "\(folder.path)/m")
        #expect(
            try SHA256.ofFile("\(folder.path)/m")
                == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    // RFC 4231, test case 2.
    @Test("HMAC-SHA-256 of the RFC's example")
    func authentication() {
        let code = HMACSHA256.authenticate(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        #expect(Hex.encode(code) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    }

    @Test("hexadecimal text there and back", arguments: ["", "00ff7f", "g0", "abc"])
    func hex(text: String) {
        let bytes = Hex.decode(text)
        #expect((bytes == nil) == (text == "g0" || text == "abc"))
        if let bytes { #expect(Hex.encode(bytes) == text) }
    }
}
