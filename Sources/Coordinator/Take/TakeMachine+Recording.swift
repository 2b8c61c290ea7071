internal import Protocol
internal import Timing

// From T0 until every reachable host has closed its files.
extension TakeMachine {
    private var settings: TakeSettings { record.settings }

    /// Whether the leader can be asked for a chirp.
    private var canChirp: Bool {
        guard settings.chirp != .off, let leader = record[settings.leader] else { return false }
        return leader.phase.hasRecorded && leader.phase != .finished && leader.arm?.canPlayChirps != false
    }

    mutating func started(_ now: Timestamp<RigTime>) {
        guard phase == .starting, let start = record.start else { return }
        // The commits' deadline lies before T0 and is looked at first; so all have promised here.
        record.phase = .recording
        // A coordinator that is killed from here on left a journal that says who has begun.
        actions.append(.journal)
        deadlines[.streaming] = start + settings.timing.streamingTimeout
        if let duration = settings.duration { deadlines[.end] = start + duration - settings.timing.chirpLead }
        if settings.duration == nil { deadlines[.end] = start + settings.timing.limit }
        checkStreaming(now)
    }

    private mutating func checkStreaming(_ now: Timestamp<RigTime>) {
        guard phase == .recording, record.startChirp == nil, deadlines[.streaming] != nil else { return }
        let waiting = record.hosts.filter { $0.phase == .committed && !$0.isStreaming && lostSince[$0.host] == nil }
        guard waiting.isEmpty else { return }
        deadlines[.streaming] = nil
        playStartChirp(now)
    }

    mutating func streamingExpired(_ now: Timestamp<RigTime>) {
        guard phase == .recording, record.startChirp == nil else { return }
        for host in record.hosts where host.phase == .committed && !host.isStreaming {
            note(
                .warning, host.host,
                "not all its streams delivered within \(Int(settings.timing.streamingTimeout.seconds)) s after the start"
            )
        }
        playStartChirp(now)
    }

    private mutating func playStartChirp(_ now: Timestamp<RigTime>) {
        guard canChirp else {
            if settings.chirp != .off { note(.warning, nil, "there is no start chirp: the leader can't play it") }
            return
        }
        let at = max(now, record.start ?? now) + settings.timing.chirpLead
        record.startChirp = at
        actions.append(.chirp(settings.leader, .start, at: at))
        planTurns(after: at)
    }

    mutating func chirped(_ host: HostID, _ report: ChirpReport) {
        if report.moment == .turn { return turnPlayed(host, report) }
        guard report.take == settings.take, !record.chirps.contains(where: { $0.moment == report.moment }) else {
            return
        }
        record.chirps.append(report)
        if let error = report.error { return note(.warning, host, "the \(report.moment.rawValue) chirp: \(error)") }
        if report.source == .silent { note(.warning, host, "the \(report.moment.rawValue) chirp was silent") }
    }

    // MARK: What hosts say

    mutating func happened(_ host: HostID, _ event: HostEvent, _ now: Timestamp<RigTime>) {
        guard let known = record[host], event.take == nil || event.take == settings.take else { return }
        switch event.kind {
        case .allStreaming:
            // An event without a take may be of another one.
            guard event.take == settings.take else { return }
            change(host) { $0.isStreaming = true }
            checkStreaming(now)
        case .takeFinished:
            guard event.take == settings.take, known.hasCommitted else { return }
            hostFinished(host, event.stop, now)
        case .disarmed: disarmed(known, event.message, now)
        case .streamFailed, .diskLow:
            note(.error, host, stream(event))
        case .streamStalled, .samplesDropped, .clockStep, .suspended, .warning:
            note(.warning, host, stream(event))
        case .streamRecovered: note(.info, host, stream(event))
        case .stateChanged: break
        }
    }

    private func stream(_ event: HostEvent) -> String {
        let text = event.message.isEmpty ? event.kind.rawValue : event.message
        return event.stream.map { "stream \($0): \(text)" } ?? text
    }

