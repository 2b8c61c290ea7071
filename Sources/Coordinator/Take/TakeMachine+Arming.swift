internal import Protocol
internal import Timing

// From the wish to record to T0: arm, the clocks, commit, and the abort of all when one doesn't follow.
extension TakeMachine {
    private var settings: TakeSettings { record.settings }
    private var isStrict: Bool { record.settings.policy == .strict }

    mutating func begin(_ present: [HostID], _ now: Timestamp<RigTime>) {
        guard phase == .idle else { return }
        record.phase = .arming
        let absent = record.hosts.map(\.host).filter { !present.contains($0) }
        for host in absent {
            change(host) { $0.error = "it was absent" }
            note(isStrict ? .error : .warning, host, "absent; is its agent running, and is it on this network?")
        }
        if isStrict && !absent.isEmpty {
            let names = absent.map(\.rawValue).joined(separator: ", ")
            return abort(
                "\(absent.count == 1 ? "host" : "hosts") \(names) \(absent.count == 1 ? "is" : "are") absent; start "
                    + "the agent there, or record without with --policy warn", isRefusal: true, now)
        }
        armAll(present.filter { record[$0] != nil }, now)
    }

    private mutating func armAll(_ hosts: [HostID], _ now: Timestamp<RigTime>) {
        deadlines[.arming] = now + settings.timing.startTimeout + .seconds(5)
        for host in hosts.sorted() {
            set(host, .arming)
            actions.append(.arm(host))
        }
        checkArmed(now)
    }

    mutating func armed(_ host: HostID, _ report: ArmReport, _ now: Timestamp<RigTime>) {
        guard phase == .arming, record[host]?.phase == .arming, report.take == settings.take else { return }
        change(host) {
            $0.phase = .armed
            $0.arm = report
        }
        hardware.note(report.streams, of: host)
        let level: TakeNote.Level = isStrict ? .error : settings.policy == .warn ? .warning : .info
        for problem in problems(report) { note(level, host, problem) }
        checkArmed(now)
    }

    /// What of a report stands against a take, one sentence each.
    private func problems(_ report: ArmReport) -> [String] { Self.problems(report, settings) }

    static func problems(_ report: ArmReport, _ settings: TakeSettings) -> [String] {
        var problems = report.streams.compactMap { outcome in
            outcome.error.map { "stream \(outcome.stream.id): \($0)" }
        }
        if report.streams.isEmpty { problems.append("it has no streams; add some to its agent.json5") }
        let seconds = max(settings.duration?.seconds ?? 60, 0)
        let needed = Double(report.bytesPerSecond) * seconds + Double(settings.reserveBytes)
        if Double(report.freeBytes) < needed {
            problems.append(
                "only \(ByteCount.text(report.freeBytes)) of disk left, and \(ByteCount.text(Int64(min(needed, 9e18)))) "
                    + "are needed; free some there, or lower the reserve")
        }
        return problems
    }

    mutating func armFailed(_ host: HostID, _ failure: TakeFailure, _ now: Timestamp<RigTime>) {
        guard phase == .arming, record[host]?.phase == .arming else { return }
        hardware.note(failure.streams, of: host)
        leave(host, "it didn't arm: \(failure.text)")
        // It may have armed, with its answer lost.
        actions.append(.abort(host, take: settings.take, reason: "its answer to 'arm' is missing"))
        checkArmed(now)
    }

    private mutating func leave(_ host: HostID, _ reason: String) {
        change(host) {
            $0.phase = .left
            $0.error = reason
        }
        note(isStrict ? .error : .warning, host, reason)
    }

    mutating func armingExpired(_ now: Timestamp<RigTime>) {
        guard phase == .arming else { return }
        if let old = released {
            // Who doesn't give the take back takes no part in the second try.
            released = nil
            for host in record.hosts where host.phase == .aborting {
                leave(host.host, "it didn't give back the take when the leader was changed")
                actions.append(.abort(host.host, take: old, reason: "the leader was changed"))
            }
            return armAll(record.hosts.filter { $0.phase == .aborted }.map(\.host), now)
        }
        for host in record.hosts where host.phase == .arming {
            leave(host.host, "its devices weren't open after \(Int(settings.timing.startTimeout.seconds)) s")
            actions.append(.abort(host.host, take: settings.take, reason: "it took too long"))
        }
        checkArmed(now)
    }

