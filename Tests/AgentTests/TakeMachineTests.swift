internal import Protocol
internal import Testing
internal import Timing

@testable internal import Agent

struct TakeMachineTests {
    static let host = HostID(unchecked: "left")
    static let ours = UniqueID(unchecked: String(repeating: "a", count: 32))
    static let theirs = UniqueID(unchecked: String(repeating: "b", count: 32))

    static func at(_ seconds: Double) -> Timestamp<HostTime> { Timestamp(nanoseconds: 0) + .seconds(seconds) }

    static func plan(_ take: UniqueID = ours, role: HostRole = .leader, chirp: ChirpPreset = .ultrasonic) -> TakePlan {
        TakePlan(
            take: take, session: SessionID(unchecked: "s"), episode: EpisodeID(unchecked: "ep_20260101_000000_abcdef"),
            task: "", participant: "", role: role, leader: host, chirp: chirp, policy: .strict, reserveBytes: 0,
            startTimeout: .seconds(5), armTimeout: .seconds(30))
    }

    static let report = ArmReport(take: ours, streams: [], freeBytes: 1, bytesPerSecond: 1, canPlayChirps: true)
    /// T0 at 110 s, limit at 170 s.
    static let commit = Commit(take: ours, start: at(110), bound: .zero, limit: at(170))
    static let stopReport = StopReport(
        take: ours, episode: EpisodeID(unchecked: "ep_20260101_000000_abcdef"), streams: [], reason: "operator",
        errors: [])

    /// The time at which the events of the table come in, by phase.
    private static let now: [String: Double] = [
        "none": 100, "arming": 100, "armed": 105, "preparing": 106, "committed": 106, "recording": 130,
        "stopping": 151, "finished": 160,
    ]

    static func machine(_ phase: String, role: HostRole = .leader, chirp: ChirpPreset = .ultrasonic) -> TakeMachine {
        var machine = TakeMachine(host: host)
        let order = ["none", "arming", "armed", "preparing", "committed", "recording", "stopping", "finished"]
        guard let end = order.firstIndex(of: phase) else { return machine }
        for step in order[...end] {
            switch step {
            case "arming": _ = machine.handle(.arm(plan(role: role, chirp: chirp)), at: at(100))
            case "armed": _ = machine.handle(.opened(take: ours, .success(report)), at: at(101))
            case "preparing": _ = machine.handle(.commit(commit), at: at(105))
            case "committed": _ = machine.handle(.prepared(take: ours, failure: nil), at: at(105.1))
            case "recording": _ = machine.handle(.tick, at: at(110))
            case "stopping":
                _ = machine.handle(.stop(StopCommand(take: ours, stop: at(150), reason: "operator")), at: at(140))
                _ = machine.handle(.tick, at: at(150))
            case "finished": _ = machine.handle(.finished(stopReport), at: at(152))
            default: break
            }
        }
        return machine
    }

    private static func event(_ name: String, at now: Timestamp<HostTime>) -> TakeMachine.Event? {
        switch name {
        case "arm": .arm(plan())
        case "armOther": .arm(plan(theirs))
        case "commit": .commit(commit)
        case "commitOther": .commit(Commit(take: theirs, start: at(200), bound: .zero, limit: at(260)))
        case "abort": .abort(TakeReference(take: ours, reason: "why"))
        case "abortOther": .abort(TakeReference(take: theirs, reason: "why"))
        case "chirp": .chirp(ChirpCommand(take: ours, moment: .start, at: now + .milliseconds(200)))
        case "stop": .stop(StopCommand(take: ours, stop: max(now, at(110)) + .seconds(5), reason: "operator"))
        case "stopOther": .stop(StopCommand(take: theirs, stop: at(190), reason: "operator"))
        case "halt": .halt(reason: "disk")
        case "tick": .tick
        default: nil
        }
    }

    private static func word(_ phase: TakeMachine.Phase) -> String {
        switch phase {
        case .none: "none"
        case .arming: "arming"
        case .armed: "armed"
        case .committed(_, _, _, let isPrepared): isPrepared ? "committed" : "preparing"
        case .recording: "recording"
        case .stopping: "stopping"
        case .finished: "finished"
        }
    }

