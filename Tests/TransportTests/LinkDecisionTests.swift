internal import Protocol
internal import Testing
internal import Timing

@testable internal import Transport

@Suite("Which address of an agent is used, and what a failed handshake means")
struct LinkMachineTests {
    @Test("All addresses are opened; the first to succeed is used and the others are closed")
    func race() {
        var machine = LinkMachine(addresses: 3)
        #expect(machine.handle(.start) == [.open(0), .open(1), .open(2)])
        #expect(machine.handle(.established(1)) == [.close(0), .close(2), .connected(1)])
        #expect(machine.handle(.established(2)) == [.close(2)])
        #expect(machine.handle(.failed(0, .refused)) == [])
        #expect(machine.handle(.retryDue(0)) == [])
        #expect(machine.handle(.lost(2, "x")) == [])
        #expect(machine.handle(.lost(1, "cut")) == [.close(1), .disconnected("cut"), .open(0), .open(1), .open(2)])
    }

    @Test("A refusal of the only address is told at once, and only once")
    func refused() {
        var machine = LinkMachine(addresses: 1)
        _ = machine.handle(.start)
        #expect(machine.handle(.failed(0, .refused)).contains(.wrongKey(.refusedOurs, 0)))
        for _ in 0..<5 {
            let again = machine.handle(.failed(0, .refused))
            #expect(again.count == 2 && again.first == .close(0), "it is tried again without end")
        }
        #expect(machine.handle(.established(0)) == [.connected(0)])
        _ = machine.handle(.lost(0, "x"))
        #expect(machine.handle(.failed(0, .refused)).contains(.wrongKey(.refusedOurs, 0)), "it is news again")
    }

    @Test("Two handshakes that are cut quickly are another key; slow ones are none")
    func cut() {
        var machine = LinkMachine(addresses: 1)
        _ = machine.handle(.start)
        var told: [Bool] = []
        for _ in 0..<4 {
            told.append(machine.handle(.failed(0, .cut(quickly: true))).contains(.wrongKey(.otherKey, 0)))
        }
        #expect(told == [false, true, false, false])
        var slow = LinkMachine(addresses: 1)
        for _ in 0..<10 { #expect(slow.handle(.failed(0, .cut(quickly: false))).count == 2) }
    }

    @Test("With several addresses the others have half a second to do better")
    func grace() {
        var machine = LinkMachine(addresses: 2)
        _ = machine.handle(.start)
        #expect(machine.handle(.failed(1, .mismatch)).contains(.waitGrace(.milliseconds(500))))
        #expect(machine.handle(.failed(1, .mismatch)).count == 2)
        #expect(machine.handle(.graceOver) == [.wrongKey(.notEncrypted, 1)])
        var better = LinkMachine(addresses: 2)
        _ = better.handle(.failed(1, .mismatch))
        #expect(better.handle(.established(0)) == [.close(1), .connected(0)])
        #expect(better.handle(.graceOver) == [])
    }

    @Test("Five tries come within about a second, later ones once a second")
    func pace() {
        var machine = LinkMachine(addresses: 1)
        let waits = (0..<6).map { _ -> Interval in
            guard case .retry(_, let wait) = machine.handle(.failed(0, .refused))[1] else { return .zero }
            return wait
        }
        #expect(waits == [50, 100, 300, 600, 1000, 1000].map { .milliseconds($0) })
    }
}

@Suite("A command that is repeated is done once")
struct AnswerCacheTests {
    private func peer(_ number: UInt8) -> PeerID {
        PeerID(connection: [number], coordinator: "desk", key: nil, address: "127.0.0.1")
    }
    private func key(_ id: UniqueID = .random()) -> AnswerCache.Key { .init(coordinator: nil, command: id) }

    @Test("New, under way, answered; the answer goes where it was asked for last")
    func life() {
        var cache = AnswerCache()
        let key = key()
        #expect(cache.receive(key, from: peer(1)) == .new)
        #expect(cache.receive(key, from: peer(2)) == .underWay)
        #expect(cache.finish(key, with: [[7]]) == peer(2))
        #expect(cache.receive(key, from: peer(3)) == .answered([[7]]))
        #expect(cache.finish(key, with: [[8]]) == nil)
    }

