internal import Coordinator
internal import Protocol
internal import Testing
internal import Timing

/// Whole takes against simulated agents in virtual time, over a network that loses, delays and repeats.
@Suite struct TakeScheduleTests {
    @Test("whatever the network does, the promises of a take hold", arguments: 0..<600)
    func randomSchedule(_ seed: Int) {
        var world = TakeWorld(seed: UInt64(seed))
        world.run()
        let machine = world.machine
        #expect(machine.outcome != nil, "the take never ended")
        #expect(world.violations == [], "seed \(seed)")
        if case .aborted = machine.outcome {
            // Every host that was asked to arm was told that it's over.
            #expect(world.asked.subtracting(world.calledOff).isEmpty, "seed \(seed)")
        }
        for (host, agent) in world.agents where agent.isRecording {
            // Only who couldn't be reached may go on, and it has a limit of its own.
            #expect(!agent.wasReached, "host \(host) goes on after seed \(seed)")
        }
        if machine.record.stopChirp != nil, let stop = machine.record.stop, let chirp = machine.record.stopChirp {
            #expect(stop - chirp == .milliseconds(1300))
        }
    }

    @Test("the schedules see every kind of end")
    func coverage() {
        var ends: Set<String> = []
        for seed in 0..<600 {
            var world = TakeWorld(seed: UInt64(seed))
            world.run()
            switch world.machine.outcome {
            case .sealed: ends.insert("sealed")
            case .aborted: ends.insert("aborted")
            case .incomplete: ends.insert("incomplete")
            case .notIngested: ends.insert("notIngested")
            default: break
            }
        }
        #expect(ends == ["sealed", "aborted", "incomplete", "notIngested"])
    }
}

/// The seeded generator of the schedules: SplitMix64.
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// A machine, simulated agents, and a network between them.
struct TakeWorld {
    struct Agent {
        var isArmed = false
        var start: Timestamp<RigTime>?
        var isRecording = false
        var hasFinished = false
        var isAborted = false
        /// Whether its last stop or abort came through.
        var wasReached = false
    }

    private enum Delivery {
        case toAgent(HostID, TakeAction, UniqueID)
        case toMachine(TakeEvent)
        case begins(HostID, Timestamp<RigTime>)
        case stops(HostID)
    }

    var machine: TakeMachine
    var agents: [HostID: Agent] = [:]
    var asked: Set<HostID> = []
    var calledOff: Set<HostID> = []
    var violations: [String] = []

