internal import Platform
internal import Protocol
internal import Testing
internal import Timing

@testable internal import Transport

@Suite struct ClockDatagramTests {
    private let key = (0..<32).map { UInt8($0) }
    private let coordinator = UniqueID(bytes: (0..<16).map { UInt8($0 * 0x11) })

    // The marks were made by Python: hmac.new(bytes(range(32)), body, hashlib.sha256).hexdigest()[:32]
    private let request =
        "4442434b" + "02" + "01" + "0000" + "00112233445566778899aabbccddeeff" + "0102030405060708"
        + String(repeating: "0", count: 96) + "43bed027e5c061a07edcf72d4e411eb1"
    private let answer =
        "4442434b" + "02" + "02" + "0100" + "00112233445566778899aabbccddeeff" + "0102030405060708"
        + "000003466c536a00" + "fffffffffffffffe" + "fffffffff75f5752" + "0000001f" + "00000000" + "0102030405060707"
        + "fffffffffffffffd" + "257b2892bb57617b4d584389f4215814"

    private var requestValue: ClockDatagram {
        ClockDatagram(kind: .request, coordinator: coordinator, sequence: 0x0102_0304_0506_0708)
    }

    @Test("golden bytes of a request and of an answer, both ways")
    func golden() throws {
        let key = DatagramKey(key)
        #expect(Hex.encode(requestValue.encode(key: key)) == request)
        var value = requestValue
        (value.kind, value.arrived, value.answered) = (.answer, 3_601_000_000_000, -2)
        value.discipline = DisciplineReading(
            difference: .nanoseconds(-144_746_670), error: .nanoseconds(31), isSteered: true)
        value.earlier = .init(sequence: 0x0102_0304_0506_0707, answered: -3)
        #expect(Hex.encode(value.encode(key: key)) == answer)
        let bytes = try #require(Hex.decode(answer))
        #expect(bytes.count == 96)
        #expect(ClockDatagram(bytes[...], key: key) == value)
        // A slice that doesn't begin at zero.
        #expect(ClockDatagram(([9, 9] + bytes).dropFirst(2), key: key) == value)
    }

    @Test("a changed bit anywhere, another key, and any other length are refused")
    func forged() throws {
        let key = DatagramKey(key)
        let bytes = try #require(Hex.decode(answer))
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(ClockDatagram(changed[...], key: key) == nil)
        }
        #expect(ClockDatagram(bytes[...], key: DatagramKey([UInt8](repeating: 7, count: 32))) == nil)
        for length in 0..<bytes.count { #expect(ClockDatagram(bytes.prefix(length), key: key) == nil) }
        #expect(ClockDatagram((bytes + [0])[...], key: key) == nil)
    }

    /// RFC 4231, test case 2 with a key that OpenSSL takes as it is: "Jefe".
    @Test("the mark is HMAC-SHA-256 cut to 16 bytes")
    func standard() {
        let mark = DatagramKey(Array("Jefe".utf8)).mark(Array("what do ya want for nothing?".utf8))
        #expect(Hex.encode(mark) == "5bdcc146bf60754e6a042426089575c7")
    }

    @Test("each sequence number is taken once, and none that is 64 or more behind")
    func replay() {
        var window = ReplayWindow()
        let numbers: [(UInt64, Bool)] = [
            (1000, true), (1000, false), (1001, true), (1000, false), (999, true), (999, false), (938, true),
            (937, false), (1064, true), (1001, false), (1002, true), (5000, true), (4937, true), (4936, false),
            (.max, true), (.max, false), (0, false),
        ]
        for (number, isNew) in numbers {
            let admitted = window.admit(number)
            #expect(admitted == isNew, "number \(number)")
        }
    }

    @Test("golden bytes of the identify question and its answer; the answer is never longer than the question")
    func identify() throws {
        let nonce = (0..<16).map { UInt8($0) }
        let question = IdentifyDatagram.question(nonce: nonce)
        #expect(question.count == 1200)
        #expect(
            Hex.encode(Array(question[..<26])) == "444249440100" + "0000" + "000102030405060708090a0b0c0d0e0f" + "0000")
        #expect(IdentifyDatagram.nonce(ofQuestion: question[...]) == nonce)
        #expect(IdentifyDatagram.nonce(ofQuestion: question.dropLast()) == nil)
        let answer = try #require(IdentifyDatagram.answer(nonce: nonce, text: Array("v=1".utf8)))
        #expect(Hex.encode(answer) == "444249440200" + "0003" + "000102030405060708090a0b0c0d0e0f" + "763d31")
        #expect(IdentifyDatagram.text(ofAnswer: answer[...], nonce: nonce) == Array("v=1".utf8))
        #expect(IdentifyDatagram.text(ofAnswer: answer[...], nonce: nonce.reversed()) == nil)
        #expect(IdentifyDatagram.text(ofAnswer: (answer + [0])[...], nonce: nonce) == nil)
        #expect(IdentifyDatagram.answer(nonce: nonce, text: [UInt8](repeating: 65, count: 1177)) == nil)
        let longest = IdentifyDatagram.answer(nonce: nonce, text: [UInt8](repeating: 65, count: 1176))
        #expect(longest?.count == question.count)
    }
}