    private mutating func disarmed(_ host: TakeHost, _ message: String, _ now: Timestamp<RigTime>) {
        let reason = message.isEmpty ? "it disarmed itself" : "it disarmed itself: \(message)"
        if host.phase == .aborting { return confirmedAbort(host.host) }
        let isBefore = phase == .arming || phase == .armed || phase == .starting
        guard isBefore, [.armed, .committing, .committed].contains(host.phase) else { return }
        abort("host \(host.host): \(reason)", isRefusal: false, now)
    }

    mutating func heard(_ host: HostID, _ status: HostStatus, _ now: Timestamp<RigTime>) {
        guard let known = record[host] else { return }
        if lostSince.removeValue(forKey: host) != nil, known.phase.hasRecorded {
            note(.info, host, "it is back")
        }
        if status.take == settings.take {
            // An event can be missed; what the streams say can't.
            let delivers = status.streams.filter { $0.state != .failed }
            if status.state == .recording, !delivers.isEmpty, delivers.allSatisfy({ $0.first != nil }) {
                change(host) { $0.isStreaming = true }
                checkStreaming(now)
            }
        } else if known.phase == .committed || known.phase == .stopping, phase == .recording || phase == .stopping,
            let start = record.start, now - start > .seconds(2),
            status.state == .connected || status.state == .idle
        {
            // It has ended while nobody listened.
            hostFinished(host, nil, now)
        }
    }

    mutating func lost(_ host: HostID, _ reason: String, _ now: Timestamp<RigTime>) {
        guard let known = record[host], lostSince[host] == nil else { return }
        lostSince[host] = now
        switch phase {
        case .arming:
            if known.phase == .arming || known.phase == .armed {
                armLost(known, reason, now)
            }
        case .armed: abort("host \(host): lost before the start: \(reason)", isRefusal: false, now)
        case .recording, .stopping:
            guard known.phase == .committed || known.phase == .stopping else { return }
            note(.error, host, "lost: \(reason); it goes on recording by itself")
            checkStreaming(now)
        case .starting: note(.warning, host, "lost before the start: \(reason)")
        default: break
        }
    }

    private mutating func armLost(_ host: TakeHost, _ reason: String, _ now: Timestamp<RigTime>) {
        change(host.host) { $0.phase = .arming }
        armFailed(host.host, TakeFailure("lost: \(reason)"), now)
    }

    mutating func returned(_ host: HostID, _ snapshot: HostSnapshot, _ now: Timestamp<RigTime>) {
        guard let known = record[host] else { return }
        lostSince[host] = nil
        for report in snapshot.chirps { chirped(host, report) }
        let here = snapshot.episodes.first { $0.take == settings.take || $0.episode == settings.episode }
        guard known.hasCommitted || (known.phase == .left && record.start != nil) else { return }
        let isRunning = snapshot.takeUnderWay == settings.take
        if isRunning {
            if known.phase == .left || known.phase == .finished { set(host, .committed) }
            if phase == .stopping, let stop = record.stop {
                actions.append(.stop(host, at: stop, reason: record.stopReason ?? "operator"))
            }
        } else if let here, here.progress != .recording {
            if here.progress == .recovered { note(.warning, host, "its agent was restarted during the take") }
            hostFinished(host, nil, now)
        }
    }

    // MARK: Stop

    mutating func stopRequested(_ reason: String, _ now: Timestamp<RigTime>) {
        switch phase {
        case .idle, .arming, .armed, .starting: abort("stopped before the start", isRefusal: false, now)
        case .recording: stop(reason: reason, now)
        case .stopping, .ingesting, .sealed, .aborted: break
        }
    }