    private static func word(_ answer: TakeMachine.Answer) -> String {
        switch answer {
        case .message(.refused(let refusal)): refusal.code.rawValue
        case .message(let message): message.kind.rawValue
        case .whenArmed: "later"
        case .whenCommitted: "later"
        case .whenChirped: "later"
        case .none: "-"
        }
    }

    private static func word(_ action: TakeMachine.Action) -> String {
        switch action {
        case .open: "open"
        case .prepare: "prepare"
        case .begin: "begin"
        case .closeGate: "gate"
        case .play: "play"
        case .end: "end"
        case .disarm(_, let hasFolder, _): hasFolder ? "discard" : "disarm"
        }
    }

    /// phase, event, answer, actions, phase after it.
    static let table = """
        none       arm          later               open      arming
        none       armOther     later               open      arming
        none       commit       unknown_take        -         none
        none       commitOther  unknown_take        -         none
        none       abort        aborted             -         none
        none       abortOther   aborted             -         none
        none       chirp        unknown_take        -         none
        none       stop         unknown_take        -         none
        none       stopOther    unknown_take        -         none
        none       halt         -                   -         none
        none       tick         -                   -         none
        arming     arm          later               -         arming
        arming     armOther     invalid_transition  -         arming
        arming     commit       invalid_transition  -         arming
        arming     commitOther  unknown_take        -         arming
        arming     abort        aborted             disarm    none
        arming     abortOther   unknown_take        -         arming
        arming     chirp        invalid_transition  -         arming
        arming     stop         invalid_transition  -         arming
        arming     stopOther    unknown_take        -         arming
        arming     halt         -                   disarm    none
        arming     tick         -                   -         arming
        armed      arm          armed               -         armed
        armed      armOther     invalid_transition  -         armed
        armed      commit       later               prepare   preparing
        armed      commitOther  unknown_take        -         armed
        armed      abort        aborted             disarm    none
        armed      abortOther   unknown_take        -         armed
        armed      chirp        invalid_transition  -         armed
        armed      stop         invalid_transition  -         armed
        armed      stopOther    unknown_take        -         armed
        armed      halt         -                   disarm    none
        armed      tick         -                   -         armed
        preparing  arm          armed               -         preparing
        preparing  armOther     invalid_transition  -         preparing
        preparing  commit       later               -         preparing
        preparing  commitOther  unknown_take        -         preparing
        preparing  abort        aborted             discard   none
        preparing  abortOther   unknown_take        -         preparing
        preparing  chirp        invalid_transition  -         preparing
        preparing  stop         stopping            gate      preparing
        preparing  stopOther    unknown_take        -         preparing
        preparing  halt         -                   discard   none
        preparing  tick         -                   -         preparing
        committed  arm          armed               -         committed
        committed  armOther     invalid_transition  -         committed
        committed  commit       committed           -         committed
        committed  commitOther  unknown_take        -         committed
        committed  abort        aborted             discard   none
        committed  abortOther   unknown_take        -         committed
        committed  chirp        later               play      committed
        committed  stop         stopping            gate      committed
        committed  stopOther    unknown_take        -         committed
        committed  halt         -                   discard   none
        committed  tick         -                   -         committed
        recording  arm          armed               -         recording
        recording  armOther     invalid_transition  -         recording
        recording  commit       committed           -         recording
        recording  commitOther  unknown_take        -         recording
        recording  abort        aborted             gate      recording
        recording  abortOther   unknown_take        -         recording
        recording  chirp        later               play      recording
        recording  stop         stopping            gate      recording
        recording  stopOther    unknown_take        -         recording
        recording  halt         -                   gate      recording
        recording  tick         -                   -         recording
        stopping   arm          armed               -         stopping
        stopping   armOther     invalid_transition  -         stopping
        stopping   commit       committed           -         stopping
        stopping   commitOther  unknown_take        -         stopping
        stopping   abort        invalid_transition  -         stopping
        stopping   abortOther   unknown_take        -         stopping
        stopping   chirp        invalid_transition  -         stopping
        stopping   stop         stopping            -         stopping
        stopping   stopOther    unknown_take        -         stopping
        stopping   halt         -                   -         stopping
        stopping   tick         -                   -         stopping
        finished   arm          invalid_transition  -         finished
        finished   armOther     later               open      arming
        finished   commit       committed           -         finished
        finished   commitOther  unknown_take        -         finished
        finished   abort        invalid_transition  -         finished
        finished   abortOther   aborted             -         finished
        finished   chirp        invalid_transition  -         finished
        finished   stop         stopping            -         finished
        finished   stopOther    unknown_take        -         finished
        finished   halt         -                   -         finished
        finished   tick         -                   -         finished
        """

