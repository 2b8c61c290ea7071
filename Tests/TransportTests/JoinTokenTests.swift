internal import Platform
internal import Protocol
internal import Testing

@testable internal import Transport

@Suite("Join tokens")
struct JoinTokenTests {
    /// The text was made by another program (Python's hashlib and its own base 32) from the same bytes.
    static let text =
        "downbeat1:008j4a-ct4anw-k7f24v-snaxwj-sqfeze-yxrghd-rxcqh7-6b6sgh-rnd569-8eeqdh-dapav0-gmec6n-8q16vk-jhb5z5-"
        + "5m7z29-hg001f-081g85-1860we-40j2g2-b1g6g9-w3t2r9-ey74v1-w6r9g7-f0c"

    static func token() throws -> JoinToken {
        JoinToken(
            coordinator: try #require(UniqueID(rawValue: "00112233445566778899aabbccddeeff")), name: "Büro",
            key: try #require(CurveKey(z85: CurveKeyTests.z85)), secret: Array(0..<16))
    }

    @Test("The text is what another encoder makes of the same bytes, and is read back")
    func vector() throws {
        let token = try Self.token()
        #expect(token.text == Self.text)
        #expect(try JoinToken(parsing: Self.text) == token)
    }

    @Test("Case, spaces, line ends, missing dashes and look-alike letters don't matter")
    func lenient() throws {
        let token = try Self.token()
        let body = Self.text.dropFirst("downbeat1:".count)
        let forms = [
            Self.text.uppercased(), "  \(Self.text)\r\n", Self.text.replacing("-", with: ""),
            Self.text.replacing("-", with: " - "), "Downbeat1: " + body.replacing("0", with: "O"),
            "downbeat1:" + body.replacing("1", with: "l"), "downbeat1:" + body.replacing("1", with: "I"),
        ]
        for form in forms { #expect(try JoinToken(parsing: form) == token, "\(form)") }
    }

    @Test("Any token is read back", arguments: 0..<50)
    func roundTrip(_ seed: Int) throws {
        let name = String(repeating: ["a", "é", "日", "🎥"][seed % 4], count: seed)
        let token = JoinToken(
            coordinator: .random(), name: name, key: CurveKeyPair.generate().publicKey, secret: SecureRandom.bytes(16))
        #expect(token.name.utf8.count <= 64)
        #expect(try JoinToken(parsing: token.text) == token)
        #expect(!token.text.contains("\n"))
    }

    @Test("Each single wrong character is found, in its group")
    func mistyped() throws {
        let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz")
        let characters = Array(Self.text)
        for place in "downbeat1:".count..<characters.count where characters[place] != "-" {
            let group = (place - "downbeat1:".count) / 7 + 1
            // Five of the other characters, others at each place.
            for step in 1...5 {
                let wrong = alphabet[
                    ((alphabet.firstIndex(of: characters[place]) ?? 0) + 1 + (step * 6 + place) % 31) % 32]
                var other = characters
                other[place] = wrong
                let error = #expect(throws: JoinTokenError.self) { try JoinToken(parsing: String(other)) }
                // The last group is a short one: there a slip can't be told from a cut.
                #expect(error == (group == 24 ? .incomplete : .mistyped(group: group)))
            }
        }
    }

    @Test("Swapped neighbours and swapped groups are found")
    func swapped() throws {
        let groups = Self.text.dropFirst("downbeat1:".count).split(separator: "-").map(Array.init)
        for index in groups.indices.dropLast() where groups[index] != groups[index + 1] {
            var other = groups
            other.swapAt(index, index + 1)
            #expect(throws: JoinTokenError.self) { try parse(other) }
            for place in groups[index].indices.dropLast() where groups[index][place] != groups[index][place + 1] {
                var other = groups
                other[index].swapAt(place, place + 1)
                #expect(throws: JoinTokenError.self) { try parse(other) }
            }
        }
        func parse(_ groups: [[Character]]) throws {
            _ = try JoinToken(parsing: "downbeat1:" + groups.map { String($0) }.joined(separator: "-"))
        }
    }

    @Test("A text that was cut off anywhere isn't taken for whole")
    func cut() {
        for length in 10..<Self.text.count {
            #expect(throws: JoinTokenError.self) { try JoinToken(parsing: String(Self.text.prefix(length))) }
        }
        #expect(throws: JoinTokenError.incomplete) { try JoinToken(parsing: String(Self.text.prefix(10 + 7 * 12))) }
    }

    @Test(
        "Another kind of text is told apart from a mistyped token",
        arguments: ["", "hello", "https://example.org/downbeat1:", "downbeat", "downbeat:abc", CurveKeyTests.z85])
    func notAToken(_ text: String) {
        #expect(throws: JoinTokenError.notAToken) { try JoinToken(parsing: text) }
    }

    @Test("A token of another form says so")
    func version() {
        let error = #expect(throws: JoinTokenError.self) {
            try JoinToken(parsing: Self.text.replacing("downbeat1", with: "downbeat2"))
        }
        #expect(error == .otherVersion(2))
        #expect(error?.description.contains("same version") == true)
    }

    @Test("The proof is the HMAC that Python's hmac makes of the same bytes")
    func proof() throws {
        let token = try Self.token()
        #expect(
            token.proof(hostUUID: token.coordinator, agentKey: token.key)
                == "acf05bd96385e2714fa1594c53bdfb8fb45385edbed8f260f240fc51c1333aa8")
    }
}