    @Test("The same id of another coordinator is another command")
    func coordinators() {
        var cache = AnswerCache()
        let id = UniqueID.random()
        #expect(cache.receive(key(id), from: peer(1)) == .new)
        let other = AnswerCache.Key(coordinator: CurveKeyPair.generate().publicKey, command: id)
        #expect(cache.receive(other, from: peer(2)) == .new)
    }

    @Test("Answers are bounded in number and in bytes, the oldest go; what isn't kept is done again")
    func bounds() {
        var cache = AnswerCache(limits: .init(answers: 100, bytes: 50, underWay: 10_000))
        var keys: [AnswerCache.Key] = []
        for _ in 0..<5000 {
            let key = key()
            keys.append(key)
            #expect(cache.receive(key, from: peer(1)) == .new)
            _ = cache.finish(key, with: [[1, 2, 3, 4, 5]])
        }
        let kept = keys.map { cache.receive($0, from: peer(1)) == .answered([[1, 2, 3, 4, 5]]) }
        #expect(kept.suffix(10).allSatisfy { $0 } && !kept.dropLast(10).contains(true))
        let large = key()
        _ = cache.receive(large, from: peer(1))
        _ = cache.finish(large, with: [[1]], keep: false)
        #expect(cache.receive(large, from: peer(1)) == .new)
    }

    @Test("What a coordinator has under way is bounded")
    func underWay() {
        var cache = AnswerCache(limits: .init(underWay: 3))
        let keys = (0..<3).map { _ in key() }
        for key in keys { #expect(cache.receive(key, from: peer(1)) == .new) }
        #expect(cache.receive(key(), from: peer(1)) == .tooMany)
        #expect(cache.receive(keys[0], from: peer(1)) == .underWay)
        _ = cache.finish(keys[0], with: [])
        #expect(cache.receive(key(), from: peer(1)) == .new)
    }
}

@Suite("The queue of events and the limiter of notices")
struct LinkQueueTests {
    @Test("The oldest events go first, and the gap is told before the next one", .timeLimit(.minutes(1)))
    func dropping() async {
        let queue = LinkEventQueue(limit: 3)
        for number in 1...10 { queue.push(.disconnected("\(number)")) }
        queue.finish()
        var events: [LinkEvent] = []
        for await event in queue.stream { events.append(event) }
        #expect(events == [.dropped(7), .disconnected("8"), .disconnected("9"), .disconnected("10")])
    }

    @Test("A reader that waits gets the event, and ends when its task is cancelled", .timeLimit(.minutes(1)))
    func waiting() async {
        let queue = LinkEventQueue()
        let stream = queue.stream
        let reader = Task {
            var events: [LinkEvent] = []
            for await event in stream { events.append(event) }
            return events
        }
        queue.push(.connected)
        queue.finish()
        #expect(await reader.value == [.connected])
        let other = LinkEventQueue()
        let second = other.stream
        let cancelled = Task { for await _ in second {} }
        cancelled.cancel()
        await cancelled.value
    }

    @Test("One notice of a subject in ten seconds, then the number of the others; subjects are bounded")
    func limiter() {
        var limiter = NoticeLimiter()
        let start = Timestamp<HostTime>(nanoseconds: 5)
        func at(_ seconds: Double) -> Timestamp<HostTime> { start + .seconds(seconds) }
        #expect(limiter.admit("a", subject: "s", at: at(0)) == "a")
        #expect(limiter.admit("a", subject: "s", at: at(1)) == nil)
        #expect(limiter.admit("a", subject: "s", at: at(9.9)) == nil)
        #expect(limiter.admit("b", subject: "t", at: at(9.9)) == "b")
        #expect(limiter.admit("a", subject: "s", at: at(10)) == "a (and 2 more like it)")
        let admitted = (0..<10_000).count { limiter.admit("x", subject: "\($0)", at: at(11)) != nil }
        #expect(admitted < 256)
        #expect(limiter.admit("x", subject: "later", at: at(30)) == "x")
    }
}
