internal import Devices
internal import TestSupport
internal import Testing
internal import Timing

/// When a camera is restarted, waited for and given up: rows D-5 to D-9 and D-23 of what comparable systems do.
@Suite struct CameraSupervisorTests {
    private static func at(_ seconds: Double) -> Timestamp<HostTime> { Timestamp(nanoseconds: 0) + .seconds(seconds) }

    /// Ticks ten times a second; what was decided, with the second in which it was.
    private func run(
        _ supervisor: inout CameraSupervisor, from: Double, to: Double,
        answer: (CameraSupervisor.Action) -> CameraSupervisor.Event? = { _ in nil }
    ) -> [(Double, CameraSupervisor.Action)] {
        var decided: [(Double, CameraSupervisor.Action)] = []
        for step in Int(from * 10)...Int(to * 10) {
            var events: [CameraSupervisor.Event] = [.tick]
            while !events.isEmpty {
                for action in supervisor.handle(events.removeFirst(), at: Self.at(Double(step) / 10)) {
                    decided.append((Double(step) / 10, action))
                    if let event = answer(action) { events.append(event) }
                }
            }
        }
        return decided
    }

    @Test(arguments: [(30.0, 1.0), (5.0, 1.0), (2.0, 2.5), (0.5, 10.0), (nil, 1.0)] as [(Double?, Double)])
    func `Silence is max(1 s, 5 periods)`(rate: Double?, seconds: Double) {
        #expect(CameraSupervisor(rate: rate, at: Self.at(0)).silence == .seconds(seconds))
    }

    @Test func `D-6 a stall is told once, and the camera is back 2 s later`() {
        var supervisor = CameraSupervisor(rate: 30, at: Self.at(0))
        var decided = run(&supervisor, from: 0.1, to: 4) { $0 == .reopen ? .reopened : nil }
        #expect(decided.map { $0.0 } == [1, 1, 3])
        #expect(
            decided.map { $0.1 } == [
                .close, .interrupted(since: Self.at(0), cause: "no frame came for 1.0 s"), .reopen,
            ])
        decided = supervisor.handle(.frame, at: Self.at(4.1)).map { (4.1, $0) }
        #expect(decided.map { $0.1 } == [.resumed(since: Self.at(0), cause: "no frame came for 1.0 s")])
        #expect(supervisor.openGap == nil)
    }

    @Test func `D-6 D-7 a stall for good is given up after three restarts, with its length`() {
        var supervisor = CameraSupervisor(rate: 30, at: Self.at(0))
        let decided = run(&supervisor, from: 0.1, to: 100) { $0 == .reopen ? .reopened : nil }
        let reopened = decided.filter { $0.1 == .reopen }.map { $0.0 }
        // 1 s of silence and 2 s of rest, then three times 3 s for a first frame and 2 s of rest.
        #expect(reopened == [3, 8, 13])
        #expect(zip(reopened, reopened.dropFirst()).allSatisfy { $1 - $0 >= 2 })
        let failures = decided.compactMap { decision -> (Double, String)? in
            if case .fail(let text) = decision.1 { (decision.0, text) } else { nil }
        }
        #expect(failures.count == 1)
        #expect(failures.first?.0 == 16)
        #expect(failures.first?.1.contains("nothing came for 16.0 s, and 3 restarts didn't help") == true)
        #expect(decided.filter { if case .interrupted = $0.1 { true } else { false } }.count == 1)
        #expect(supervisor.hasFailed)
        #expect(supervisor.handle(.frame, at: Self.at(101)).isEmpty)
    }

    @Test func `A stall every minute is within the budget for ever`() {
        var supervisor = CameraSupervisor(rate: 30, at: Self.at(0))
        var failed = false
        for minute in 0..<120 {
            let begin = Double(minute) * 61
            _ = supervisor.handle(.frame, at: Self.at(begin))
            for (_, action) in run(
                &supervisor, from: begin + 0.1, to: begin + 4, answer: { $0 == .reopen ? .reopened : nil })
            {
                if case .fail = action { failed = true }
            }
        }
        #expect(!failed)
    }

    @Test
    func `D-9 an unplugged camera is waited for without end, looked for every 2 s, and taken at once when it comes`() {
        var supervisor = CameraSupervisor(rate: 30, at: Self.at(0))
        #expect(
            supervisor.handle(.broke(.gone, "unplugged"), at: Self.at(0.2)) == [
                .close, .interrupted(since: Self.at(0), cause: "unplugged"),
            ])
        let decided = run(&supervisor, from: 0.3, to: 600) { $0 == .reopen ? .notReopened(.gone, "unplugged") : nil }
        #expect(decided.allSatisfy { $0.1 == .reopen || $0.1 == .close })
        #expect((290...300).contains(decided.filter { $0.1 == .reopen }.count))
        #expect(supervisor.handle(.plugged, at: Self.at(600.35)) == [.reopen])
        #expect(supervisor.handle(.reopened, at: Self.at(600.4)).isEmpty)
        #expect(supervisor.handle(.frame, at: Self.at(601)) == [.resumed(since: Self.at(0), cause: "unplugged")])
    }

    @Test func `D-3 a camera that another program took is waited for, and its holder is told`() {
        var supervisor = CameraSupervisor(rate: 30, at: Self.at(0))
        _ = supervisor.handle(.broke(.gone, "unplugged"), at: Self.at(0.2))
        var told: [String] = []
        let decided = run(&supervisor, from: 0.3, to: 60) {
            if case .interrupted(_, let cause) = $0 { told.append(cause) }
            return $0 == .reopen ? .notReopened(.held, "held by process 7 (cheese)") : nil
        }
        #expect(told == ["held by process 7 (cheese)"])
        #expect(!decided.contains { if case .fail = $0.1 { true } else { false } })
    }

    @Test(arguments: [UInt64](1...20))
    func `Whatever happens, it is never opened again within 2 s of a failure, nor more than three times a minute`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        var supervisor = CameraSupervisor(rate: 30, at: Self.at(0))
        var restarts: [Double] = []
        var lastClose = -10.0
        var now = 0.0
        for _ in 0..<5000 {
            now += Double.random(in: 0...0.3, using: &generator)
            let event: CameraSupervisor.Event =
                switch Int.random(in: 0..<10, using: &generator) {
                case 0: .frame
                case 1: .broke(.broken, "EIO")
                default: .tick
                }
            for action in supervisor.handle(event, at: Self.at(now)) {
                switch action {
                case .close: lastClose = now
                case .reopen:
                    #expect(now - lastClose >= 1.999)
                    restarts.append(now)
                    _ = supervisor.handle(.reopened, at: Self.at(now))
                default: break
                }
            }
        }
        for restart in restarts { #expect(restarts.filter { $0 >= restart && $0 < restart + 58 }.count <= 4) }
    }
}
