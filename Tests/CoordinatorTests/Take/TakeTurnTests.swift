internal import Coordinator
internal import Protocol
internal import Testing
internal import Timing

/// Hosts that play in turn between the leader's chirps; in virtual time.
@Suite struct TakeTurnTests {
    private func stage(duration: Interval?, turns: Bool = true) -> TakeStage {
        var settings = TakeScenario.settings(duration: duration)
        settings.playsTurns = turns
        return TakeStage(settings)
    }

    private func chirps(_ stage: TakeStage) -> [(host: HostID, moment: ChirpMoment, at: Timestamp<RigTime>)] {
        stage.log.compactMap { if case .chirp(let host, let moment, let at) = $0 { (host, moment, at) } else { nil } }
    }

    /// Seconds after the start chirp at which each sound begins and ends.
    private func spans(_ stage: TakeStage) -> [(host: String, from: Double, to: Double)] {
        let all = chirps(stage)
        guard let first = all.first?.at else { return [] }
        return all.map { chirp in
            let from = (chirp.at - first).seconds
            // A chirp lasts 0.5 s; a turn is two of them and 0.2 s between.
            return (chirp.host.rawValue, from, from + (chirp.moment == .turn ? 1.2 : 0.5))
        }
    }

    @Test("Each other host has its slot: a second from the leader's chirps, 0.6 s from one another")
    func slots() throws {
        var stage = stage(duration: .seconds(10))
        stage.record()
        stage.advance(by: .seconds(20))
        let found = spans(stage)
        #expect(found.map(\.host) == ["ego", "left", "right", "ego"])
        try #require(found.count == 4)
        #expect(abs(found[1].from - 1.5) < 1e-9)
        #expect(abs(found[2].from - found[1].to - 0.6) < 1e-9)
        #expect(found[3].from - found[2].to >= 1)
        // The stop chirp stays where the duration puts it.
        let start = try #require(stage.machine.record.start)
        #expect(stage.machine.record.stopChirp == start + .seconds(10))
        // Each is told as early as the leader is of its chirps.
        for action in chirps(stage) where action.moment == .turn {
            #expect(action.at > .at(100))
        }
        #expect(stage.machine.record.turns?.map(\.host.rawValue) == ["left", "right"])
    }

    @Test("A short take has the turns that fit", arguments: [(3.0, 0), (5.0, 1), (7.0, 2)])
    func short(_ seconds: Double, _ turns: Int) {
        var stage = stage(duration: .seconds(seconds))
        stage.record()
        stage.advance(by: .seconds(20))
        #expect(chirps(stage).filter { $0.moment == .turn }.count == turns)
        let found = spans(stage)
        if let last = found.last, found.count > 1 { #expect(last.from - found[found.count - 2].to >= 1 || turns == 0) }
    }

    @Test("A stop in the middle of the turns ends them, and its chirp keeps its distance")
    func stopped() throws {
        var stage = stage(duration: nil)
        stage.record()
        // The first turn is told 0.4 s before its begin, at 1.1 s behind the start chirp.
        let chirp = try #require(stage.machine.record.startChirp)
        stage.advance(to: chirp + .seconds(1.6))
        #expect(chirps(stage).map(\.moment) == [.start, .turn])
        stage.send(.stopRequested("operator"))
        stage.advance(by: .seconds(10))
        let found = spans(stage)
        #expect(found.count == 3)
        // Turn from 1.5 to 2.7 s, and a second.
        #expect(abs((found.last?.from ?? 0) - 3.7) < 1e-9)
        let record = stage.machine.record
        let stop = try #require(record.stop)
        #expect(stop - (try #require(record.stopChirp)) == .milliseconds(1300))
    }

    @Test("Who is lost or has no speaker has no turn, and a report belongs to its host")
    func absent() throws {
        var stage = stage(duration: .seconds(10))
        stage.send(.begin(present: TakeScenario.hosts))
        for host in TakeScenario.hosts { stage.send(.clock(host, bound: .microseconds(50))) }
        for host in TakeScenario.hosts {
            stage.answer(host, .armed(TakeScenario.report(stage.settings.take, canPlay: host.rawValue != "left")))
        }
        for host in TakeScenario.hosts { stage.answer(host, .committed) }
        stage.advance(to: try #require(stage.machine.record.start) + .milliseconds(100))
        for host in TakeScenario.hosts { stage.send(.happened(host, TakeScenario.streaming(stage.settings.take))) }
        stage.advance(by: .seconds(4))
        #expect(chirps(stage).map(\.host.rawValue) == ["ego", "right"])
        let right = HostID(unchecked: "right")
        let report = ChirpReport(
            take: stage.settings.take, moment: .turn, emitted: Timestamp(nanoseconds: 5), source: .hardware)
        stage.answer(right, .chirped(report))
        #expect(stage.machine.record.turns?.first?.report == report)
        #expect(stage.machine.record.chirps.allSatisfy { $0.moment != .turn })
    }

    @Test("Without turns, or with a deaf leader, no one answers")
    func off() {
        var stage = stage(duration: .seconds(10), turns: false)
        stage.record()
        stage.advance(by: .seconds(20))
        #expect(chirps(stage).map(\.moment) == [.start, .stop])
    }
}
