package import Protocol
package import Timing

/// The steps of a take that a host is asked for.
package enum TakeStep: String, Sendable, Hashable, CaseIterable {
    case arm, commit, chirp, stop, abort, ingest
}

/// Why a host didn't do what it was asked for.
package struct TakeFailure: Sendable, Hashable {
    /// One sentence, without the host's name.
    package var text: String
    /// Nil when no answer came at all.
    package var code: Refusal.Code?
    /// What is known of its streams; empty when nothing is.
    package var streams: [StreamOutcome]

    package init(_ text: String, code: Refusal.Code? = nil, streams: [StreamOutcome] = []) {
        self.text = text
        self.code = code
        self.streams = streams
    }
}

/// What a host answers.
package enum TakeAnswer: Sendable, Hashable {
    case armed(ArmReport)
    case committed
    case chirped(ChirpReport)
    case stopping
    case aborted
    case failed(TakeStep, TakeFailure)
}

/// What can happen to a take.
package enum TakeEvent: Sendable, Hashable {
    /// Begin, with the hosts that are connected now.
    case begin(present: [HostID])
    /// The bound of a host's clock now; nil when it isn't known.
    case clock(HostID, bound: Interval?)
    /// The answer to a request of this take id.
    case answered(HostID, take: UniqueID, TakeAnswer)
    case happened(HostID, HostEvent)
    case status(HostID, HostStatus)
    case lost(HostID, String)
    case returned(HostID, HostSnapshot)
    case stopRequested(String)
    /// Ctrl-C: the first one stops, the second one leaves the files where they are, the third one waits for nothing.
    case interrupted
    case ingested(HostID, FileList)
    case ingestFailed(HostID, String)
    /// What the microphones said to the sweeps of `checkSound`.
    case soundChecked(SoundFindings)
    case sealed
    case sealFailed(String)
    /// Time has passed.
    case tick
}

/// What the coordinator must do.
package enum TakeAction: Sendable, Hashable {
    case arm(HostID)
    /// Let the leader play quiet sweeps, and ask these hosts what they heard.
    case checkSound([HostID])
    /// Write the record to the disk before the actions that follow.
    case journal
    case commit(HostID, start: Timestamp<RigTime>, limit: Timestamp<RigTime>)
    case chirp(HostID, ChirpMoment, at: Timestamp<RigTime>)
    case stop(HostID, at: Timestamp<RigTime>, reason: String)
    case abort(HostID, take: UniqueID, reason: String)
    case ingest(HostID)
    case cancelIngest
    case seal
    case note(TakeNote)
    /// It is over; nothing follows.
    case end(TakeOutcome)
}

