package import Protocol
package import Timing

/// One host's turn to play both sweeps.
package struct TakeTurn: Codable, Sendable, Hashable {
    package var host: HostID
    package var at: Timestamp<RigTime>
    /// Whether the host was told.
    package var isCommanded = false
    package var report: ChirpReport?

    package init(host: HostID, at: Timestamp<RigTime>) {
        self.host = host
        self.at = at
    }

    private enum CodingKeys: String, CodingKey {
        case host = "host_id"
        case at = "at_ns"
        case isCommanded = "is_commanded"
        case report
    }
}

// Between the leader's two chirps each other host with a speaker plays both sweeps in a slot of its own, so that every
// host hears every other one, and clock and distance come apart.
extension TakeMachine {
    /// Between a turn and the leader's chirps: what looks for those must not take a turn for one.
    static let turnDistance = Interval.seconds(1)
    /// Between two turns: a room's echo is over by then.
    static let turnPause = Interval.milliseconds(600)

    private var turnLength: Interval {
        record.settings.startSpec.map { ChirpMoment.turn.length(of: $0) } ?? .zero
    }

    /// Gives each host its slot; those that don't fit before the end of the take have none.
    mutating func planTurns(after start: Timestamp<RigTime>) {
        guard record.settings.playsTurns == true, let spec = record.settings.startSpec else { return }
        let last = record.settings.duration.flatMap { duration in
            record.start.map { $0 + duration - Self.turnDistance - turnLength }
        }
        var at = start + ChirpMoment.start.length(of: spec) + Self.turnDistance
        var turns: [TakeTurn] = []
        for host in record.hosts where host.host != record.settings.leader && host.phase == .committed {
            guard host.arm?.canPlayChirps == true else { continue }
            if let last, at > last { break }
            turns.append(TakeTurn(host: host.host, at: at))
            at = at + turnLength + Self.turnPause
        }
        record.turns = turns
        awaitTurn()
    }

    private mutating func awaitTurn() {
        let next = record.turns?.first { !$0.isCommanded }
        deadlines[.turn] = next.map { $0.at - record.settings.timing.chirpLead }
    }

    mutating func turnDue(_ now: Timestamp<RigTime>) {
        guard phase == .recording, var turns = record.turns, let index = turns.firstIndex(where: { !$0.isCommanded })
        else { return }
        let turn = turns[index]
        // Who isn't there, or whose slot was slept through, would play into another's.
        let isThere = record[turn.host]?.phase == .committed && lostSince[turn.host] == nil
        if isThere, turn.at >= now {
            turns[index].isCommanded = true
            actions.append(.chirp(turn.host, .turn, at: turn.at))
        } else {
            turns.remove(at: index)
        }
        record.turns = turns
        awaitTurn()
    }

    /// No more turns; gives back when the last one that was told is over.
    mutating func endTurns() -> Timestamp<RigTime>? {
        deadlines[.turn] = nil
        record.turns?.removeAll { !$0.isCommanded }
        return record.turns?.map { $0.at + turnLength }.max()
    }

    mutating func turnPlayed(_ host: HostID, _ report: ChirpReport) {
        guard report.take == record.settings.take,
            let index = record.turns?.firstIndex(where: { $0.host == host && $0.report == nil })
        else { return }
        record.turns?[index].report = report
        if let error = report.error { return note(.warning, host, "its turn to play: \(error)") }
        if report.source == .silent { note(.warning, host, "its turn to play was silent") }
    }

    mutating func chirpFailed(_ host: HostID, _ failure: TakeFailure) {
        let what = host == record.settings.leader ? "the chirp wasn't played" : "its turn wasn't played"
        note(.warning, host, "\(what): \(failure.text)")
    }
}
