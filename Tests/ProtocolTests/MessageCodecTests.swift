internal import Foundation
internal import Protocol
internal import TestSupport
internal import Testing

@Suite struct MessageCodecTests {
    static let command = UniqueID(bytes: Array(0..<16))

    /// Frames by kind, from the golden file.
    static let golden: [String: [[UInt8]]] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/messages.txt")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [:] }
        var frames: [String: [[UInt8]]] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            let digits = words.count == 3 ? words[2] : ""
            let bytes = stride(from: 0, to: digits.count, by: 2).map { place -> UInt8 in
                let start = digits.index(digits.startIndex, offsetBy: place)
                return UInt8(digits[start..<digits.index(start, offsetBy: 2)], radix: 16) ?? 0
            }
            frames[String(words[0]), default: []].append(bytes)
        }
        return frames
    }()

    static func envelope(_ message: Message) -> Envelope {
        let attachments: [[UInt8]] = message.kind == .chunkData ? [[0, 255, 10, 13]] : []
        return Envelope(command: command, message: message, attachments: attachments)
    }

    @Test("the golden values cover the closed set")
    func coverage() {
        #expect(Set(GoldenMessages.all.map(\.kind)) == Set(Message.Kind.allCases))
        #expect(Set(Self.golden.keys) == Set(Message.Kind.allCases.map(\.rawValue)))
    }

    @Test("each message has the golden bytes", arguments: Message.Kind.allCases)
    func encodes(kind: Message.Kind) throws {
        let message = try #require(GoldenMessages.all.first { $0.kind == kind })
        let frames = try MessageCodec.encode(Self.envelope(message))
        let golden = try #require(Self.golden[message.kind.rawValue])
        #expect(frames[0] == golden[0])
        #expect(String(decoding: frames[1], as: UTF8.self) == String(decoding: golden[1], as: UTF8.self))
        #expect(frames.dropFirst(2) == golden.dropFirst(2))
    }

    @Test("the golden bytes are read back as the message", arguments: Message.Kind.allCases)
    func decodes(kind: Message.Kind) throws {
        let message = try #require(GoldenMessages.all.first { $0.kind == kind })
        let golden = try #require(Self.golden[message.kind.rawValue])
        #expect(try MessageCodec.decode(golden) == Self.envelope(message))
    }

    @Test("unknown keys of a body are passed over")
    func unknownKeys() throws {
        var frames = try MessageCodec.encode(Self.envelope(.heartbeat(Empty())))
        frames[1] = Array(#"{"of_a_later_version":[1,2,{}]}"#.utf8)
        #expect(try MessageCodec.decode(frames).message == .heartbeat(Empty()))
    }

    @Test("an unknown kind is refused by its name")
    func unknownKind() throws {
        var frames = try MessageCodec.encode(Self.envelope(.heartbeat(Empty())))
        frames[0] = Array(frames[0].prefix(20)) + Array("self_destruct".utf8)
        #expect(throws: ProtocolError.unknownKind("self_destruct")) { try MessageCodec.decode(frames) }
    }

    @Test("another version is told by its number")
    func otherVersion() throws {
        var frames = try MessageCodec.encode(Self.envelope(.heartbeat(Empty())))
        frames[0][2] = 9
        #expect(throws: ProtocolError.wrongVersion(9)) { try MessageCodec.decode(frames) }
    }

    @Test("names that would leave their folder are refused", arguments: ["../x", "a/b", "", ".hidden", "a\u{0}b"])
    func badNames(name: String) throws {
        #expect(StreamID(rawValue: name) == nil)
        #expect(HostID(rawValue: name) == nil)
    }

    @Test("sizes have limits")
    func limits() throws {
        var frames = try MessageCodec.encode(Self.envelope(.heartbeat(Empty())))
        frames[1] = Array(repeating: 0x20, count: MessageCodec.maximumBody + 1)
        #expect(throws: ProtocolError.self) { try MessageCodec.decode(frames) }
        frames[1] = Array("{}".utf8)
        frames += Array(repeating: [], count: MessageCodec.maximumAttachments + 1)
        #expect(throws: ProtocolError.self) { try MessageCodec.decode(frames) }
    }

    /// Two kinds of garbage: noise, and golden messages with bytes changed, cut or doubled.
    @Test("10,000 random messages are read or refused, none traps", arguments: [1, 2, 3] as [UInt64])
    func garbage(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let all = Array(Self.golden.values)
        for round in 0..<10_000 {
            var frames: [[UInt8]]
            if round % 2 == 0 {
                frames = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                }
            } else {
                frames = all[Int.random(in: 0..<all.count, using: &random)]
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let frame = Int.random(in: 0..<frames.count, using: &random)
                    guard !frames[frame].isEmpty else { continue }
                    let place = Int.random(in: 0..<frames[frame].count, using: &random)
                    switch Int.random(in: 0...2, using: &random) {
                    case 0: frames[frame][place] = UInt8.random(in: 0...255, using: &random)
                    case 1: frames[frame].removeSubrange(place...)
                    default: frames[frame].insert(contentsOf: frames[frame][place...], at: place)
                    }
                }
            }
            do { _ = try MessageCodec.decode(frames) } catch { #expect(!error.description.isEmpty) }
        }
    }

    @Test("JSON as deep as the limit allows doesn't overflow the stack")
    func depth() throws {
        var frames = try MessageCodec.encode(Self.envelope(.heartbeat(Empty())))
        frames[1] = Array(repeating: UInt8(ascii: "["), count: MessageCodec.maximumBody)
        #expect(throws: ProtocolError.self) { try MessageCodec.decode(frames) }
        frames[1] = Array((String(repeating: "{\"a\":", count: 100_000)).utf8)
        #expect(throws: ProtocolError.self) { try MessageCodec.decode(frames) }
    }
}
