package import Protocol
package import Timing

/// One take on this host, decided purely: events in, an answer and actions out.
///
/// `arming → armed → committed → recording → stopping → finished`; before T0 it can be aborted at any moment. Every
/// command can be repeated and is answered the same; a command for another take is refused in words. All instants are
/// host time.
package struct TakeMachine: Sendable, Hashable {
    /// A commit needs at least this much time before T0, for opening the gate.
    package static let leastLead = Interval.milliseconds(5)
    /// A commit further ahead is a wrong clock.
    package static let farthestLead = Interval.seconds(3600)
    /// No take is longer.
    package static let longestTake = Interval.seconds(7 * 86_400)
    /// A stop needs this much time, so that every gate closes at the same instant.
    package static let stopLead = Interval.milliseconds(10)
    /// An abort that comes this early after T0 still belongs to the start, and leaves nothing.
    package static let startWindow = Interval.seconds(5)
    /// A speaker is told this long before the instant of a sound: a sound card has to run before it.
    package static let chirpNotice = Interval.milliseconds(700)
    /// The stop chirp lasts 500 ms and needs 800 ms behind it.
    package static let chirpLead = Interval.milliseconds(1300)

    package enum Phase: Sendable, Hashable {
        case none
        /// The devices are being opened.
        case arming(TakePlan)
        case armed(TakePlan, ArmReport, until: Timestamp<HostTime>)
        /// The folder is being made, or T0 is awaited.
        case committed(TakePlan, Commit, report: ArmReport, isPrepared: Bool)
        case recording(TakePlan, Commit, report: ArmReport)
        case stopping(TakePlan, Commit, report: ArmReport)
        case finished(TakePlan, Commit, StopReport)
    }

    package enum Event: Sendable, Hashable {
        case arm(TakePlan)
        case opened(take: UniqueID, Result<ArmReport, Refusal>)
        case commit(Commit)
        case prepared(take: UniqueID, failure: Refusal?)
        case abort(TakeReference)
        case chirp(ChirpCommand)
        case stop(StopCommand)
        /// End it from within: the disk, a signal, no stream left.
        case halt(reason: String)
        case finished(StopReport)
        /// An instant that was waited for may have come.
        case tick
    }

    package enum Action: Sendable, Hashable {
        /// Open the devices; then `opened`.
        case open(TakePlan)
        /// Make the folder and the files, and let the gate open at T0; then `prepared`.
        case prepare(TakePlan, Commit)
        /// T0 has come: write the anchor.
        case begin(TakePlan, Commit)
        /// The gate closes at this instant, unless told otherwise.
        case closeGate(at: Timestamp<HostTime>)
        case play(ChirpMoment, at: Timestamp<HostTime>)
        /// T1 has come: close all files; then `finished`.
        case end(TakePlan, Commit, at: Timestamp<HostTime>, reason: String)
        /// Stop the devices' delivery; what was prepared is removed.
        case disarm(TakePlan, hasFolder: Bool, reason: String)
    }

    /// What is answered to a command.
    package enum Answer: Sendable, Hashable {
        case message(Message)
        /// When `opened` comes.
        case whenArmed
        /// When `prepared` comes.
        case whenCommitted
        /// When the chirp has been played.
        case whenChirped(ChirpMoment)
        /// The event wasn't a command.
        case none
    }

    package struct Outcome: Sendable, Hashable {
        package var answer: Answer
        package var actions: [Action] = []

        package init(_ answer: Answer, _ actions: [Action] = []) {
            self.answer = answer
            self.actions = actions
        }

        static func refuse(_ code: Refusal.Code, _ words: String) -> Outcome {
            Outcome(.message(.refused(Refusal(code, words))))
        }
    }

    package struct End: Sendable, Hashable {
        package var at: Timestamp<HostTime>
        package var reason: String
    }

    /// A take that ended without files, and how.
    struct Gone: Sendable, Hashable {
        let take: UniqueID
        let words: String
    }

    package let host: HostID
    package internal(set) var phase = Phase.none
    /// When the gate closes, and why.
    package internal(set) var end: End?
    /// Chirps that were commanded or begun.
    package internal(set) var chirps: Set<ChirpMoment> = []
    /// The newest 64.
    private var gone: [Gone] = []

    package init(host: HostID) { self.host = host }

    /// The take that is under way or finished last.
    package var plan: TakePlan? {
        switch phase {
        case .none: nil
        case .arming(let plan), .armed(let plan, _, _), .committed(let plan, _, _, _), .recording(let plan, _, _),
            .stopping(let plan, _, _), .finished(let plan, _, _):
            plan
        }
    }

    package var commit: Commit? {
        switch phase {
        case .none, .arming, .armed: nil
        case .committed(_, let commit, _, _), .recording(_, let commit, _), .stopping(_, let commit, _),
            .finished(_, let commit, _):
            commit
        }
    }

    /// Whether a take is under way.
    package var isBusy: Bool {
        switch phase {
        case .none, .finished: false
        default: true
        }
    }

    /// When `tick` is due next.
    package var deadline: Timestamp<HostTime>? {
        switch phase {
        case .none, .arming, .stopping, .finished: nil
        case .armed(_, _, let until): until
        case .committed(_, let commit, _, let isPrepared): isPrepared ? commit.start : nil
        case .recording: ownChirp.map { min($0 - Self.chirpNotice, end?.at ?? $0) } ?? end?.at
        }
    }

    /// When the leader plays the stop chirp by itself: only when nobody has told it when to stop.
    private var ownChirp: Timestamp<HostTime>? {
        guard case .recording(let plan, let commit, _) = phase, plan.role == .leader, plan.chirp != .off,
            !chirps.contains(.stop), end?.reason == Self.limitReason
        else { return nil }
        let at = commit.limit - Self.chirpLead
        return at > commit.start ? at : nil
    }

    static let limitReason = "limit"

    package mutating func handle(_ event: Event, at now: Timestamp<HostTime>) -> Outcome {
        // What is due by the clock comes before what is told.
        var due: [Action] = []
        while let instant = deadline, instant <= now {
            let before = self
            due += pass(instant, at: now)
            if before == self { break }
        }
        var outcome = take(event, at: now)
        outcome.actions = due + outcome.actions
        return outcome
    }

    private mutating func take(_ event: Event, at now: Timestamp<HostTime>) -> Outcome {
        switch event {
        case .arm(let plan): arm(plan)
        case .opened(let take, let result): opened(take, result, at: now)
        case .commit(let commit): self.commit(commit, at: now)
        case .prepared(let take, let failure): prepared(take, failure, at: now)
        case .abort(let reference): abort(reference, at: now)
        case .chirp(let command): chirp(command)
        case .stop(let command): stop(command, at: now)
        case .halt(let reason): halt(reason, at: now)
        case .finished(let report): finished(report)
        case .tick: Outcome(.none)
        }
    }

    /// An instant that was waited for has come.
    mutating func pass(_ instant: Timestamp<HostTime>, at now: Timestamp<HostTime>) -> [Action] {
        switch phase {
        case .armed(let plan, _, _):
            let words = "it was disarmed, since no commit came within \(plan.armTimeout.seconds) s"
            return leave(plan, hasFolder: false, words)
        case .committed(let plan, let commit, let report, _):
            phase = .recording(plan, commit, report: report)
            return [.begin(plan, commit)]
        case .recording(let plan, let commit, let report):
            if let at = ownChirp, at - Self.chirpNotice <= now, end.map({ at <= $0.at }) ?? true {
                chirps.insert(.stop)
                return [.play(.stop, at: max(at, now))]
            }
            guard let end, end.at <= now else { return [] }
            phase = .stopping(plan, commit, report: report)
            return [.end(plan, commit, at: end.at, reason: end.reason)]
        case .none, .arming, .stopping, .finished: return []
        }
    }

    // MARK: What the commands share

    mutating func leave(_ plan: TakePlan, hasFolder: Bool, _ words: String) -> [Action] {
        phase = .none
        end = nil
        chirps = []
        remember(plan.take, words)
        return [.disarm(plan, hasFolder: hasFolder, reason: words)]
    }

    mutating func remember(_ take: UniqueID, _ words: String) {
        gone.removeAll { $0.take == take }
        gone.append(Gone(take: take, words: words))
        if gone.count > 64 { gone.removeFirst() }
    }

    func words(of take: UniqueID) -> String? { gone.last { $0.take == take }?.words }

    func name(_ take: UniqueID) -> String { "take \(take.rawValue.prefix(8))" }

    /// Why a command for a take isn't possible now.
    func unknown(_ take: UniqueID, doing: Message.Kind) -> Outcome {
        let words: String
        if let gone = self.words(of: take) {
            words = gone
        } else if let plan, plan.take != take {
            words = "this host has \(name(plan.take)) (\(plan.episode)), which is \(stateWord)"
        } else {
            words = "this host isn't armed for it"
        }
        return .refuse(.unknownTake, "host \(host): '\(doing.rawValue)' of \(name(take)) is refused: \(words)")
    }

    var stateWord: String {
        switch phase {
        case .none: "ended"
        case .arming: "being armed"
        case .armed: "armed"
        case .committed: "about to start"
        case .recording: "recording"
        case .stopping: "being stopped"
        case .finished: "finished"
        }
    }
}