/// Decides the life of one take over all hosts; pure.
///
///     idle → arming → armed → starting → recording → stopping → ingesting → sealed | aborted
///
/// Each event comes with the time; `nextDeadline` says when a `tick` is needed. Answers may come late, twice or never.
package struct TakeMachine: Sendable {
    enum Deadline: Int, Sendable, Hashable, CaseIterable {
        case arming, sound, clocks, commits, start, streaming, turn, end, finish, abort
    }

    package internal(set) var record: TakeRecord
    /// Set once; then the machine is done.
    package internal(set) var outcome: TakeOutcome?

    var deadlines: [Deadline: Timestamp<RigTime>] = [:]
    /// When a host is asked again to stop or to abort.
    var retries: [HostID: Timestamp<RigTime>] = [:]
    /// Since when a host isn't reachable.
    var lostSince: [HostID: Timestamp<RigTime>] = [:]
    var bounds: [HostID: Interval] = [:]
    var hardware = SharedHardware()
    /// The take id that is being given back, to arm again with another leader.
    var released: UniqueID?
    var abortReason: (text: String, isRefusal: Bool)?
    var interruptions = 0
    var skipsIngest = false
    var actions: [TakeAction] = []

    package init(settings: TakeSettings) {
        record = TakeRecord(settings: settings)
        skipsIngest = !settings.ingests
    }

    package var phase: TakePhase { record.phase }

    /// When the machine wants to be told that time has passed; nil when it only waits for others.
    package var nextDeadline: Timestamp<RigTime>? {
        guard outcome == nil else { return nil }
        let graces = lostSince.values.map { graceEnd($0) }
        return (Array(deadlines.values) + Array(retries.values) + (phase == .stopping ? graces : [])).min()
    }

    /// Takes an event and gives back what to do, in order.
    package mutating func handle(_ event: TakeEvent, now: Timestamp<RigTime>) -> [TakeAction] {
        guard outcome == nil else { return [] }
        actions = []
        // What is due comes first: an answer after its deadline is late, even when nobody has looked at the clock.
        expire(now)
        if outcome == nil { take(event, now) }
        return actions
    }

    private mutating func take(_ event: TakeEvent, _ now: Timestamp<RigTime>) {
        switch event {
        case .begin(let present): begin(present, now)
        case .clock(let host, let bound):
            bounds[host] = bound
            if phase == .armed, deadlines[.sound] == nil { checkClocks(now, isLast: false) }
        case .soundChecked(let findings): soundChecked(findings, now)
        case .answered(let host, let take, let answer): answered(host, take, answer, now)
        case .happened(let host, let event): happened(host, event, now)
        case .status(let host, let status): heard(host, status, now)
        case .lost(let host, let reason): lost(host, reason, now)
        case .returned(let host, let snapshot): returned(host, snapshot, now)
        case .stopRequested(let reason): stopRequested(reason, now)
        case .interrupted: interrupted(now)
        case .ingested(let host, let files): ingested(host, files)
        case .ingestFailed(let host, let reason): ingestFailed(host, reason)
        case .sealed: sealed()
        case .sealFailed(let reason):
            guard phase == .ingesting else { return }
            note(.error, nil, "the episode can't be merged: \(reason)")
            finish(.sealFailed(reason))
        case .tick: break
        }
    }

    private mutating func answered(
        _ host: HostID, _ take: UniqueID, _ answer: TakeAnswer, _ now: Timestamp<RigTime>
    ) {
        guard record[host] != nil else { return }
        if take == released { return givenBack(host, answer, now) }
        guard take == record.settings.take else { return }
        lostSince[host] = nil
        switch answer {
        case .armed(let report): armed(host, report, now)
        case .committed: committed(host)
        case .chirped(let report): chirped(host, report)
        case .stopping:
            guard record[host]?.phase == .committed || record[host]?.phase == .stopping else { return }
            set(host, .stopping)
            // Who asks for the stop again gets the report again, should it have been lost.
            retries[host] = max(now, record.stop ?? now) + .seconds(2)
        case .aborted: confirmedAbort(host)
        case .failed(let step, let failure): failed(host, step, failure, now)
        }
    }

    private mutating func failed(
        _ host: HostID, _ step: TakeStep, _ failure: TakeFailure, _ now: Timestamp<RigTime>
    ) {
        switch step {
        case .arm: armFailed(host, failure, now)
        case .commit: commitFailed(host, failure, now)
        case .chirp: chirpFailed(host, failure)
        case .stop: stopFailed(host, failure, now)
        case .abort:
            // A host that knows nothing of the take has nothing to throw away.
            if failure.code != nil { confirmedAbort(host) } else { again(host, now) }
        case .ingest: ingestFailed(host, failure.text)
        }
    }

    private mutating func expire(_ now: Timestamp<RigTime>) {
        for deadline in Deadline.allCases {
            guard outcome == nil, let at = deadlines[deadline], at <= now else { continue }
            deadlines[deadline] = nil
            switch deadline {
            case .arming: armingExpired(now)
            case .sound: soundExpired(now)
            case .clocks: if phase == .armed { checkClocks(now, isLast: true) }
            case .commits: commitsExpired(now)
            case .start: started(now)
            case .streaming: streamingExpired(now)
            case .turn: turnDue(now)
            case .end: if phase == .recording { stop(reason: "duration", now) }
            case .finish: finishExpired(now)
            case .abort: abortExpired()
            }
        }
        guard outcome == nil else { return }
        for (host, at) in retries.sorted(by: { $0.key < $1.key }) where at <= now { retry(host, now) }
        if phase == .stopping { checkFinished(now) }
    }

    // MARK: Helpers

    /// Index loops keep the order of the hosts, so the same events always give the same actions.
    var participants: [TakeHost] { record.hosts.filter { $0.phase != .absent && $0.phase != .left } }

    mutating func set(_ host: HostID, _ phase: TakeHostPhase) { change(host) { $0.phase = phase } }

    mutating func change(_ host: HostID, _ body: (inout TakeHost) -> Void) {
        guard let index = record.hosts.firstIndex(where: { $0.host == host }) else { return }
        body(&record.hosts[index])
    }

    mutating func note(_ level: TakeNote.Level, _ host: HostID?, _ text: String) {
        let note = TakeNote(level, host: host, text)
        // The same thing may be heard several ways; and a take of days must not fill the memory.
        guard !record.notes.contains(note) else { return }
        if record.notes.count < 500 { record.notes.append(note) }
        actions.append(.note(note))
    }

    mutating func again(_ host: HostID, _ now: Timestamp<RigTime>) {
        retries[host] = now + record.settings.timing.repetition
    }

    mutating func finish(_ outcome: TakeOutcome) {
        self.outcome = outcome
        deadlines = [:]
        retries = [:]
        actions += [.journal, .end(outcome)]
    }

    func graceEnd(_ lost: Timestamp<RigTime>) -> Timestamp<RigTime> {
        max(lost, record.stop ?? lost) + record.settings.timing.lostGrace
    }
}
