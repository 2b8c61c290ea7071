internal import AcousticScenes
internal import Acoustics
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@Suite struct TwoWayTests {
    static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)

    /// Stamps by arithmetic: h1 is 2.5 s and 40 ppm ahead, 3.43 m away; both sweeps of both hosts, microseconds of noise.
    private func stamps(
        offset: Double, skew: Double, distance: Double, plays: [Int] = [0, 1], _ random: inout SeededGenerator
    ) throws -> (emissions: [ChirpEmission], hearings: [ChirpHearing], hosts: [HostID]) {
        let hosts = try [#require(HostID(rawValue: "h0")), #require(HostID(rawValue: "h1"))]
        let clock = { (host: Int, t: Double) in host == 0 ? t : t * (1 + skew) + offset }
        let stamp = { (seconds: Double) in Timestamp<HostTime>(nanoseconds: Int64((seconds * 1e9).rounded())) }
        var (emissions, hearings): ([ChirpEmission], [ChirpHearing]) = ([], [])
        for player in plays {
            for down in [false, true] {
                let played = Double(player) * 3 + (down ? 1.3 : 0)
                let id = emissions.count
                // The program's stamp is 12 ms early.
                emissions.append(
                    ChirpEmission(
                        id: id, host: hosts[player], spec: down ? Self.up.reversed : Self.up,
                        emitted: stamp(clock(player, played) - (played == 0 ? 0 : 0.012)),
                        uncertainty: .milliseconds(20)))
                for hearer in [0, 1] {
                    let way = player == hearer ? 0.1 / 343.2 : distance / 343.2
                    let relative = hearer == player ? 0 : hearer == 1 ? skew : -skew
                    let coupling = (down ? -4.25 : 4.75) * relative
                    let heard = clock(hearer, played + way) + coupling + 1e-6 * random.normal()
                    hearings.append(
                        ChirpHearing(
                            emission: id, host: hosts[hearer], heard: stamp(heard), uncertainty: .microseconds(1)))
                }
            }
        }
        return (emissions, hearings, hosts)
    }

    @Test("offset, distance and skew come out of two hosts' stamps")
    func arithmetic() throws {
        var random = SeededGenerator(seed: 61)
        let take = try stamps(offset: 2.5, skew: 40e-6, distance: 3.43, &random)
        var options = TwoWaySolution.Options()
        options.ownDistanceUncertainty = 0.001
        let solution = try #require(
            TwoWaySolution(emissions: take.emissions, hearings: take.hearings, options: options))
        let pair = try #require(solution.pair(take.hosts[0], take.hosts[1]))
        #expect(pair.kind == .twoWay)
        #expect(abs(pair.offset.seconds - 2.5) < 10e-6)
        #expect(abs(pair.distance - 3.43) < 0.005)
        #expect(abs(pair.skew - 40e-6) < 1e-6)
        #expect(pair.offsetUncertainty < .microseconds(200))
        #expect(solution.pair(take.hosts[1], take.hosts[0])?.offset == -pair.offset)
    }

    @Test("a host that only hears gets an interval of 2.9 ms for each metre that holds the truth")
    func oneWay() throws {
        var random = SeededGenerator(seed: 62)
        for distance in [0.5, 8, 13] {
            let take = try stamps(offset: -7, skew: -30e-6, distance: distance, plays: [0], &random)
            let solution = try #require(TwoWaySolution(emissions: take.emissions, hearings: take.hearings))
            let pair = try #require(solution.pair(take.hosts[0], take.hosts[1]))
            guard case .oneWay(let earliest, let latest) = pair.kind else { return #expect(Bool(false), "\(pair)") }
            #expect(earliest.seconds < -7 + 50e-6 && latest.seconds > -7 - 50e-6)
            // 14 m at 343.2 m/s, and the doubt about the 10 cm between the player's speaker and microphone.
            #expect(abs((latest - earliest).seconds - 14 / 343.2) < 2e-3)
            #expect(pair.offsetUncertainty > .milliseconds(5))
        }
    }

    @Test(
        "in simulated rooms, with skews of ±100 ppm: offset within 100 µs and distance within 3 cm",
        arguments: [2, 3])
    func rooms(hosts: Int) throws {
        var random = SeededGenerator(seed: UInt64(70 + hosts))
        let take = AcousticTake(hosts: hosts, &random)
        let solution = try #require(take.solve(&random))
        #expect(solution.pairs.count == hosts * (hosts - 1) / 2)
        for a in 0..<hosts {
            for b in a + 1..<hosts {
                let pair = try #require(solution.pair(take.hosts[a].id, take.hosts[b].id))
                #expect(pair.kind == .twoWay)
                #expect(abs(pair.offset.seconds - take.trueOffset(a, b, solution)) < 100e-6)
                let distance = take.hosts[a].microphone.distance(to: take.hosts[b].microphone)
                #expect(abs(pair.distance - distance) < 0.03)
            }
        }
    }

    @Test("nonsense from outside gives nothing, and never traps")
    func wild() throws {
        let host = try #require(HostID(rawValue: "a"))
        let other = try #require(HostID(rawValue: "b"))
        let far = ChirpEmission(
            id: 1, host: host, spec: ChirpSpec(fromHz: .nan, toHz: 1), emitted: .init(nanoseconds: .max),
            uncertainty: .nanoseconds(.min))
        let heard = ChirpHearing(
            emission: 1, host: other, heard: .init(nanoseconds: .min), uncertainty: .nanoseconds(.max),
            assumedSkew: .nan)
        #expect(TwoWaySolution(emissions: [], hearings: []) == nil)
        #expect(TwoWaySolution(emissions: [far], hearings: []) == nil)
        _ = TwoWaySolution(emissions: [far, far], hearings: [heard, heard])
        let lone = ChirpHearing(emission: 9, host: other, heard: .init(nanoseconds: 0), uncertainty: .zero)
        #expect(TwoWaySolution(emissions: [far], hearings: [lone]) == nil)
    }

    @Test("the witness: 1000 clean takes without a false alarm, every lie caught, with a two-way and a one-way chirp")
    func witness() throws {
        var random = SeededGenerator(seed: 63)
        let witness = AcousticWitness()
        var falseAlarms = 0
        for index in 0..<1000 {
            let offset = Double.random(in: -100...100, using: &random)
            let take = try stamps(
                offset: offset, skew: .random(in: -100e-6...100e-6, using: &random),
                distance: .random(in: 0.5...8, using: &random), plays: index % 4 == 0 ? [0] : [0, 1], &random)
            let solution = TwoWaySolution(emissions: take.emissions, hearings: take.hearings)
            // The network is wrong by up to its bound, never more.
            let bound = Double.random(in: 5e-6...300e-6, using: &random)
            let network = offset + Double.random(in: -bound...bound, using: &random)
            let clock = ClockStatement(
                first: take.hosts[0], second: take.hosts[1], offset: .seconds(network), bound: .seconds(bound))
            let finding = witness.compare(clock, with: solution?.pairs.first)
            if finding.opinion != .agree { falseAlarms += 1 }
            guard index < 100 else { continue }
            for lie in [0.05, 1, 37, -0.05, -1, -37] {
                var liar = clock
                liar.offset = .seconds(network + lie)
                let caught = witness.compare(liar, with: solution?.pairs.first)
                #expect(caught.opinion == .disagree)
                #expect(caught.description.contains("disagree"))
            }
        }
        #expect(falseAlarms == 0)
    }

    @Test("the witness says when it can't say")
    func silent() throws {
        let (a, b) = try (#require(HostID(rawValue: "a")), #require(HostID(rawValue: "b")))
        let clock = ClockStatement(first: a, second: b, offset: .zero, bound: .milliseconds(1))
        let finding = AcousticWitness().compare(clock, with: nil)
        #expect(finding.opinion == .cannotSay)
        #expect(finding.description.contains("no chirp"))
        #expect(AcousticWitness().compare([clock], with: nil).count == 1)
    }
}