    private mutating func checkArmed(_ now: Timestamp<RigTime>) {
        guard phase == .arming, released == nil, !record.hosts.contains(where: { $0.phase == .arming }) else { return }
        deadlines[.arming] = nil
        let conflicts = hardware.conflicts
        for conflict in conflicts { note(isStrict ? .error : .warning, nil, "hosts \(conflict.text)") }
        if isStrict, let first = conflicts.first { return abort("hosts \(first.text)", isRefusal: true, now) }
        let armed = record.hosts.filter { $0.phase == .armed }
        guard !armed.isEmpty else {
            return abort(record.hosts.compactMap(\.error).first ?? "no host took part", isRefusal: true, now)
        }
        if isStrict {
            let reasons = record.hosts.flatMap { host -> [String] in
                if host.phase == .left { return ["host \(host.host): \(host.error ?? "it left")"] }
                return (host.arm.map { problems($0) } ?? []).map { "host \(host.host): \($0)" }
            }
            if let first = reasons.first {
                let more = reasons.count > 1 ? " (and \(reasons.count - 1) more)" : ""
                return abort("\(first)\(more)", isRefusal: true, now)
            }
        }
        checkLeader(armed, now)
    }

    private mutating func checkLeader(_ armed: [TakeHost], _ now: Timestamp<RigTime>) {
        let canPlay = armed.filter { $0.arm?.canPlayChirps == true }.map(\.host)
        if settings.chirp == .off || canPlay.contains(settings.leader) { return allArmed(now) }
        let other = canPlay.first
        // Only once: the spare id is used up by it.
        if !settings.isLeaderFixed, let other, settings.take != settings.spareTake {
            return giveBack(leader: other, armed.map(\.host), now)
        }
        let cure = other.map { "record with --leader \($0)" } ?? "give a host a speaker in its agent.json5"
        let problem = "host \(settings.leader) can't play the chirps; \(cure), or record with --chirp off"
        if isStrict { return abort(problem, isRefusal: true, now) }
        note(.warning, nil, problem)
        allArmed(now)
    }

    /// Takes the arming back everywhere, to arm again with a leader that has a speaker.
    private mutating func giveBack(leader: HostID, _ hosts: [HostID], _ now: Timestamp<RigTime>) {
        released = settings.take
        deadlines[.arming] = now + .seconds(5)
        for host in hosts {
            set(host, .aborting)
            actions.append(.abort(host, take: settings.take, reason: "host \(leader) will play the chirps"))
        }
        record.settings.take = settings.spareTake
        record.settings.leader = leader
    }

    mutating func givenBack(_ host: HostID, _ answer: TakeAnswer, _ now: Timestamp<RigTime>) {
        guard phase == .arming, record[host]?.phase == .aborting else { return }
        switch answer {
        case .aborted: set(host, .aborted)
        case .failed(.abort, let failure):
            guard failure.code != nil else { return }
            set(host, .aborted)
        default: return
        }
        guard !record.hosts.contains(where: { $0.phase == .aborting }) else { return }
        released = nil
        armAll(record.hosts.filter { $0.phase == .aborted }.map(\.host), now)
    }

    private mutating func allArmed(_ now: Timestamp<RigTime>) {
        record.phase = .armed
        let canPlay = record[settings.leader]?.phase == .armed && record[settings.leader]?.arm?.canPlayChirps == true
        guard settings.checksSound == true, settings.startSpec != nil, canPlay else { return awaitClocks(now) }
        deadlines[.sound] = now + .seconds(12)
        actions.append(.checkSound(record.hosts.filter { $0.phase == .armed }.map(\.host)))
    }

    // MARK: Sound

    /// A microphone that doesn't hear is told and holds nothing up: the network's clock aligns its host.
    mutating func soundChecked(_ findings: SoundFindings, _ now: Timestamp<RigTime>) {
        guard phase == .armed, deadlines[.sound] != nil else { return }
        deadlines[.sound] = nil
        for (host, problems) in findings.problems.sorted(by: { $0.key < $1.key }) {
            for problem in problems { note(.warning, host, problem) }
        }
        if let advice = findings.advice { note(.info, nil, advice) }
        awaitClocks(now)
    }

    mutating func soundExpired(_ now: Timestamp<RigTime>) {
        guard phase == .armed else { return }
        note(.warning, nil, "the sound check took too long; the take goes on without it")
        awaitClocks(now)
    }

    private mutating func awaitClocks(_ now: Timestamp<RigTime>) {
        deadlines[.clocks] = now + settings.timing.clockTimeout
        checkClocks(now, isLast: false)
    }

    // MARK: Clocks and commit

