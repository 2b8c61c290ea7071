internal import Protocol
package import Timing

// From the last closed file to the seal.
extension TakeMachine {
    mutating func beginIngest(_ now: Timestamp<RigTime>) {
        deadlines = [:]
        retries = [:]
        record.phase = .ingesting
        for host in record.hosts where host.phase == .committed || host.phase == .stopping {
            change(host.host) {
                $0.phase = .left
                $0.error = "it wasn't heard at the end of the take; its files stay there"
            }
            note(
                .error, host.host,
                "it wasn't heard at the end of the take; run 'downbeat ingest \(record.settings.episode)' when it is back"
            )
        }
        actions.append(.journal)
        if skipsIngest { return leaveFiles() }
        for host in record.hosts where host.phase == .finished {
            set(host.host, .ingesting)
            actions.append(.ingest(host.host))
        }
        checkIngested()
    }

    mutating func ingested(_ host: HostID, _ files: FileList) {
        guard phase == .ingesting, record[host]?.phase == .ingesting else { return }
        change(host) {
            $0.phase = .ingested
            $0.files = files
            $0.error = nil
        }
        actions.append(.journal)
        checkIngested()
    }

    mutating func ingestFailed(_ host: HostID, _ reason: String) {
        guard phase == .ingesting, record[host]?.phase == .ingesting else { return }
        change(host) {
            $0.phase = .finished
            $0.error = reason
        }
        note(.error, host, reason)
        checkIngested()
    }

    private mutating func checkIngested() {
        guard phase == .ingesting, !record.hosts.contains(where: { $0.phase == .ingesting }) else { return }
        let missing = record.hosts.filter { $0.phase == .finished || ($0.phase == .left && $0.hasCommitted) }
        guard missing.isEmpty, record.hosts.contains(where: { $0.phase == .ingested }) else {
            return finish(skipsIngest ? .notIngested : .incomplete(missing.map(\.host)))
        }
        actions.append(.seal)
    }

    mutating func sealed() {
        guard phase == .ingesting else { return }
        record.phase = .sealed
        finish(.sealed)
    }

    // MARK: Ctrl-C

    mutating func interrupted(_ now: Timestamp<RigTime>) {
        interruptions += 1
        switch phase {
        case .idle, .arming, .armed, .starting, .recording: stopRequested("operator", now)
        case .stopping:
            if interruptions >= 3 {
                let running = record.hosts.filter { $0.phase == .committed || $0.phase == .stopping }.map(\.host)
                skipsIngest = true
                return finish(running.isEmpty ? .notIngested : .incomplete(running))
            }
            skipsIngest = true
            note(.warning, nil, "the files will stay on the hosts; they are being closed")
        case .ingesting: leaveFiles()
        case .aborted: if interruptions >= 2 { abortExpired() }
        case .sealed: break
        }
    }

    private mutating func leaveFiles() {
        skipsIngest = true
        for host in record.hosts where host.phase == .ingesting { set(host.host, .finished) }
        actions.append(.cancelIngest)
        let left = record.hosts.filter { $0.phase == .left && $0.hasCommitted }
        finish(left.isEmpty ? .notIngested : .incomplete(left.map(\.host)))
    }
}

extension TakeMachine {
    /// Goes on with a take that another process began: what is known is the journal's, and the hosts will say the rest.
    ///
    /// `ingests`: whether its files are wanted, whatever the first process wanted.
    package init(resuming record: TakeRecord, ingests: Bool, now: Timestamp<RigTime>) {
        self.init(settings: record.settings)
        self.record = record
        skipsIngest = !ingests
        for index in self.record.hosts.indices {
            switch self.record.hosts[index].phase {
            case .ingesting: self.record.hosts[index].phase = .finished
            case .committing:
                self.record.hosts[index].hasCommitted = true
                self.record.hosts[index].phase = .committed
            case .armed, .arming: self.record.hosts[index].phase = .left
            default: break
            }
        }
        switch record.phase {
        case .starting, .recording:
            self.record.phase = .recording
            for host in self.record.hosts where host.phase == .committed { lostSince[host.host] = now }
        case .stopping:
            for host in self.record.hosts where host.phase == .committed || host.phase == .stopping {
                lostSince[host.host] = now
            }
            deadlines[.finish] = max(now, record.stop ?? now) + record.settings.timing.finishTimeout
        default: break
        }
    }

    /// Begins to bring the files of a finished take home.
    package mutating func resumeIngest(now: Timestamp<RigTime>) -> [TakeAction] {
        guard outcome == nil else { return [] }
        actions = []
        beginIngest(now)
        return actions
    }
}
