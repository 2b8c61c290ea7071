import Devices
import Platform
import Testing
import Timing

@Suite struct ATTClientTests {
    private let start = Timestamp<HostTime>(nanoseconds: 1_000_000_000)

    private func at(_ seconds: Double) -> Timestamp<HostTime> { start + .seconds(seconds) }

    @Test func oneRequestIsOutstanding() {
        var client = ATTClient(ownMTU: 517)
        let (first, sent) = client.request(.readRequest(3), patience: .seconds(5), at: at(0))
        #expect(sent == [.send([0x0A, 3, 0])])
        let (second, none) = client.request(.readRequest(4), patience: .seconds(5), at: at(0))
        #expect(none.isEmpty)
        let next = client.receive([0x0B, 7], at: at(0.1))
        #expect(next == [.answer(first, .success(.readResponse([7]))), .send([0x0A, 4, 0])])
        let refused = client.receive([0x01, 0x0A, 4, 0, 2], at: at(0.2))
        #expect(
            refused == [.answer(second, .failure(.refused(.readNotPermitted, request: 0x0A, handle: 4)))])
        #expect(client.deadline == nil)
    }

    @Test func packetSizeIsTheSmallerOne() {
        for (theirs, agreed) in [(247, 247), (517, 517), (1000, 517), (10, 23)] {
            var client = ATTClient(ownMTU: 517)
            #expect(client.mtu == 23)
            _ = client.request(.exchangeMTURequest(517), patience: .seconds(5), at: at(0))
            _ = client.receive(ATTPacket.exchangeMTUResponse(UInt16(theirs)).bytes, at: at(0))
            #expect(client.mtu == agreed)
        }
    }

    /// field.md 73: a call that is never answered.
    @Test func everyRequestHasADeadline() {
        var client = ATTClient(ownMTU: 517)
        let (first, _) = client.request(.readRequest(3), patience: .seconds(2), at: at(0))
        let (second, _) = client.request(.readRequest(4), patience: .seconds(3), at: at(0))
        #expect(client.deadline == at(2))
        #expect(client.tick(at: at(1.9)).isEmpty)
        guard case .answer(first, .failure(.noAnswer)) = client.tick(at: at(2)).first else {
            Issue.record("the first request should have been given up")
            return
        }
        guard case .answer(second, .failure(.noAnswer)) = client.tick(at: at(3)).first else {
            Issue.record("the second request should have been given up")
            return
        }
        // The bearer still waits for the first answer; when it comes late, the next request goes out.
        let (third, held) = client.request(.readRequest(5), patience: .seconds(20), at: at(4))
        #expect(held.isEmpty)
        #expect(client.receive([0x0B, 7], at: at(5)) == [.send([0x0A, 5, 0])])
        #expect(client.receive([0x0B, 8], at: at(6)) == [.answer(third, .success(.readResponse([8])))])
    }

    /// Vol 3 Part F 3.3.3: after 30 s without an answer the bearer can't be used any more.
    @Test func anUnansweredRequestEndsTheLink() {
        var client = ATTClient(ownMTU: 517)
        let (first, _) = client.request(.readRequest(3), patience: .seconds(60), at: at(0))
        #expect(client.tick(at: at(29.9)).isEmpty)
        let end = client.tick(at: at(30))
        guard case .answer(first, .failure(.disconnected)) = end.first, case .breakLink = end.last else {
            Issue.record("\(end)")
            return
        }
        let (late, actions) = client.request(.readRequest(4), patience: .seconds(5), at: at(31))
        guard case .answer(late, .failure(.disconnected)) = actions.first else {
            Issue.record("a dead bearer took a request")
            return
        }
        #expect(client.receive([0x1B, 1, 0], at: at(32)).isEmpty)
    }

    @Test func whatWasNotAskedForIsCounted() {
        var client = ATTClient(ownMTU: 517)
        #expect(client.receive([0x0B, 7], at: at(0)).isEmpty)
        let (first, _) = client.request(.readRequest(3), patience: .seconds(5), at: at(0))
        #expect(client.receive([0x13], at: at(0)).isEmpty)
        #expect(client.receive([0x01, 0x12, 3, 0, 1], at: at(0)).isEmpty)
        #expect(client.receive([0xD2, 3, 0, 1], at: at(0)).isEmpty)
        #expect(client.strayPackets == 4)
        #expect(client.receive([0x0B, 7], at: at(0)) == [.answer(first, .success(.readResponse([7])))])
        #expect(client.receive([], at: at(0)).isEmpty)
    }

    @Test func theDevicesOwnRequestsAreAnswered() {
        var client = ATTClient(ownMTU: 517)
        #expect(client.receive([0x02, 0xF7, 0], at: at(0)) == [.send([0x03, 0x05, 0x02])])
        #expect(client.mtu == 247)
        #expect(
            client.receive([0x10, 1, 0, 0xFF, 0xFF, 0, 0x28], at: at(0)) == [.send([0x01, 0x10, 1, 0, 0x0A])])
        #expect(client.receive([0x0A, 9, 0], at: at(0)) == [.send([0x01, 0x0A, 9, 0, 0x01])])
        #expect(client.receive([0x20, 1, 0], at: at(0)) == [.send([0x01, 0x20, 0, 0, 0x06])])
    }

    @Test func indicationsAreConfirmed() {
        var client = ATTClient(ownMTU: 517)
        #expect(
            client.receive([0x1D, 3, 0, 9], at: at(1))
                == [.send([0x1E]), .deliver(.init(handle: 3, bytes: [9]), at: at(1))])
        #expect(client.receive([0x1D, 3], at: at(1)) == [.send([0x1E])])
        #expect(client.receive([0x1B, 3, 0, 9], at: at(2)) == [.deliver(.init(handle: 3, bytes: [9]), at: at(2))])
    }

    @Test func requestsAreBounded() {
        var client = ATTClient(ownMTU: 517)
        var refusals = 0
        for handle in 1...100 {
            let (id, actions) = client.request(.readRequest(UInt16(handle)), patience: .seconds(5), at: at(0))
            if actions == [.answer(id, .failure(.busy))] { refusals += 1 }
        }
        #expect(refusals == 35)
    }
}