    mutating func checkClocks(_ now: Timestamp<RigTime>, isLast: Bool) {
        let limit = settings.timing.clockLimit
        let bad = record.hosts.filter { $0.phase == .armed && (bounds[$0.host].map { $0 > limit } ?? true) }
        if bad.isEmpty { return commit(now) }
        guard isLast else { return }
        for host in bad {
            let bound = bounds[host.host].map { "known to ±\(milliseconds($0)) ms only" } ?? "unknown"
            let text =
                "its clock is \(bound), and a take needs ±\(milliseconds(limit)) ms; is UDP to its clock port blocked, "
                + "or the network overloaded?"
            note(isStrict ? .error : .warning, host.host, text)
        }
        if isStrict {
            let names = bad.map(\.host.rawValue).joined(separator: ", ")
            return abort("the clock of \(names) isn't known well enough", isRefusal: true, now)
        }
        // A host whose clock is unknown can't be told when to begin.
        for host in bad where bounds[host.host] == nil {
            change(host.host) {
                $0.phase = .left
                $0.error = "its clock is unknown"
            }
            actions.append(.abort(host.host, take: settings.take, reason: "its clock is unknown"))
        }
        guard record.hosts.contains(where: { $0.phase == .armed }) else {
            return abort("no host's clock is known", isRefusal: true, now)
        }
        commit(now)
    }

    private func milliseconds(_ interval: Interval) -> String {
        let hundredths = (interval.magnitude.nanoseconds / 10_000).description
        let padded = String(repeating: "0", count: max(0, 3 - hundredths.count)) + hundredths
        return "\(padded.dropLast(2)).\(padded.suffix(2))"
    }

    private mutating func commit(_ now: Timestamp<RigTime>) {
        deadlines[.clocks] = nil
        record.phase = .starting
        let timing = settings.timing
        let start = now + max(timing.lead, .seconds(Double(settings.countdown)))
        let limit = start + (settings.duration ?? timing.limit) + timing.tail + timing.limitMargin
        record.start = start
        deadlines[.commits] = now + timing.lead - timing.commitMargin
        deadlines[.start] = start
        actions.append(.journal)
        for host in record.hosts where host.phase == .armed {
            let bound = bounds[host.host]
            change(host.host) {
                $0.phase = .committing
                $0.bound = bound
            }
            actions.append(.commit(host.host, start: start, limit: limit))
        }
    }

    mutating func committed(_ host: HostID) {
        guard phase == .starting, record[host]?.phase == .committing else { return }
        change(host) {
            $0.phase = .committed
            $0.hasCommitted = true
        }
        if !record.hosts.contains(where: { $0.phase == .committing }) { deadlines[.commits] = nil }
    }

    mutating func commitFailed(_ host: HostID, _ failure: TakeFailure, _ now: Timestamp<RigTime>) {
        guard phase == .starting, record[host]?.phase == .committing else { return }
        abort("host \(host): it refused to begin: \(failure.text)", isRefusal: false, now)
    }

    mutating func commitsExpired(_ now: Timestamp<RigTime>) {
        guard phase == .starting else { return }
        let silent = record.hosts.filter { $0.phase == .committing }.map(\.host.rawValue)
        guard !silent.isEmpty else { return }
        abort(
            "no promise to begin came in time from \(silent.joined(separator: ", ")); the take was called off on all "
                + "hosts", isRefusal: false, now)
    }

    // MARK: Abort

    /// Calls the take off everywhere it may have been heard of; it is over when all have confirmed, or have had time.
    mutating func abort(_ reason: String, isRefusal: Bool, _ now: Timestamp<RigTime>) {
        guard !phase.isFinal else { return }
        record.phase = .aborted
        abortReason = (reason, isRefusal)
        deadlines = [:]
        retries = [:]
        note(.error, nil, reason)
        let take = settings.take
        for host in record.hosts {
            switch host.phase {
            case .arming, .armed, .committing, .committed, .stopping, .aborting:
                set(host.host, .aborting)
                actions.append(.abort(host.host, take: take, reason: reason))
                if let released { actions.append(.abort(host.host, take: released, reason: reason)) }
            default: break
            }
        }
        actions.append(.journal)
        deadlines[.abort] = now + settings.timing.abortTimeout
        checkAborted()
    }

    mutating func confirmedAbort(_ host: HostID) {
        guard phase == .aborted, record[host]?.phase == .aborting else { return }
        set(host, .aborted)
        retries[host] = nil
        checkAborted()
    }

    private mutating func checkAborted() {
        guard let abortReason, !record.hosts.contains(where: { $0.phase == .aborting }) else { return }
        finish(.aborted(abortReason.text, isRefusal: abortReason.isRefusal))
    }

    mutating func abortExpired() {
        guard let abortReason else { return }
        for host in record.hosts where host.phase == .aborting {
            note(.error, host.host, "it didn't confirm that the take was called off; it does so by itself later")
        }
        finish(.aborted(abortReason.text, isRefusal: abortReason.isRefusal))
    }
}
