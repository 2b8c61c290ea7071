/// The question who is there and its answer, for networks that block multicast.
///
/// Both are unauthenticated: they carry what is advertised to everyone anyway.
///
///     offset  length
///          0       4  "DBID"
///          4       1  1 = question, 2 = answer
///          5       1  zero
///          6       2  length of the text, big-endian; zero in a question
///          8      16  nonce, chosen by the asker
///         24          answer: the text; question: zeros, up to 1200 bytes in all
///
/// The question is as long as the longest answer, so nobody can use an agent to make more traffic than they send. The
/// layout never changes, so that programs of different versions can tell each other so.
enum IdentifyDatagram {
    static let magic = Array("DBID".utf8)
    static let questionLength = 1200
    static let headerLength = 24
    static let nonceLength = 16
    static let textLimit = questionLength - headerLength

    static func question(nonce: [UInt8]) -> [UInt8] {
        let head = header(kind: 1, textLength: 0, nonce: nonce)
        return head + [UInt8](repeating: 0, count: questionLength - head.count)
    }

    /// The nonce of a question; nil for anything else.
    static func nonce(ofQuestion bytes: ArraySlice<UInt8>) -> [UInt8]? {
        guard bytes.count == questionLength, let (kind, _, nonce) = parse(bytes), kind == 1 else { return nil }
        return nonce
    }

    /// Nil when the text is too long to be told.
    static func answer(nonce: [UInt8], text: [UInt8]) -> [UInt8]? {
        guard text.count <= textLimit else { return nil }
        return header(kind: 2, textLength: text.count, nonce: nonce) + text
    }

    /// The text of the answer to a nonce; nil for anything else.
    static func text(ofAnswer bytes: ArraySlice<UInt8>, nonce: [UInt8]) -> [UInt8]? {
        guard let (kind, length, given) = parse(bytes), kind == 2, given == nonce else { return nil }
        guard bytes.count == headerLength + length else { return nil }
        return Array(bytes.dropFirst(headerLength))
    }

    private static func header(kind: UInt8, textLength: Int, nonce: [UInt8]) -> [UInt8] {
        precondition(nonce.count == nonceLength, "a nonce has \(nonceLength) bytes")
        return magic + [kind, 0, UInt8(textLength >> 8), UInt8(textLength & 255)] + nonce
    }

    private static func parse(_ bytes: ArraySlice<UInt8>) -> (kind: UInt8, length: Int, nonce: [UInt8])? {
        guard bytes.count >= headerLength, bytes.prefix(4).elementsEqual(magic) else { return nil }
        let start = bytes.startIndex
        guard bytes[start + 5] == 0 else { return nil }
        return (
            bytes[start + 4], Int(bytes[start + 6]) << 8 | Int(bytes[start + 7]),
            Array(bytes[(start + 8)..<(start + headerLength)])
        )
    }
}
