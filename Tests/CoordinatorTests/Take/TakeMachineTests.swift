internal import Coordinator
internal import Protocol
internal import Testing
internal import Timing

@Suite struct TakeMachineTests {
    private let ego = TakeScenario.hosts[0]
    private let left = TakeScenario.hosts[1]
    private let right = TakeScenario.hosts[2]

    @Test("a take of three hosts goes from arm to seal")
    func wholeTake() throws {
        var stage = TakeStage(TakeScenario.settings())
        stage.record()
        let start = try #require(stage.machine.record.start)
        // The lead is 1.5 s, and all were armed at 100 s.
        #expect(start == .at(101.5))
        #expect(stage.machine.phase == .recording)
        // All streamed 100 ms after T0; the chirp follows 400 ms later.
        #expect(stage.machine.record.startChirp == .at(102.0))
        stage.advance(to: start + .seconds(11))
        #expect(stage.machine.phase == .stopping)
        // The stop chirp is 10 s after T0; T1 is its 500 ms and 800 ms of tail later.
        #expect(stage.machine.record.stopChirp == .at(111.5))
        #expect(stage.machine.record.stop == .at(112.8))
        #expect(stage.count { $0.isStop } == 3)
        for host in TakeScenario.hosts { stage.answer(host, .stopping) }
        stage.advance(to: .at(113))
        for host in TakeScenario.hosts { stage.send(.happened(host, TakeScenario.finished(stage.settings))) }
        #expect(stage.count { $0.isIngest } == 3)
        for host in TakeScenario.hosts { stage.send(.ingested(host, TakeScenario.files(stage.settings))) }
        #expect(stage.log.last == .seal)
        stage.send(.sealed)
        #expect(stage.machine.outcome == .sealed)
        #expect(stage.log.contains(.end(.sealed)))
        #expect(stage.count { $0.isAbort } == 0)
        #expect(stage.machine.nextDeadline == nil)
    }

