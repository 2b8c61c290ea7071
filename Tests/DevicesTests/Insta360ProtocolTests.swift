internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Devices

/// The camera's bytes; expected values by an independent implementation of the published layout (CRC checked against the
/// catalogue's value for "123456789").
@Suite struct Insta360ProtocolTests {
    private func hex(_ text: String) -> [UInt8] { text.split(separator: " ").compactMap { UInt8($0, radix: 16) } }

    private func bytes(_ command: CameraCommand, _ sequence: UInt8) -> [UInt8]? {
        CameraFrame(
            .toCamera, .message, CameraMessage(code: command.code, sequence: sequence, body: command.body).inside
        ).bytes
    }

    @Test func `The CRC has the catalogue's check value`() {
        #expect(ModbusCRC.of(Array("123456789".utf8)) == 0x4B37)
        #expect(ModbusCRC.of([]) == 0xFFFF)
    }

    @Test func `Commands have golden bytes`() {
        #expect(
            bytes(.start, 1) == hex("ff 07 40 12 00 12 00 00 00 04 00 00 04 00 02 01 00 00 80 00 00 08 01 29 a3"))
        #expect(bytes(.stop, 2) == hex("ff 07 40 10 00 10 00 00 00 04 00 00 05 00 02 02 00 00 80 00 00 44 3f"))
        #expect(
            bytes(.setVideoMode, 3)
                == hex("ff 07 40 16 00 16 00 00 00 04 00 00 02 00 02 03 00 00 80 00 00 0a 04 08 29 10 00 a3 17"))
        #expect(
            bytes(.checkAuthorization(id: "rig1"), 4)
                == hex("ff 07 40 18 00 18 00 00 00 04 00 00 27 00 02 04 00 00 80 00 00 0a 04 72 69 67 31 10 02 08 27"))
        #expect(
            bytes(.requestAuthorization, 5)
                == hex("ff 07 40 12 00 12 00 00 00 04 00 00 56 00 02 05 00 00 80 00 00 08 01 22 e9"))
    }

    @Test func `The handshake is answered with seven zero bytes`() {
        var talk = CameraConversation()
        let call = hex("ff 06 41 0a 00 ab ba ab ba ab ba ab ba ab ba 4e e2")
        #expect(
            talk.receive(call, at: at(1)) == [.write(hex("ff 07 41 07 00 00 00 00 00 00 00 00 5c 42"))])
        #expect(talk.heartbeat == hex("ff 07 40 07 00 07 00 00 00 05 00 00 6b 46"))
    }

    private let stopReply =
        "ff 06 40 3f 00 3f 00 00 00 04 00 00 c8 00 02 02 00 00 80 00 00 0a 2d 2f 44 43 49 4d 2f 43 61 6d 65 72 61 30 31 "
        + "2f 56 49 44 5f 32 30 32 36 30 34 30 31 5f 31 32 30 30 30 30 5f 30 30 5f 30 30 37 2e 6d 70 34 e7 43"
    private let errorReply =
        "ff 06 40 24 00 24 00 00 00 04 00 00 f4 01 02 01 00 00 80 00 00 08 01 12 10 6d 73 67 20 65 78 65 63 75 74 65 20 "
        + "65 72 72 2e b7 d1"

    private func at(_ seconds: Double) -> Timestamp<HostTime> { Timestamp(nanoseconds: 0) + .seconds(seconds) }

    @Test func `Responses are told apart by their sequence, also out of order and in parts`() {
        var talk = CameraConversation()
        let start = talk.request(.start, patience: .seconds(6), at: at(0))
        let stop = talk.request(.stop, patience: .seconds(6), at: at(0.5))
        let bytes = hex(stopReply) + hex(errorReply)
        var actions: [CameraConversation.Action] = []
        for byte in bytes { actions += talk.receive([byte], at: at(1)) }
        #expect(actions.count == 2)
        guard case .answer(stop.id, .success(let reply)) = actions[0] else { return #expect(Bool(false)) }
        #expect(CameraReplies.clipPath(reply.body) == "/DCIM/Camera01/VID_20260401_120000_00_007.mp4")
        #expect((reply.received - reply.sent).milliseconds == 500)
        let refusal = CameraFault.refused(.start, .error, words: "msg execute err.")
        #expect(actions[1] == .answer(start.id, .failure(refusal)))
        #expect(refusal.failure == .recoverable)
        // The same response once more belongs to nobody.
        #expect(talk.receive(hex(stopReply), at: at(2)).isEmpty)
        #expect(talk.strayResponses == 1)
    }

    @Test func `A late response isn't taken for another request's`() {
        var talk = CameraConversation()
        _ = talk.request(.stop, patience: .seconds(1), at: at(0))
        let second = talk.request(.stop, patience: .seconds(1), at: at(0))
        #expect(talk.deadline == at(1))
        #expect(talk.tick(at: at(0.9)).isEmpty)
        #expect(talk.tick(at: at(1)).count == 2)
        let third = talk.request(.start, patience: .seconds(1), at: at(2))
        #expect(talk.receive(hex(stopReply), at: at(2.1)).isEmpty)
        #expect(third.id != second.id && talk.strayResponses == 1)
        #expect(talk.end("gone") == [.answer(third.id, .failure(.disconnected("gone")))])
    }

    @Test func `A damaged frame is passed over and the next one is read`() {
        var reader = CameraFrameReader()
        var damaged = hex(stopReply)
        damaged[30] ^= 0x10
        #expect(reader.take([0x00, 0xFF, 0x01] + damaged + hex(errorReply)).count == 1)
        #expect(reader.damagedFrames == 1)
    }

    @Test func `Any bytes are read without harm, and whole frames among them are found`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            var reader = CameraFrameReader()
            var talk = CameraConversation()
            let junk = (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...254, using: &random)
            }
            #expect(reader.take(junk + hex(stopReply)).count == 1)
            let wild = (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = talk.receive(wild, at: at(0))
            _ = CameraMessage(inside: wild)
            _ = CameraReplies.clipPath(wild)
            _ = CameraReplies.capture(wild)
            _ = CameraReplies.battery(wild)
            _ = CameraAuthorization(check: wild)
        }
    }

    @Test func `Battery, state and permission are read`() {
        #expect(CameraReplies.battery([0x08, 0x64, 0x10, 0x01]) == .init(level: 100, isCharging: true))
        #expect(CameraReplies.battery([0x08, 0xC8, 0x01]) == nil)
        let told = CameraReplies.capture([0x08, 0x04, 0x20, 0xB8, 0x17, 0x28, 0x05, 0x30, 0x88, 0x0E])
        #expect(told == .init(state: 4, free: 3000, fileCount: 5))
        #expect(told?.isRecording == true)
        #expect(CameraReplies.capture([0x0A, 0x02, 0x08, 0x00])?.isRecording == false)
        #expect(CameraReplies.clipPath([0x0A, 0x00]) == nil)
        #expect(CameraReplies.clipPath([]) == nil)
    }

    @Test(
        "8.1 item 21: Each refusal has its name, and none is taken for a yes",
        arguments: [
            ([0x08, 1], CameraAuthorization.granted), ([0x08, 2], .required), ([0x08, 3], .pending),
            ([0x08, 4], .rejected), ([0x08, 5], .timedOut), ([0x08, 9], .unknown), ([], .unknown), ([0x08], .unknown),
        ] as [([UInt8], CameraAuthorization)])
    func permission(_ body: [UInt8], _ expected: CameraAuthorization) {
        #expect(CameraAuthorization(check: body) == expected)
    }

    @Test func `Failures are told apart by their words`() {
        #expect(CaptureFailure("the start timed out: no answer within 6 s") == .recoverable)
        #expect(CaptureFailure("answered with error (500): camera is busy") == .recoverable)
        #expect(CaptureFailure("error 444") == .recoverable)
        #expect(CaptureFailure("BLE gone") == .recoverable)
        #expect(CaptureFailure("it is not capturing") == .alreadyStopped)
        #expect(CaptureFailure("impossible") == .final)
        #expect(CaptureRetryPolicy.stop.pause(after: 2) == .milliseconds(2500))
        #expect(CaptureRetryPolicy.stop.pause(after: 3) == nil)
    }
}