    mutating func stop(reason: String, _ now: Timestamp<RigTime>) {
        record.phase = .stopping
        record.stopReason = reason
        deadlines[.end] = nil
        deadlines[.streaming] = nil
        let lead = settings.timing.chirpLead
        var stop = now + lead
        if canChirp, let spec = settings.startSpec {
            let length = Interval.seconds(spec.durationMilliseconds / 1000)
            // The two chirps never overlap.
            var at = now + lead
            if let first = record.startChirp { at = max(at, first + length + .milliseconds(200)) }
            // A sync server must not take a turn for the stop chirp.
            if let last = endTurns() { at = max(at, last + Self.turnDistance) }
            record.stopChirp = at
            stop = at + length + settings.timing.tail
            actions.append(.chirp(settings.leader, .stop, at: at))
        } else if settings.chirp != .off {
            note(.warning, nil, "there is no stop chirp: the leader can't play it")
        }
        record.stop = stop
        deadlines[.finish] = stop + settings.timing.finishTimeout
        for host in record.hosts where host.phase == .committed {
            actions.append(.stop(host.host, at: stop, reason: reason))
        }
        actions.append(.journal)
        checkFinished(now)
    }

    /// All hosts have stopped by themselves: at their limit, for a full disk, or since nobody commanded them.
    ///
    /// Nobody has set T1 then, and an instant of now would be a wrong one: the end stays unknown.
    private mutating func endedByThemselves(_ now: Timestamp<RigTime>) {
        record.phase = .stopping
        record.stopReason = "all hosts have stopped"
        deadlines[.end] = nil
        deadlines[.streaming] = nil
        deadlines[.finish] = now + settings.timing.finishTimeout
        actions.append(.journal)
        checkFinished(now)
    }

    mutating func stopFailed(_ host: HostID, _ failure: TakeFailure, _ now: Timestamp<RigTime>) {
        guard phase == .stopping, let known = record[host], known.phase == .committed || known.phase == .stopping else {
            return
        }
        if failure.code == .unknownTake { return hostFinished(host, nil, now) }
        again(host, now)
    }

    mutating func retry(_ host: HostID, _ now: Timestamp<RigTime>) {
        retries[host] = nil
        guard let known = record[host] else { return }
        if phase == .stopping, known.phase == .committed || known.phase == .stopping, let stop = record.stop {
            actions.append(.stop(host, at: stop, reason: record.stopReason ?? "operator"))
        } else if phase == .aborted, known.phase == .aborting {
            actions.append(.abort(host, take: settings.take, reason: abortReason?.text ?? "aborted"))
        }
    }

    // MARK: The end of the recording

    mutating func hostFinished(_ host: HostID, _ report: StopReport?, _ now: Timestamp<RigTime>) {
        guard let known = record[host] else { return }
        switch known.phase {
        case .committed, .stopping, .left: break
        case .finished, .ingesting, .ingested:
            if known.stop == nil, let report { change(host) { $0.stop = report } }
            return
        default: return
        }
        let isEarly = phase == .recording || phase == .starting
        change(host) {
            $0.phase = .finished
            $0.error = nil
            if let report { $0.stop = report }
        }
        retries[host] = nil
        if isEarly { note(.error, host, "it stopped by itself: \(report?.reason ?? "its agent was restarted")") }
        for error in report?.errors ?? [] { note(.warning, host, error) }
        let isRunning = record.hosts.contains { $0.phase == .committed || $0.phase == .stopping }
        if phase == .recording {
            if !isRunning { endedByThemselves(now) } else { checkStreaming(now) }
        } else if phase == .stopping {
            checkFinished(now)
        } else if phase == .ingesting {
            if skipsIngest { return }
            set(host, .ingesting)
            actions.append(.ingest(host))
        }
    }

    mutating func checkFinished(_ now: Timestamp<RigTime>) {
        guard phase == .stopping else { return }
        for host in record.hosts where host.phase == .committed || host.phase == .stopping {
            guard let lost = lostSince[host.host] else { return }
            guard graceEnd(lost) <= now else { return }
        }
        beginIngest(now)
    }

    mutating func finishExpired(_ now: Timestamp<RigTime>) {
        guard phase == .stopping else { return }
        beginIngest(now)
    }
}