    @Test("two hosts that want one glove are both named, whichever of them has got it")
    func sharedHardware() {
        var stage = TakeStage(TakeScenario.settings())
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts { stage.send(.clock(host, bound: .microseconds(50))) }
        var glove = TakeScenario.stream("tactile")
        glove.hardware = "the glove C0:FF:EE:00:00:01"
        var report = TakeScenario.report(stage.settings.take)
        // Two streams of one glove on one host are none of the coordinator's business.
        report.streams += [glove, glove]
        stage.answer(ego, .armed(TakeScenario.report(stage.settings.take)))
        stage.answer(left, .armed(report))
        stage.answer(
            right, .failed(.arm, TakeFailure("the glove wasn't heard", code: .deviceFailed, streams: [glove])))
        #expect(stage.machine.phase == .aborted)
        let text = "\(stage.log)"
        #expect(
            text.contains("left (stream tactile) and right (stream tactile) both want the glove C0:FF:EE:00:00:01"),
            "\(text)")
    }

    @Test(
        "with a sound check the microphones are asked before the commit, and a deaf one is named without holding it up")
    func soundCheck() {
        var settings = TakeScenario.settings()
        settings.checksSound = true
        var stage = TakeStage(settings)
        stage.armAll()
        #expect(stage.log.contains(.checkSound(TakeScenario.hosts)))
        #expect(stage.machine.phase == .armed && stage.count { $0.isCommit } == 0)
        // A clock that is heard meanwhile doesn't commit either.
        stage.send(.clock(left, bound: .microseconds(40)))
        #expect(stage.count { $0.isCommit } == 0)
        let deaf = SoundCheckReport.Hearing(
            stream: StreamID(unchecked: "mic"), preset: .ultrasonic, isHeard: false, signalToNoise: -2, noise: -60)
        let reports = [ego: [], left: [], right: [deaf]].mapValues {
            SoundCheckReport(take: settings.take, hearings: $0)
        }
        stage.send(
            .soundChecked(SoundFindings(reports, leader: ego, preset: .ultrasonic, tried: [.ultrasonic])))
        #expect(stage.count { $0.isCommit } == 3)
        #expect("\(stage.log)".contains("microphone mic doesn't hear the ultrasonic sweep of host ego"))
    }

    @Test("a sound check that never ends is given up, and so is one that nobody could play for")
    func soundCheckExpires() {
        var settings = TakeScenario.settings()
        settings.checksSound = true
        var stage = TakeStage(settings)
        stage.armAll()
        stage.advance(by: .seconds(13))
        #expect(stage.count { $0.isCommit } == 3)
        settings.chirp = .off
        var silent = TakeStage(settings)
        silent.armAll()
        #expect(silent.count { $0.isCommit } == 3)
    }

    @Test("the journal is written before the first commit")
    func journalFirst() throws {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        let journal = try #require(stage.log.firstIndex(of: .journal))
        let commit = try #require(stage.log.firstIndex { $0.isCommit })
        #expect(journal < commit)
        #expect(stage.count { $0.isCommit } == 3)
    }

    @Test("one silent host calls the take off everywhere before T0")
    func silentCommit() throws {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        stage.answer(ego, .committed)
        stage.answer(left, .committed)
        let start = try #require(stage.machine.record.start)
        stage.advance(to: start - .milliseconds(200))
        #expect(stage.machine.phase == .aborted)
        #expect(Set(stage.log.filter { $0.isAbort }.compactMap(\.host)) == Set(TakeScenario.hosts))
        // An acknowledgement that comes after all changes nothing.
        stage.answer(right, .committed)
        stage.advance(to: start + .seconds(1))
        #expect(stage.machine.phase == .aborted)
        for host in TakeScenario.hosts { stage.answer(host, .aborted) }
        guard case .aborted(let reason, isRefusal: false) = stage.machine.outcome else {
            Issue.record("the outcome is \(String(describing: stage.machine.outcome))")
            return
        }
        #expect(reason.contains("right"))
    }

    @Test("an answer after the commits' deadline is late even when no tick came before it")
    func lateWithoutTick() throws {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        stage.answer(ego, .committed)
        stage.answer(left, .committed)
        stage.now = try #require(stage.machine.record.start) - .milliseconds(1)
        stage.answer(right, .committed)
        #expect(stage.machine.phase == .aborted)
    }

    @Test("a refused commit calls the take off")
    func refusedCommit() {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        stage.answer(ego, .committed)
        stage.answer(left, .failed(.commit, TakeFailure("too late", code: .tooLate)))
        #expect(stage.count { $0.isAbort } == 3)
        #expect(stage.machine.phase == .aborted)
    }

    @Test("an absent host refuses a strict take, and is left out of the others", arguments: AbsencePolicy.allCases)
    func absentHost(_ policy: AbsencePolicy) {
        var stage = TakeStage(TakeScenario.settings(policy: policy))
        stage.send(.begin(present: [ego, left]))
        if policy == .strict {
            guard case .aborted(let reason, isRefusal: true) = stage.machine.outcome else {
                Issue.record("the take wasn't refused")
                return
            }
            #expect(reason.contains("right"))
            #expect(stage.count { $0.isArm } == 0)
        } else {
            #expect(stage.count { $0.isArm } == 2)
            for host in [ego, left] {
                stage.send(.clock(host, bound: .microseconds(9)))
                stage.answer(host, .armed(TakeScenario.report(stage.settings.take)))
            }
            #expect(Set(stage.log.filter { $0.isCommit }.compactMap(\.host)) == [ego, left])
        }
    }

    @Test("a stream that fails to open is judged by the policy", arguments: AbsencePolicy.allCases)
    func failedStream(_ policy: AbsencePolicy) {
        var stage = TakeStage(TakeScenario.settings(policy: policy))
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts {
            stage.send(.clock(host, bound: .microseconds(9)))
            let error = host == left ? "camera is held by process 7; close it" : nil
            stage.answer(host, .armed(TakeScenario.report(stage.settings.take, error: error)))
        }
        #expect((stage.machine.phase == .aborted) == (policy == .strict))
        if policy == .strict { #expect(Set(stage.log.filter { $0.isAbort }.compactMap(\.host)).count == 3) }
    }

    @Test("too little disk for the duration refuses a strict take")
    func littleDisk() {
        var settings = TakeScenario.settings(duration: .seconds(1000))
        settings.reserveBytes = 1_000_000_000
        var stage = TakeStage(settings)
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts {
            // 1000 s at 1 MB/s and the reserve are 2 GB.
            let free: Int64 = host == left ? 1_999_999_999 : 2_000_000_000
            stage.answer(host, .armed(TakeScenario.report(settings.take, free: free)))
        }
        #expect(stage.machine.phase == .aborted)
        #expect(stage.machine.record.notes.contains { $0.host == left && $0.level == .error })
        #expect(!stage.machine.record.notes.contains { $0.host == right })
    }

    @Test("a clock that isn't known well enough is waited for, then refused")
    func badClock() {
        var stage = TakeStage(TakeScenario.settings())
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts { stage.answer(host, .armed(TakeScenario.report(stage.settings.take))) }
        stage.send(.clock(ego, bound: .microseconds(20)))
        stage.send(.clock(left, bound: .milliseconds(6)))
        #expect(stage.machine.phase == .armed)
        stage.advance(by: .seconds(5))
        #expect(stage.machine.phase == .aborted)
        let text = stage.machine.record.notes.map(\.description).joined(separator: "\n")
        #expect(text.contains("host left: its clock is known to ±6.00 ms only"))
        #expect(text.contains("host right: its clock is unknown"))
    }

    @Test("a host without a known clock can't begin, whatever the policy")
    func unknownClock() {
        var stage = TakeStage(TakeScenario.settings(policy: .allow))
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts { stage.answer(host, .armed(TakeScenario.report(stage.settings.take))) }
        stage.send(.clock(ego, bound: .microseconds(20)))
        stage.send(.clock(left, bound: .milliseconds(6)))
        stage.advance(by: .seconds(5))
        #expect(Set(stage.log.filter { $0.isCommit }.compactMap(\.host)) == [ego, left])
        #expect(stage.log.contains { $0.isAbort && $0.host == right })
    }

    @Test("when the leader has no speaker and nobody chose it, another one leads")
    func otherLeader() {
        var stage = TakeStage(TakeScenario.settings(isLeaderFixed: false))
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts { stage.send(.clock(host, bound: .microseconds(9))) }
        let first = stage.settings.take
        for host in TakeScenario.hosts {
            stage.answer(host, .armed(TakeScenario.report(first, canPlay: host == right)))
        }
        #expect(stage.settings.leader == right)
        #expect(stage.settings.take != first)
        for host in TakeScenario.hosts { stage.send(.answered(host, take: first, .aborted)) }
        #expect(stage.count { $0.isArm } == 6)
        for host in TakeScenario.hosts {
            stage.answer(host, .armed(TakeScenario.report(stage.settings.take, canPlay: host == right)))
        }
        #expect(stage.count { $0.isCommit } == 3)
        #expect(stage.settings.plan(for: right).role == .leader)
        #expect(stage.settings.plan(for: ego).role == .follower)
    }

    @Test("a chosen leader without a speaker refuses a strict take, with the cure")
    func fixedLeader() {
        var stage = TakeStage(TakeScenario.settings())
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts {
            stage.answer(host, .armed(TakeScenario.report(stage.settings.take, canPlay: host == left)))
        }
        #expect(stage.machine.record.notes.contains { $0.text.contains("--leader left") })
        #expect(stage.machine.phase == .aborted)
    }

    @Test("the start chirp waits for all streams, and 3 s at most")
    func chirpWaits() throws {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        for host in TakeScenario.hosts { stage.answer(host, .committed) }
        let start = try #require(stage.machine.record.start)
        stage.advance(to: start + .seconds(1))
        stage.send(.happened(ego, TakeScenario.streaming(stage.settings.take)))
        stage.send(.happened(left, TakeScenario.streaming(stage.settings.take)))
        #expect(stage.machine.record.startChirp == nil)
        stage.advance(to: start + .seconds(4))
        #expect(stage.machine.record.startChirp == start + .seconds(3) + .milliseconds(400))
        #expect(stage.machine.record.notes.contains { $0.host == right && $0.level == .warning })
    }

    @Test("what the streams say counts when the event is missed")
    func streamingByStatus() throws {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        for host in TakeScenario.hosts { stage.answer(host, .committed) }
        stage.advance(to: try #require(stage.machine.record.start) + .milliseconds(50))
        for host in TakeScenario.hosts {
            let stream = StreamStatus(
                id: StreamID(unchecked: "camera"), kind: .video, state: .streaming, samples: 1,
                first: Timestamp(nanoseconds: 1))
            stage.send(
                .status(
                    host,
                    HostStatus(
                        state: .recording, take: stage.settings.take, episode: nil, streams: [stream], freeBytes: 1,
                        now: Timestamp(nanoseconds: 1))))
        }
        #expect(stage.machine.record.startChirp != nil)
    }

    @Test("chirps off: no chirp is asked for, and the stop comes as soon as it can reach all")
    func noChirps() {
        var stage = TakeStage(TakeScenario.settings(duration: nil, chirp: .off))
        stage.record()
        stage.advance(by: .seconds(5))
        let now = stage.now
        stage.send(.interrupted)
        #expect(stage.machine.record.stop == now + .milliseconds(400))
        #expect(stage.machine.record.stopChirp == nil)
        #expect(!stage.log.contains { if case .chirp = $0 { true } else { false } })
    }

    @Test("Ctrl-C once stops properly, with the chirp and the tail")
    func interruptedOnce() {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        stage.advance(by: .seconds(5))
        let now = stage.now
        stage.send(.interrupted)
        #expect(stage.machine.phase == .stopping)
        #expect(stage.machine.record.stopChirp == now + .milliseconds(400))
        #expect(stage.machine.record.stop == now + .milliseconds(1700))
    }

    @Test("Ctrl-C during the start chirp doesn't let the chirps overlap")
    func chirpsApart() throws {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        let first = try #require(stage.machine.record.startChirp)
        stage.send(.interrupted)
        let second = try #require(stage.machine.record.stopChirp)
        #expect(second - first == .milliseconds(700))
    }

    @Test("Ctrl-C before T0 calls the take off")
    func interruptedBefore() {
        var stage = TakeStage(TakeScenario.settings())
        stage.armAll()
        stage.send(.interrupted)
        #expect(stage.machine.phase == .aborted)
        #expect(Set(stage.log.filter { $0.isAbort }.compactMap(\.host)).count == 3)
    }

    @Test("the second Ctrl-C leaves the files on the hosts, after they are whole")
    func interruptedTwice() {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        stage.send(.interrupted)
        stage.send(.interrupted)
        #expect(stage.machine.outcome == nil)
        for host in TakeScenario.hosts { stage.send(.happened(host, TakeScenario.finished(stage.settings))) }
        #expect(stage.machine.outcome == .notIngested)
        #expect(stage.count { $0.isIngest } == 0)
    }

    @Test("Ctrl-C while the files come leaves them on the hosts")
    func interruptedIngest() {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        stage.send(.interrupted)
        for host in TakeScenario.hosts { stage.send(.happened(host, TakeScenario.finished(stage.settings))) }
        stage.send(.interrupted)
        #expect(stage.log.contains(.cancelIngest))
        #expect(stage.machine.outcome == .notIngested)
    }

    @Test("an unanswered stop is repeated until it is confirmed")
    func repeatedStop() {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        stage.send(.interrupted)
        for _ in 0..<5 {
            stage.answer(left, .failed(.stop, TakeFailure("no answer")))
            stage.advance(by: .seconds(1))
        }
        #expect(stage.log.filter { $0.isStop && $0.host == left }.count == 6)
        #expect(stage.log.filter { $0.isStop && $0.host == right }.count == 1)
        // Each time the same instant.
        let instants = Set(stage.log.compactMap { if case .stop(_, let at, _) = $0 { at } else { nil } })
        #expect(instants.count == 1)
        stage.answer(left, .stopping)
        stage.advance(by: .milliseconds(1900))
        #expect(stage.log.filter { $0.isStop && $0.host == left }.count == 6)
        // A confirmed stop without a report is asked for again, since the report may have been lost.
        stage.advance(by: .milliseconds(200))
        #expect(stage.log.filter { $0.isStop && $0.host == left }.count == 7)
    }

    @Test("a lost host doesn't stop the others, and its files are fetched later")
    func lostHost() {
        var stage = TakeStage(TakeScenario.settings())
        stage.record()
        stage.send(.lost(right, "no heartbeat for 3 s"))
        #expect(stage.machine.phase == .recording)
        stage.advance(to: .at(114))
        for host in [ego, left] {
            stage.answer(host, .stopping)
            stage.send(.happened(host, TakeScenario.finished(stage.settings)))
        }
        #expect(stage.machine.phase == .stopping)
        // T1 is 112.8 s; ten seconds of grace.
        stage.advance(to: .at(122.9))
        #expect(stage.machine.phase == .ingesting)
        for host in [ego, left] { stage.send(.ingested(host, TakeScenario.files(stage.settings))) }
        #expect(stage.machine.outcome == .incomplete([right]))
        #expect(!stage.log.contains(.seal))
    }

    @Test("a host that comes back within the grace is stopped and ingested")
    func returnedHost() {
        var stage = TakeStage(TakeScenario.settings())
        stage.record()
        stage.send(.lost(right, "no heartbeat for 3 s"))
        stage.advance(to: .at(114))
        let status = HostStatus(
            state: .recording, take: stage.settings.take, episode: stage.settings.episode, streams: [], freeBytes: 1,
            now: Timestamp(nanoseconds: 1))
        let before = stage.log.filter { $0.isStop && $0.host == right }.count
        stage.send(.returned(right, HostSnapshot(status: status, plan: nil, commit: nil, chirps: [], episodes: [])))
        #expect(stage.log.filter { $0.isStop && $0.host == right }.count == before + 1)
        for host in TakeScenario.hosts { stage.send(.happened(host, TakeScenario.finished(stage.settings))) }
        #expect(stage.count { $0.isIngest } == 3)
    }

    @Test("an agent that died and repaired its files has finished")
    func restartedAgent() {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        stage.send(.lost(left, "the connection broke"))
        stage.advance(by: .seconds(4))
        let summary = EpisodeSummary(
            episode: stage.settings.episode, session: stage.settings.session, take: stage.settings.take,
            progress: .recovered, bytes: 5)
        let status = HostStatus(
            state: .connected, take: nil, episode: nil, streams: [], freeBytes: 1, now: Timestamp(nanoseconds: 1))
        stage.send(
            .returned(left, HostSnapshot(status: status, plan: nil, commit: nil, chirps: [], episodes: [summary])))
        #expect(stage.machine.record[left]?.phase == .finished)
        #expect(stage.machine.phase == .recording)
    }

    @Test("when every host has stopped by itself, the take ends")
    func allStopped() {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        for host in TakeScenario.hosts {
            stage.send(.happened(host, TakeScenario.finished(stage.settings, reason: "disk")))
        }
        #expect(stage.machine.phase == .ingesting)
        // Nobody has set T1, so none is written.
        #expect(stage.machine.record.stop == nil)
        #expect(stage.machine.record.notes.contains { $0.text.contains("disk") && $0.level == .error })
    }

    @Test("the start is journalled, and a promise that isn't in the journal is not forgotten")
    func journalledStart() throws {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        #expect(stage.machine.record.hostsWithFilesElsewhere == TakeScenario.hosts)
        var starting = TakeRecord(settings: stage.settings)
        starting.phase = .starting
        for index in starting.hosts.indices { starting.hosts[index].phase = .committing }
        #expect(starting.hostsWithFilesElsewhere == TakeScenario.hosts)
        starting.hosts[0].phase = .absent
        starting.hosts[1].phase = .ingested
        starting.hosts[1].hasCommitted = true
        #expect(starting.hostsWithFilesElsewhere == [TakeScenario.hosts[2]])
    }

    @Test("a restarted coordinator finds its take, stops it and brings it home")
    func resumed() throws {
        var stage = TakeStage(TakeScenario.settings(duration: nil))
        stage.record()
        // As the journal gives it back.
        let text = try JSONText.encode(stage.machine.record)
        let record = try JSONText.decode(TakeRecord.self, from: text)
        #expect(record == stage.machine.record)
        var other = TakeStage(stage.settings)
        other.now = stage.now + .seconds(20)
        other.machine = TakeMachine(resuming: record, ingests: true, now: other.now)
        #expect(other.machine.phase == .recording)
        let status = HostStatus(
            state: .recording, take: stage.settings.take, episode: stage.settings.episode, streams: [], freeBytes: 1,
            now: Timestamp(nanoseconds: 1))
        for host in TakeScenario.hosts {
            other.send(.returned(host, HostSnapshot(status: status, plan: nil, commit: nil, chirps: [], episodes: [])))
        }
        other.send(.stopRequested("operator"))
        #expect(other.count { $0.isStop } == 3)
        for host in TakeScenario.hosts { other.send(.happened(host, TakeScenario.finished(stage.settings))) }
        #expect(other.count { $0.isIngest } == 3)
    }

    @Test(
        "what is under way on a host: a promise counts before T0, a take that is over doesn't",
        arguments: [
            (AgentState.connected, true, EpisodeProgress?.none, true), (.connected, true, .recording, true),
            (.connected, false, nil, false), (.recording, true, .recording, true), (.stopping, true, .recording, true),
            (.connected, true, .finished, false), (.ingesting, true, .finished, false),
            (.connected, true, .ingested, false), (.connected, true, .recovered, false),
        ])
    func underWay(state: AgentState, isCommitted: Bool, progress: EpisodeProgress?, expected: Bool) {
        let settings = TakeScenario.settings()
        let status = HostStatus(
            state: state, take: settings.take, episode: settings.episode, streams: [], freeBytes: 1,
            now: Timestamp(nanoseconds: 1))
        let commit = Commit(
            take: settings.take, start: Timestamp(nanoseconds: 5), bound: .zero, limit: Timestamp(nanoseconds: 9))
        let episodes = progress.map {
            EpisodeSummary(
                episode: settings.episode, session: settings.session, take: settings.take, progress: $0, bytes: 1)
        }
        let snapshot = HostSnapshot(
            status: status, plan: nil, commit: isCommitted ? commit : nil, chirps: [],
            episodes: episodes.map { [$0] } ?? [])
        #expect((snapshot.takeUnderWay == settings.take) == expected)
    }
}