/// When the link is looked for, made, called bad and given up.
@Suite struct CameraLinkMachineTests {
    private func at(_ seconds: Double) -> Timestamp<HostTime> { Timestamp(nanoseconds: 0) + .seconds(seconds) }

    private func connected() -> CameraLinkMachine {
        var machine = CameraLinkMachine()
        _ = machine.handle(.wanted, at: at(0))
        _ = machine.handle(.found, at: at(1))
        _ = machine.handle(.connected, at: at(1))
        return machine
    }

    @Test func `It is made, kept awake, and called bad after two silent heartbeats`() {
        var machine = connected()
        #expect(machine.state == .bleReady)
        #expect(machine.handle(.tick, at: at(1)) == [.heartbeat])
        #expect(machine.deadline == at(3))
        _ = machine.handle(.tick, at: at(3))
        #expect(machine.state == .bleReady)
        _ = machine.handle(.tick, at: at(5))
        #expect(machine.state == .bleDegraded)
        _ = machine.handle(.heard, at: at(5.1))
        #expect(machine.state == .bleReady)
        _ = machine.handle(.signal(-90), at: at(6))
        #expect(machine.state == .bleDegraded)
    }

    @Test
    func `8.1 item 16: While another camera holds the Wi-Fi it is kept awake every 8 s; the holder is left alone`() {
        var machine = connected()
        _ = machine.handle(.wifi(.other), at: at(2))
        #expect(machine.state == .bleSuspended)
        #expect(machine.handle(.tick, at: at(2)) == [.heartbeat])
        #expect(machine.deadline == at(10))
        _ = machine.handle(.wifi(.own), at: at(11))
        #expect(machine.state == .wifiBound)
        #expect(machine.handle(.tick, at: at(11)).isEmpty)
        _ = machine.handle(.wifi(.none), at: at(12))
        #expect(machine.state == .bleReady)
    }