    private var random: SplitMix64
    private var now = Timestamp<RigTime>.at(10)
    private var queue: [(at: Timestamp<RigTime>, order: Int, what: Delivery)] = []
    private var order = 0
    private var acknowledged: Set<HostID> = []
    private var committed: [HostID: Int] = [:]
    private let loss: Double
    private let dead: HostID?

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        loss = [0, 0, 0.02, 0.1, 0.3].randomElement(using: &random) ?? 0
        dead = Int.random(in: 0..<4, using: &random) == 0 ? TakeScenario.hosts.randomElement(using: &random) : nil
        let policy = AbsencePolicy.allCases.randomElement(using: &random) ?? .strict
        machine = TakeMachine(
            settings: TakeScenario.settings(
                policy: policy, duration: Bool.random(using: &random) ? .seconds(5) : nil,
                isLeaderFixed: Bool.random(using: &random), ingests: Int.random(in: 0..<5, using: &random) > 0))
        for host in TakeScenario.hosts { agents[host] = Agent() }
    }

    mutating func run() {
        let present = TakeScenario.hosts.filter { _ in Int.random(in: 0..<12, using: &random) > 0 }
        for host in TakeScenario.hosts {
            let bound = [Interval.microseconds(30), .microseconds(300), .milliseconds(9)].randomElement(using: &random)
            post(
                .toMachine(.clock(host, bound: bound)), after: .milliseconds(Int64.random(in: 0..<3000, using: &random))
            )
            if Int.random(in: 0..<3, using: &random) > 0 {
                post(.toMachine(.clock(host, bound: .microseconds(40))), after: .seconds(3.5))
            }
        }
        if let dead {
            let death = Interval.seconds(Double.random(in: 0..<9, using: &random))
            post(.toMachine(.lost(dead, "no heartbeat")), after: death)
        }
        // Nobody waits for ever.
        post(.toMachine(.stopRequested("operator")), after: .seconds(Double.random(in: 1..<40, using: &random)))
        if Int.random(in: 0..<4, using: &random) == 0 {
            post(.toMachine(.interrupted), after: .seconds(Double.random(in: 0..<30, using: &random)))
        }
        feed(.begin(present: present))
        while machine.outcome == nil, now < .at(1000) {
            let deadline = machine.nextDeadline
            if let next = queue.first, deadline.map({ next.at <= $0 }) ?? true {
                queue.removeFirst()
                now = max(now, next.at)
                deliver(next.what)
            } else if let deadline {
                now = max(now, deadline)
                feed(.tick)
            } else {
                break
            }
        }
        // What is on its way still arrives.
        while let next = queue.first, next.at < now + .seconds(60) {
            queue.removeFirst()
            now = max(now, next.at)
            if case .toMachine = next.what { continue }
            deliver(next.what)
        }
    }

    private mutating func feed(_ event: TakeEvent) {
        let before = machine.phase
        let actions = machine.handle(event, now: now)
        if case .answered(let host, let take, .committed) = event, take == machine.record.settings.take,
            machine.phase == .starting
        {
            acknowledged.insert(host)
        }
        if before != .recording, machine.phase == .recording {
            for host in committed.keys where !acknowledged.contains(host) {
                violations.append("it began without the promise of \(host)")
            }
            if let start = machine.record.start, now < start { violations.append("it began before T0") }
        }
        for action in actions { perform(action) }
    }

    private mutating func perform(_ action: TakeAction) {
        guard let host = action.host else {
            if case .seal = action { post(.toMachine(.sealed), after: .seconds(1)) }
            return
        }
        var take = machine.record.settings.take
        switch action {
        case .arm: asked.insert(host)
        case .commit(_, let start, _):
            committed[host, default: 0] += 1
            if committed[host] != 1 { violations.append("\(host) was told to begin twice") }
            if calledOff.contains(host), take != machine.record.settings.spareTake {
                violations.append("\(host) was told to begin after it was called off")
            }
            if start - now < .milliseconds(700) { violations.append("T0 is too near") }
        case .abort(_, let of, _):
            take = of
            calledOff.insert(host)
        case .stop:
            if committed[host] == nil { violations.append("\(host) was told to stop and never to begin") }
        default: break
        }
        let step = step(action)
        let timeout = Interval.seconds(step == .arm ? 25 : step == .commit ? 1.2 : 2)
        let isDead = host == dead && now > .at(14)
        // A request is repeated inside the link: it is lost only when all its repetitions are.
        let isLost = isDead || Double.random(in: 0..<1, using: &random) < loss
        let delay = Interval.milliseconds(Int64.random(in: 1..<(step == .arm ? 3000 : 900), using: &random))
        if isLost {
            post(.toMachine(.answered(host, take: take, .failed(step, TakeFailure("no answer")))), after: timeout)
        } else {
            post(.toAgent(host, action, take), after: delay)
        }
    }

    private func step(_ action: TakeAction) -> TakeStep {
        switch action {
        case .commit: .commit
        case .chirp: .chirp
        case .stop: .stop
        case .abort: .abort
        case .ingest: .ingest
        default: .arm
        }
    }

    private mutating func deliver(_ delivery: Delivery) {
        switch delivery {
        case .toMachine(let event): feed(event)
        case .begins(let host, let start):
            guard var agent = agents[host], agent.start == start, !agent.isAborted else { return }
            agent.isRecording = true
            agents[host] = agent
            let event = TakeScenario.streaming(machine.record.settings.take)
            post(.toMachine(.happened(host, event)), after: .milliseconds(Int64.random(in: 1..<4000, using: &random)))
        case .stops(let host):
            guard agents[host]?.isRecording == true else { return }
            agents[host]?.isRecording = false
            agents[host]?.hasFinished = true
            if host != dead {
                post(
                    .toMachine(.happened(host, TakeScenario.finished(machine.record.settings))),
                    after: .milliseconds(50))
            }
        case .toAgent(let host, let action, let take): agentTakes(host, action, take)
        }
    }

    private mutating func agentTakes(_ host: HostID, _ action: TakeAction, _ take: UniqueID) {
        guard var agent = agents[host] else { return }
        var answer = TakeAnswer.aborted
        switch action {
        case .arm:
            if Int.random(in: 0..<20, using: &random) == 0 {
                answer = .failed(.arm, TakeFailure("camera not found", code: .deviceFailed))
            } else {
                (agent.isArmed, agent.isAborted) = (true, false)
                let canPlay = Int.random(in: 0..<8, using: &random) > 0
                answer = .armed(TakeScenario.report(take, canPlay: canPlay))
            }
        case .commit(_, let start, _):
            if now >= start || agent.isAborted || !agent.isArmed {
                answer = .failed(.commit, TakeFailure("too late", code: .tooLate))
            } else {
                agent.start = start
                answer = .committed
                post(.begins(host, start), at: start)
            }
        case .abort:
            (agent.isAborted, agent.isArmed, agent.isRecording) = (true, false, false)
            agent.wasReached = true
        case .stop(_, let at, _):
            agent.wasReached = true
            answer = .stopping
            post(.stops(host), at: max(at, now))
        case .chirp(_, let moment, _):
            answer = .chirped(
                ChirpReport(take: take, moment: moment, emitted: nil, source: .softwareFallback))
        case .ingest:
            agents[host] = agent
            let files = TakeScenario.files(machine.record.settings)
            post(.toMachine(.ingested(host, files)), after: .seconds(1))
            return
        default: break
        }
        agents[host] = agent
        let copies = Int.random(in: 0..<6, using: &random) == 0 ? 2 : 1
        for _ in 0..<copies {
            let delay = Interval.milliseconds(Int64.random(in: 1..<900, using: &random))
            post(.toMachine(.answered(host, take: take, answer)), after: delay)
        }
    }

    private mutating func post(_ what: Delivery, after delay: Interval) { post(what, at: now + delay) }

    private mutating func post(_ what: Delivery, at: Timestamp<RigTime>) {
        order += 1
        let place = queue.firstIndex { $0.at > at } ?? queue.endIndex
        queue.insert((at, order, what), at: place)
    }
}
