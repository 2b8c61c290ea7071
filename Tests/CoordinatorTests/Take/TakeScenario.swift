internal import Coordinator
internal import Protocol
internal import Timing

/// Helpers for takes in virtual time.
enum TakeScenario {
    static let hosts = ["ego", "left", "right"].map { HostID(unchecked: $0) }

    static func settings(
        policy: AbsencePolicy = .strict, duration: Interval? = .seconds(10), leader: String = "ego",
        isLeaderFixed: Bool = true, chirp: ChirpPreset = .ultrasonic, ingests: Bool = true
    ) -> TakeSettings {
        TakeSettings(
            take: UniqueID(unchecked: String(repeating: "a", count: 32)),
            spareTake: UniqueID(unchecked: String(repeating: "b", count: 32)),
            session: SessionID(unchecked: "pilot"), episode: EpisodeID(unchecked: "ep_20260411_152930_a1b2c3"),
            task: "pick cup", participant: "p01", hosts: hosts, leader: HostID(unchecked: leader),
            isLeaderFixed: isLeaderFixed, chirp: chirp, policy: policy, duration: duration, ingests: ingests)
    }

    static func stream(_ id: String, error: String? = nil) -> StreamOutcome {
        StreamOutcome(
            stream: StreamDescription(
                id: StreamID(unchecked: id), kind: .video, deviceKind: "emulated-camera", deviceIdentity: "x",
                label: "x",
                nominalRate: 30, capabilities: StreamCapabilities(producesFile: true), timestampSource: "x"),
            error: error)
    }

    static func report(
        _ take: UniqueID, canPlay: Bool = true, free: Int64 = 1 << 40, error: String? = nil
    ) -> ArmReport {
        ArmReport(
            take: take, streams: [stream("camera", error: error)], freeBytes: free, bytesPerSecond: 1_000_000,
            canPlayChirps: canPlay)
    }

    static func streaming(_ take: UniqueID) -> HostEvent {
        HostEvent(kind: .allStreaming, at: Timestamp(nanoseconds: 0), take: take)
    }

    static func finished(_ settings: TakeSettings, reason: String = "duration") -> HostEvent {
        HostEvent(
            kind: .takeFinished, at: Timestamp(nanoseconds: 0), take: settings.take,
            stop: StopReport(take: settings.take, episode: settings.episode, streams: [], reason: reason, errors: []))
    }

    static func files(_ settings: TakeSettings) -> FileList { FileList(episode: settings.episode, files: []) }
}

extension Timestamp<RigTime> {
    static func at(_ seconds: Double) -> Self { Timestamp(nanoseconds: 0) + .seconds(seconds) }
}

/// A machine with its clock, for scenarios told step by step.
struct TakeStage {
    var machine: TakeMachine
    var now = Timestamp<RigTime>.at(100)
    var log: [TakeAction] = []

    init(_ settings: TakeSettings) { machine = TakeMachine(settings: settings) }

    var settings: TakeSettings { machine.record.settings }

    @discardableResult
    mutating func send(_ event: TakeEvent) -> [TakeAction] {
        let actions = machine.handle(event, now: now)
        log += actions
        return actions
    }

    @discardableResult
    mutating func answer(_ host: HostID, _ answer: TakeAnswer) -> [TakeAction] {
        send(.answered(host, take: settings.take, answer))
    }

    /// Lets time pass, with a tick at each deadline.
    mutating func advance(to end: Timestamp<RigTime>) {
        while let next = machine.nextDeadline, next <= end {
            now = max(now, next)
            send(.tick)
        }
        now = max(now, end)
        send(.tick)
    }

    mutating func advance(by interval: Interval) { advance(to: now + interval) }

    /// All hosts there, armed, with good clocks.
    mutating func armAll() {
        send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts { send(.clock(host, bound: .microseconds(50))) }
        for host in TakeScenario.hosts { answer(host, .armed(TakeScenario.report(settings.take))) }
    }

    /// Up to the second after T0, with all streams delivering.
    mutating func record() {
        armAll()
        for host in TakeScenario.hosts { answer(host, .committed) }
        if let start = machine.record.start { advance(to: start + .milliseconds(100)) }
        for host in TakeScenario.hosts { send(.happened(host, TakeScenario.streaming(settings.take))) }
        for moment in [ChirpMoment.start] {
            answer(
                settings.leader,
                .chirped(
                    ChirpReport(take: settings.take, moment: moment, emitted: nil, source: .hardware, error: nil)))
        }
    }

    /// The bodies of actions of one kind.
    func count(_ isOne: (TakeAction) -> Bool) -> Int { log.filter(isOne).count }
}

extension TakeAction {
    var isAbort: Bool { if case .abort = self { true } else { false } }
    var isCommit: Bool { if case .commit = self { true } else { false } }
    var isStop: Bool { if case .stop = self { true } else { false } }
    var isArm: Bool { if case .arm = self { true } else { false } }
    var isIngest: Bool { if case .ingest = self { true } else { false } }

    var host: HostID? {
        switch self {
        case .arm(let host), .commit(let host, _, _), .chirp(let host, _, _), .stop(let host, _, _),
            .abort(let host, _, _), .ingest(let host):
            host
        default: nil
        }
    }
}