    @Test func `8.1 item 18: The same end told twice doesn't lengthen the pause`() {
        var machine = connected()
        _ = machine.handle(.disconnected("gone"), at: at(5))
        _ = machine.handle(.disconnected("gone"), at: at(5.1))
        _ = machine.handle(.disconnected("gone"), at: at(5.4))
        #expect(machine.state == .reconnecting)
        #expect(machine.deadline == at(5.5))
    }

    @Test func `8.1 item 18: An end that was wanted is no loss`() {
        var machine = connected()
        #expect(machine.handle(.unwanted, at: at(5)).contains(.disconnect))
        _ = machine.handle(.disconnected("as asked"), at: at(6))
        #expect(machine.state == .idle)
        #expect(machine.deadline == nil)
    }

    @Test func `8.1 item 19: Asking again begins with a short pause again`() {
        var machine = connected()
        var now = 5.0
        for pause in [0.5, 1, 2, 4] {
            _ = machine.handle(.disconnected("gone"), at: at(now))
            #expect(machine.deadline == at(now + pause))
            _ = machine.handle(.tick, at: at(now + pause))
            _ = machine.handle(.found, at: at(now + pause))
            now += pause + 1
        }
        _ = machine.handle(.connectFailed("no"), at: at(now))
        _ = machine.handle(.forced, at: at(now))
        _ = machine.handle(.found, at: at(now))
        _ = machine.handle(.connectFailed("no"), at: at(now))
        #expect(machine.deadline == at(now + 0.5))
    }

    @Test func `8.1 item 20: A camera that isn't there is lost in the end, and a person is asked to wake it`() {
        var machine = CameraLinkMachine()
        #expect(machine.handle(.wanted, at: at(0)).contains(.scan(.seconds(15))))
        #expect(machine.deadline == at(12))
        #expect(machine.handle(.tick, at: at(12)) == [.askToWake])
        #expect(machine.handle(.scanEmpty, at: at(15)) == [.scan(.seconds(6))])
        #expect(machine.handle(.scanEmpty, at: at(21)) == [.scan(.seconds(6))])
        _ = machine.handle(.scanEmpty, at: at(27))
        #expect(machine.state == .lost)
        #expect(machine.deadline == nil)
    }
}