    @Test("each event in each phase, and the same again", arguments: table.split(separator: "\n").map(String.init))
    func row(_ line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let now = Self.at(try #require(Self.now[words[0]]))
        let event = try #require(Self.event(words[1], at: now))
        var machine = Self.machine(words[0])
        #expect(Self.word(machine.phase) == words[0])
        let outcome = machine.handle(event, at: now)
        #expect(Self.word(outcome.answer) == words[2])
        #expect(outcome.actions.map(Self.word).joined(separator: ",") == (words[3] == "-" ? "" : words[3]))
        #expect(Self.word(machine.phase) == words[4])
        if case .message(.refused(let refusal)) = outcome.answer {
            #expect(refusal.message.contains("host left"))
        }
        // Every command can be repeated: the same answer, and nothing is done twice.
        let again = machine.handle(event, at: now)
        let isSame =
            Self.word(again.answer) == words[2]
            || (words[1].hasPrefix("abort") && Self.word(again.answer) == "aborted")
        #expect(isSame)
        #expect(
            !again.actions.map(Self.word).contains { ["open", "prepare", "play", "disarm", "discard"].contains($0) })
    }

    @Test("an armed agent that hears no commit disarms itself, and then refuses that take")
    func armTimeout() {
        var machine = Self.machine("armed")
        // Armed at 101 s, for 30 s.
        #expect(machine.deadline == Self.at(131))
        #expect(machine.handle(.tick, at: Self.at(130.9)).actions.isEmpty)
        let outcome = machine.handle(.tick, at: Self.at(131))
        #expect(outcome.actions.map(Self.word) == ["disarm"])
        let late = machine.handle(.commit(Self.commit), at: Self.at(132))
        #expect(Self.word(late.answer) == "unknown_take")
        #expect(Self.word(machine.handle(.arm(Self.plan()), at: Self.at(132)).answer) == "invalid_transition")
    }

    @Test(
        "a commit needs time before T0",
        arguments: [(110.001, "too_late"), (109.996, "too_late"), (109.994, "later"), (120, "too_late")])
    func lead(_ now: Double, _ answer: String) {
        var machine = Self.machine("armed")
        #expect(Self.word(machine.handle(.commit(Self.commit), at: Self.at(now)).answer) == answer)
    }

    @Test("instants that can't be are refused")
    func wildCommits() {
        let extremes: [Commit] = [
            Commit(take: Self.ours, start: Self.at(110), bound: .zero, limit: Self.at(110)),
            Commit(take: Self.ours, start: Self.at(110), bound: .zero, limit: Timestamp(nanoseconds: .min)),
            Commit(take: Self.ours, start: Self.at(110), bound: .zero, limit: Timestamp(nanoseconds: .max)),
            Commit(
                take: Self.ours, start: Timestamp(nanoseconds: .max), bound: .zero, limit: Timestamp(nanoseconds: .max)),
            Commit(take: Self.ours, start: Timestamp(nanoseconds: .min), bound: .zero, limit: Self.at(120)),
        ]
        for commit in extremes {
            var machine = Self.machine("armed")
            let answer = Self.word(machine.handle(.commit(commit), at: Self.at(105)).answer)
            #expect(answer == "malformed" || answer == "too_late")
            #expect(Self.word(machine.phase) == "armed")
        }
    }

