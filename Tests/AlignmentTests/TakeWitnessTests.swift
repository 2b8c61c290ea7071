internal import Episode
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Alignment

/// What is found out when a take is sealed: sound beside the network's clocks, with known truth.
@Suite(.timeLimit(.minutes(3))) struct TakeWitnessTests {
    private func testify(
        _ stage: SoundStage, network: [String: Double] = [:], bound: Int64 = 50_000
    ) throws -> SoundWitness {
        let folder = try TemporaryFolder()
        for index in stage.hosts.indices {
            try stage.writePython(index, to: "\(folder.path)/\(stage.hosts[index].name)")
        }
        let records = try stage.hosts.map { try EpisodeReader.read("\(folder.path)/\($0.name)") }
        var clocks: [HostID: ClockSeries] = [:]
        for host in stage.hosts {
            let offset = host.offset + (network[host.name] ?? 0)
            clocks[HostID(unchecked: host.name)] = ClockSeries([
                ClockMapping<RigTime, HostTime>(
                    reference: Timestamp(nanoseconds: 0), offset: .nanoseconds(Int64((offset * 1e9).rounded())),
                    skew: host.skew, bound: .nanoseconds(bound), skewBound: 1e-7)
            ])
        }
        let witness = try TakeWitness(
            records: records, clocks: clocks, spec: SoundStage.up,
            speakerDistances: [:]
        ).testify()
        return try #require(witness)
    }

    private static let three: [SoundStage.Host] = [
        .init(name: "a", place: 0, offset: 100, skew: 30e-6, cardSkew: 60e-6),
        .init(name: "b", place: 3, offset: -2_000, skew: -40e-6, cardSkew: -80e-6),
        .init(name: "c", place: 5.5, offset: 1e7, skew: 5e-6, cardSkew: 20e-6),
    ]

    @Test("True clocks agree, and distances and rates come out")
    func truth() throws {
        let witness = try testify(SoundStage.take(Self.three, turns: true))
        #expect(witness.pairs.map(\.opinion) == [.agree, .agree, .agree], "\(witness.pairs.map(\.text))")
        #expect(witness.pairs.allSatisfy { !$0.isOneWay })
        for (pair, metres) in zip(witness.pairs, [3, 5.5, 2.5]) {
            // A speaker 10 cm beside its microphone, in a direction that isn't known.
            #expect(abs((pair.distance ?? 0) - metres) < 0.15, "\(pair.text): \(pair.distance ?? 0)")
            #expect((pair.difference?.magnitude ?? .seconds(1)) < .microseconds(400))
            #expect(abs((pair.soundSkew ?? 0) - (pair.networkSkew ?? 0)) < 12, "\(pair)")
        }
        #expect(witness.ears.map(\.chirps) == [6, 6, 6])
        #expect(witness.ears.allSatisfy { $0.hasStart == true && $0.hasStop == true })
        for (ear, ppm) in zip(witness.ears, [60.0, -80, 20]) { #expect(abs((ear.cardSkew ?? 0) - ppm) < 5) }
        #expect(witness.suspect == nil)
    }

    @Test(
        "A host whose stamps or whose network clock lie is caught, whatever the lie",
        arguments: [0.05, 1, 1.8, -37, 37])
    func lies(_ lie: Double) throws {
        // The network says that b is later than it is.
        let network = try testify(SoundStage.take(Self.three, turns: true), network: ["b": lie])
        #expect(network.pairs.map(\.opinion) == [.disagree, .agree, .disagree], "\(network.pairs.map(\.text))")
        #expect(network.suspect == "b")
        // Its microphone's stamps are wrong, the network is right.
        var hosts = Self.three
        hosts[1].lie = lie
        let stamps = try testify(SoundStage.take(hosts, turns: true))
        #expect(stamps.pairs.map(\.opinion) == [.disagree, .agree, .disagree], "\(stamps.pairs.map(\.text))")
        #expect(stamps.suspect == "b")
        // Also the leader's.
        hosts[1].lie = 0
        hosts[0].lie = lie
        let leader = try testify(SoundStage.take(hosts, turns: true))
        #expect(leader.pairs.map(\.opinion) == [.disagree, .disagree, .agree], "\(leader.pairs.map(\.text))")
        #expect(leader.suspect == "a")
    }

    @Test("One way, sound leaves the distance open, and still catches 50 ms", arguments: [0, 0.05, -0.05])
    func oneWay(_ lie: Double) throws {
        let witness = try testify(SoundStage.take(Array(Self.three.prefix(2))), network: ["b": lie])
        let pair = try #require(witness.pairs.first)
        #expect(pair.isOneWay)
        #expect(pair.opinion == (lie == 0 ? .agree : .disagree), "\(pair.text)")
    }

    @Test("Who hears nothing says nothing, and why")
    func deaf() throws {
        var hosts = Self.three
        hosts[2].rate = 16_000
        hosts[2].hears = false
        let witness = try testify(SoundStage.take(hosts, turns: true))
        #expect(witness.pairs.map(\.opinion) == [.agree, .cannotSay, .cannotSay])
        #expect(witness.ears[2].problem?.contains("this microphone can't hear it") == true)
        #expect(witness.ears[2].hasStart == false)
    }
}
