internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

/// The sweeps before a take and the ticks of a countdown, with an agent in an emulated room.
@Suite(.timeLimit(.minutes(1))) struct AgentSoundTests {
    private static func probes(after lead: Double = 1.5) throws -> [SoundCheckCommand.Probe] {
        let begin = HostClock.now + .seconds(lead)
        return try [ChirpPreset.ultrasonic, .audible].enumerated().map { index, preset in
            SoundCheckCommand.Probe(
                preset: preset, spec: try #require(preset.startSpec).probe, at: begin + .seconds(Double(index)))
        }
    }

    @Test func `An armed host plays the sweeps, hears them and can begin the take afterwards`() async throws {
        let fixture = try await AgentFixture()
        try await fixture.takeLease()
        let plan = fixture.plan()
        try await fixture.ask(.arm(plan))
        let command = SoundCheckCommand(take: plan.take, plays: true, probes: try Self.probes())
        guard case .soundChecked(let report) = try await fixture.ask(.soundCheck(command)) else {
            throw AgentFixture.Unexpected()
        }
        #expect(report.source == .hardware && report.error == nil)
        #expect(report.hearings.map(\.preset) == [.ultrasonic, .audible])
        for hearing in report.hearings {
            #expect(hearing.stream.rawValue == "host_audio" && hearing.isHeard && hearing.limit == nil)
            // The room's noise has a deviation of 0.001: 2 kHz of it are −71 dB of full scale, and the sweep has 0.1 × ½.
            #expect((hearing.signalToNoise ?? 0) > 30)
        }
        let start = HostClock.now + .seconds(0.5)
        let commit = Commit(take: plan.take, start: start, bound: .microseconds(20), limit: start + .seconds(30))
        #expect(try await fixture.ask(.commit(commit)) == .committed(TakeReference(take: plan.take)))
    }

    @Test func `A host that only listens hears nothing in a quiet room`() async throws {
        let fixture = try await AgentFixture()
        try await fixture.takeLease()
        let plan = fixture.plan(role: .follower)
        try await fixture.ask(.arm(plan))
        let command = SoundCheckCommand(take: plan.take, plays: false, probes: try Self.probes())
        guard case .soundChecked(let report) = try await fixture.ask(.soundCheck(command)) else {
            throw AgentFixture.Unexpected()
        }
        #expect(report.source == nil)
        #expect(report.hearings.allSatisfy { !$0.isHeard })
    }

    @Test func `A sound check without an armed take, or of nonsense, or too late, is refused`() async throws {
        let fixture = try await AgentFixture()
        try await fixture.takeLease()
        let plan = fixture.plan()
        func refusal(_ probes: [SoundCheckCommand.Probe]) async throws -> Refusal.Code? {
            do {
                try await fixture.ask(.soundCheck(SoundCheckCommand(take: plan.take, plays: true, probes: probes)))
                return nil
            } catch let refusal as Refusal {
                return refusal.code
            }
        }
        #expect(try await refusal(Self.probes()) == .invalidTransition)
        try await fixture.ask(.arm(plan))
        #expect(try await refusal([]) == .malformed)
        #expect(try await refusal(Self.probes().reversed()) == .malformed)
        var wild = try Self.probes()
        wild[0].spec.durationMilliseconds = 1e12
        #expect(try await refusal(wild) == .malformed)
        #expect(try await refusal(Self.probes(after: -1)) == .tooLate)
        #expect(try await refusal(Self.probes(after: 1e6)) == .tooLate)
    }

    @Test func `The leader counts the last seconds down with a tick each`() async throws {
        let fixture = try await AgentFixture()
        var events = fixture.agent.events.makeAsyncIterator()
        try await fixture.takeLease()
        var plan = fixture.plan(chirp: .off)
        plan.countdown = 2
        _ = try await fixture.start(plan, lead: 4)
        _ = try await events.wait(for: .allStreaming)
        // <boot>-<start>-<end>-<random>.air: a tick is 110 ms long.
        let ticks = try FileManager.default.contentsOfDirectory(atPath: "\(fixture.folder.path)/air")
            .filter { $0.hasSuffix(".air") }
            .map { $0.split(separator: "-") }
            .compactMap { words in Int64(words[1]).flatMap { start in Int64(words[2]).map { (start, $0) } } }
            .sorted { $0.0 < $1.0 }
        #expect(ticks.count == 2)
        #expect(ticks.allSatisfy { abs($0.1 - $0.0 - 110_000_000) < 1_000_000 })
        let spacing = try #require(ticks.last).0 - (try #require(ticks.first)).0
        #expect(abs(spacing - 1_000_000_000) < 20_000_000)
    }

    @Test(
        arguments: [
            (ChirpSpec(fromHz: 16_000, toHz: 20_000), nil), (ChirpSpec(fromHz: 30_000, toHz: 17_000), "22000 Hz"),
            (ChirpSpec(fromHz: 17_000, toHz: 17_100), "at least 200 Hz"),
            (ChirpSpec(fromHz: 17_000, toHz: 19_000, durationMilliseconds: 10), "50 to 5000 ms"),
            (ChirpSpec(fromHz: 17_000, toHz: 19_000, amplitude: 1.5), "amplitude"),
            (ChirpSpec(fromHz: 17_000, toHz: 19_000, envelopeMilliseconds: 300), "envelope"),
            (ChirpSpec(fromHz: .nan, toHz: 19_000), "numbers"),
        ] as [(ChirpSpec, String?)])
    func `A chirp of one's own has to be one that can be found`(spec: ChirpSpec, words: String?) {
        #expect((spec.objection == nil) == (words == nil))
        if let words { #expect(spec.objection?.contains(words) == true) }
    }
}
