internal import Platform
package import Protocol

/// What `downbeat invite` prints and `downbeat-agent join` takes: whom to trust, and a secret that proves it was read.
package struct JoinToken: Sendable, Hashable {
    package let coordinator: UniqueID
    /// For a person: the coordinator's machine; at most 64 bytes.
    package let name: String
    package let key: CurveKey
    /// 16 bytes, good for one host.
    package let secret: [UInt8]

    /// The name is cut at 64 bytes.
    package init(coordinator: UniqueID, name: String, key: CurveKey, secret: [UInt8]) {
        precondition(secret.count == 16, "the secret of a join token has 16 bytes, not \(secret.count)")
        var name = name
        while name.utf8.count > 64 { name.removeLast() }
        self.coordinator = coordinator
        self.name = name
        self.key = key
        self.secret = secret
    }

    /// Proves to the coordinator that this host was given the token: hexadecimal HMAC-SHA-256 with the secret.
    ///
    /// The message is "downbeat join", the 16 bytes of the host's uuid and the 32 of the agent's public key. It is no
    /// secret itself: nobody else can use it, since it binds the agent's key.
    package func proof(hostUUID: UniqueID, agentKey: CurveKey) -> String {
        Self.proof(secret: secret, hostUUID: hostUUID, agentKey: agentKey)
    }

    static func proof(secret: [UInt8], hostUUID: UniqueID, agentKey: CurveKey) -> String {
        let message = Array("downbeat join".utf8) + hostUUID.bytes + agentKey.bytes
        return Hex.encode(HMACSHA256.authenticate(message, key: secret))
    }
}

// The text: "downbeat1:" and groups of six characters of Crockford's base 32, joined by '-'. The last character of a
// group checks the group and its place, so a slip of a typing hand is found where it is; the payload is the
// coordinator's id (16), its key (32), the secret (16), its name (UTF-8), and 4 bytes of SHA-256 over all that.
extension JoinToken {
    private static let word = "downbeat"
    private static let version = 1
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz")

    package var text: String {
        let payload = coordinator.bytes + key.bytes + secret + Array(name.utf8)
        let digits = Self.digits(of: payload + Self.checksum(payload))
        let groups = stride(from: 0, to: digits.count, by: 5).enumerated().map { index, start in
            let group = Array(digits[start..<min(start + 5, digits.count)])
            return String((group + [Self.check(group, at: index)]).map { Self.alphabet[$0] })
        }
        return "\(Self.word)\(Self.version):\(groups.joined(separator: "-"))"
    }

    /// Reads a token that was typed or pasted: case, spaces, line ends and where the dashes are don't matter, and the
    /// letters O, I and L are taken for the digits that they look like.
    ///
    /// - Throws: `JoinTokenError`.
    package init(parsing text: String) throws(JoinTokenError) {
        let clean = text.filter { !$0.isWhitespace && $0 != "-" }.lowercased()
        guard clean.hasPrefix(Self.word), let colon = clean.firstIndex(of: ":") else { throw .notAToken }
        let version = clean[..<colon].dropFirst(Self.word.count)
        guard let number = Int(version) else { throw .notAToken }
        guard number == Self.version else { throw .otherVersion(number) }
        let payload = try Self.payload(of: clean[clean.index(after: colon)...])
        guard let key = CurveKey(bytes: Array(payload[16..<48])) else { throw .incomplete }
        coordinator = UniqueID(bytes: Array(payload[..<16]))
        self.key = key
        secret = Array(payload[48..<64])
        name = String(decoding: payload[64...], as: UTF8.self)
    }

    /// The bytes without their checksum, at least 64.
    private static func payload(of body: Substring) throws(JoinTokenError) -> [UInt8] {
        guard body.utf8.count <= 1024 else { throw .notAToken }
        var values: [Int] = []
        for (place, character) in body.enumerated() {
            let alias: Character = ["o": "0", "i": "1", "l": "1"][character] ?? character
            guard let value = alphabet.firstIndex(of: alias) else { throw .mistyped(group: place / 6 + 1) }
            values.append(value)
        }
        var digits: [Int] = []
        for (index, start) in stride(from: 0, to: values.count, by: 6).enumerated() {
            let group = values[start..<min(start + 6, values.count)]
            let isLast = start + 6 >= values.count
            guard let check = group.last, check == self.check(Array(group.dropLast()), at: index) else {
                // What is cut off at the end fails there too; a whole group that fails was mistyped.
                throw isLast && group.count < 6 ? .incomplete : .mistyped(group: index + 1)
            }
            digits += group.dropLast()
        }
        let bytes = bytes(of: digits)
        guard bytes.count >= 68 else { throw .incomplete }
        let payload = Array(bytes.dropLast(4))
        guard checksum(payload) == Array(bytes.suffix(4)) else { throw .incomplete }
        return payload
    }

    private static func checksum(_ payload: [UInt8]) -> [UInt8] {
        Array((Hex.decode(SHA256.of(payload)) ?? []).prefix(4))
    }

    /// Odd weights: any single wrong character changes the sum; the place keeps groups from being swapped.
    private static func check(_ group: [Int], at index: Int) -> Int {
        let weights = [1, 3, 5, 7, 9]
        return (zip(group, weights).reduce(0) { $0 + $1.0 * $1.1 } + index * 11) % 32
    }

    /// Five bits each, the first bits first; the last digit is filled with zeros.
    private static func digits(of bytes: [UInt8]) -> [Int] {
        var digits: [Int] = []
        var (buffer, bits) = (0, 0)
        for byte in bytes {
            buffer = (buffer << 8 | Int(byte)) & 0xFFFF
            bits += 8
            while bits >= 5 {
                bits -= 5
                digits.append(buffer >> bits & 31)
            }
        }
        if bits > 0 { digits.append(buffer << (5 - bits) & 31) }
        return digits
    }

    private static func bytes(of digits: [Int]) -> [UInt8] {
        var bytes: [UInt8] = []
        var (buffer, bits) = (0, 0)
        for digit in digits {
            buffer = (buffer << 5 | digit) & 0xFFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
            }
        }
        return bytes
    }
}

/// Why a text is no join token, with the cure.
package enum JoinTokenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Some other text.
    case notAToken
    /// The group, counted from 1, in which a character is wrong.
    case mistyped(group: Int)
    /// All groups read well, but some are missing or doubled.
    case incomplete
    case otherVersion(Int)

    package var description: String {
        switch self {
        case .notAToken:
            "this isn't a join token; it begins with 'downbeat1:' and is printed by 'downbeat invite' on the coordinator"
        case .mistyped(let group):
            "the join token is mistyped in group \(group) (between the dashes); compare it with what 'downbeat invite' "
                + "printed"
        case .incomplete:
            "the join token isn't whole, or its last group is mistyped; copy all of the line that 'downbeat invite' printed"
        case .otherVersion(let version):
            "the join token has form \(version), this program reads form 1; install the same version of Downbeat on "
                + "all hosts"
        }
    }
}