    @Test("files that can't be made, or are made too late, leave nothing")
    func preparation() {
        var machine = Self.machine("preparing")
        var outcome = machine.handle(.prepared(take: Self.ours, failure: Refusal(.diskFull, "full")), at: Self.at(106))
        #expect(Self.word(outcome.answer) == "disk_full")
        #expect(outcome.actions.map(Self.word) == ["discard"])
        machine = Self.machine("preparing")
        outcome = machine.handle(.prepared(take: Self.ours, failure: nil), at: Self.at(110.2))
        #expect(Self.word(outcome.answer) == "too_late")
        #expect(outcome.actions.map(Self.word) == ["discard"])
    }

    @Test("an abort right after T0 leaves nothing; later the take is ended and kept")
    func abortAfterStart() {
        var machine = Self.machine("recording")
        let reference = TakeMachine.Event.abort(TakeReference(take: Self.ours, reason: "a host was silent"))
        #expect(machine.handle(reference, at: Self.at(114.9)).actions.map(Self.word) == ["discard"])
        machine = Self.machine("recording")
        #expect(machine.handle(reference, at: Self.at(115.1)).actions.map(Self.word) == ["gate"])
        #expect(machine.handle(.tick, at: Self.at(115.2)).actions.map(Self.word) == ["end"])
    }

    @Test("without a coordinator the leader plays the stop chirp 1.3 s before the limit and ends there")
    func alone() {
        var machine = Self.machine("recording")
        // 170 s less 500 ms of chirp and 800 ms of tail; the speaker is told 700 ms before.
        #expect(machine.deadline == Self.at(168))
        #expect(machine.handle(.tick, at: Self.at(168)).actions == [.play(.stop, at: Self.at(168.7))])
        #expect(machine.deadline == Self.at(170))
        let outcome = machine.handle(.tick, at: Self.at(170))
        #expect(outcome.actions == [.end(Self.plan(), Self.commit, at: Self.at(170), reason: "limit")])
        #expect(Self.word(machine.phase) == "stopping")
    }

    @Test("a stop chirp that was commanded is not played twice, and a follower plays none")
    func chirpOnce() {
        var machine = Self.machine("recording")
        let command = ChirpCommand(take: Self.ours, moment: .stop, at: Self.at(160))
        #expect(machine.handle(.chirp(command), at: Self.at(159)).actions.map(Self.word) == ["play"])
        #expect(machine.deadline == Self.at(170))
        #expect(Self.machine("recording", role: .follower).deadline == Self.at(170))
        #expect(Self.machine("recording", chirp: .off).deadline == Self.at(170))
    }

    @Test("a stop moves the end to both sides of the limit, and may be moved again")
    func moving() {
        var machine = Self.machine("recording")
        for instant in [160.0, 200, 150] {
            let stop = StopCommand(take: Self.ours, stop: Self.at(instant), reason: "duration")
            #expect(machine.handle(.stop(stop), at: Self.at(130)).actions == [.closeGate(at: Self.at(instant))])
            #expect(machine.deadline == Self.at(instant))
        }
        // An instant that is past: as soon as all gates can close together, 10 ms from now.
        let late = StopCommand(take: Self.ours, stop: Self.at(120), reason: "duration")
        #expect(machine.handle(.stop(late), at: Self.at(130)).actions == [.closeGate(at: Self.at(130.01))])
    }

    @Test("a machine that slept over several instants does all of them in order")
    func overslept() {
        var machine = Self.machine("committed")
        let outcome = machine.handle(.tick, at: Self.at(1000))
        #expect(outcome.actions.map(Self.word) == ["begin", "play", "end"])
    }

    @Test("a late arm of a take that was aborted is refused")
    func lateArm() {
        var machine = TakeMachine(host: Self.host)
        _ = machine.handle(.abort(TakeReference(take: Self.ours, reason: "x")), at: Self.at(1))
        #expect(Self.word(machine.handle(.arm(Self.plan()), at: Self.at(2)).answer) == "invalid_transition")
        #expect(Self.word(machine.phase) == "none")
    }

    @Test("a refused arm may be tried again")
    func retry() {
        var machine = Self.machine("arming")
        _ = machine.handle(.opened(take: Self.ours, .failure(Refusal(.deviceFailed, "busy"))), at: Self.at(101))
        #expect(Self.word(machine.phase) == "none")
        #expect(Self.word(machine.handle(.arm(Self.plan()), at: Self.at(102)).answer) == "later")
    }
}
