package import Acoustics
internal import Glibc
package import Protocol
package import TestSupport
internal import Timing

/// A take in a simulated room: hosts that play both sweeps in turn, and all hear all of it.
///
/// A host's time line here is its sound card's: sample n is at n/48,000 s of it, with an offset and a skew.
package struct AcousticTake: Sendable {
    package struct Host: Sendable {
        package var id: HostID
        package var speaker: Place
        package var microphone: Place
        /// True time t reads t·(1 + skew) + offset.
        package var offset: Double
        package var skew: Double
    }

    package let room: RoomSimulator
    package let hosts: [Host]
    /// dB of the samples' noise against the chirp as it is heard.
    package let snr: ClosedRange<Double>
    /// What the emission stamps are wrong by, seconds.
    private let stampErrors: [Double]
    private let rate = 48_000.0

    private let separation: Double

    /// Each speaker is `separation` metres from its microphone, in any direction on the table.
    package init(
        hosts count: Int, separation: Double = 0.02, snr: ClosedRange<Double> = 0...20, _ random: inout SeededGenerator
    ) {
        let room = RoomSimulator.random(&random)
        self.room = room
        self.separation = separation
        self.snr = snr
        var hosts: [Host] = []
        while hosts.count < count {
            let microphone = room.place(&random)
            guard hosts.allSatisfy({ (0.5...8).contains($0.microphone.distance(to: microphone)) }) else { continue }
            let angle = Double.random(in: 0..<2 * Double.pi, using: &random)
            let speaker = Place(
                microphone.x + separation * cos(angle), microphone.y + separation * sin(angle), microphone.z)
            guard let id = HostID(rawValue: "h\(hosts.count)") else { continue }
            hosts.append(
                Host(
                    id: id, speaker: speaker, microphone: microphone,
                    offset: .random(in: -1000...1000, using: &random),
                    skew: .random(in: -100e-6...100e-6, using: &random)))
        }
        self.hosts = hosts
        stampErrors = hosts.map { _ in .random(in: 0...0.03, using: &random) }
    }

    /// True seconds at which a host's sweep leaves the speaker: slots of 2.5 s, the way down 1.2 s after the way up.
    private func played(_ host: Int, down: Bool) -> Double { 1 + 2.5 * Double(host) + (down ? 1.2 : 0) }

    /// Offset of host b against a as the solution's reference instant has it.
    ///
    /// The solution counts from the first chirp's emission stamp; skews make the offset a matter of the moment.
    package func trueOffset(_ a: Int, _ b: Int, _ solution: TwoWaySolution, from pair: PairStatement? = nil) -> Double {
        let reversed = pair.map { $0.first == hosts[b].id } ?? false
        let reference = hosts.firstIndex { $0.id == solution.reference } ?? 0
        // The stamp of the reference's first chirp names the instant; it is wrong by the stamp's error.
        let instant = played(reference, down: false) + stampErrors[reference]
        let offset = (hosts[b].offset + hosts[b].skew * instant) - (hosts[a].offset + hosts[a].skew * instant)
        return reversed ? -offset : offset
    }

    /// Records, finds and solves; a second time with templates at the skews that the first round found.
    package func solve(_ random: inout SeededGenerator) -> TwoWaySolution? {
        let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)
        var emissions: [ChirpEmission] = []
        for (index, host) in hosts.enumerated() {
            for down in [false, true] {
                let true_ = played(index, down: down)
                let stamp = true_ * (1 + host.skew) + host.offset + stampErrors[index]
                emissions.append(
                    ChirpEmission(
                        id: 2 * index + (down ? 1 : 0), host: host.id, spec: down ? up.reversed : up,
                        emitted: .init(nanoseconds: Int64((stamp * 1e9).rounded())), uncertainty: .milliseconds(30)))
            }
        }
        var recordings: [(emission: Int, hearer: Int, signal: [Float], origin: Double)] = []
        for player in hosts.indices {
            for hearer in hosts.indices {
                let response = room.response(
                    from: hosts[player].speaker, to: hosts[hearer].microphone, rate: rate * (1 + hosts[hearer].skew),
                    duration: room.reverberation * 0.7)
                let level = Double.random(in: snr, using: &random)
                for down in [false, true] {
                    recordings.append(record(player, hearer, down, response, level, &random))
                }
            }
        }
        var options = TwoWaySolution.Options()
        options.soundSpeed = RoomSimulator.soundSpeed
        options.ownDistance = separation
        options.ownDistanceUncertainty = 0.005
        let first = TwoWaySolution(
            emissions: emissions, hearings: hear(recordings, emissions, nil), options: options)
        guard let first else { return nil }
        return TwoWaySolution(emissions: emissions, hearings: hear(recordings, emissions, first), options: options)
    }

    private func record(
        _ player: Int, _ hearer: Int, _ down: Bool, _ response: [Float], _ level: Double,
        _ random: inout SeededGenerator
    ) -> (emission: Int, hearer: Int, signal: [Float], origin: Double) {
        let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)
        let ear = hosts[hearer]
        // The recording's part around this chirp: its first sample is a whole sample number of the hearer's card.
        let emission = played(player, down: down) * (1 + ear.skew) + ear.offset
        let origin = (emission * rate).rounded(.down) - 14_000
        let stretch = (1 + ear.skew) / (1 + hosts[player].skew)
        let clean = Scene.chirp(
            down ? up.reversed : up, rate: rate, at: emission * rate - origin, count: 50_000, stretch: stretch)
        var signal = Scene.convolve(clean, response)
        let power = Scene.power(signal, 14_000..<38_000)
        Scene.addNoise((power / pow(10, level / 10)).squareRoot(), to: &signal, &random)
        return (2 * player + (down ? 1 : 0), hearer, signal, origin)
    }

    private func hear(
        _ recordings: [(emission: Int, hearer: Int, signal: [Float], origin: Double)], _ emissions: [ChirpEmission],
        _ known: TwoWaySolution?
    ) -> [ChirpHearing] {
        recordings.compactMap { recording in
            let emission = emissions[recording.emission]
            let hearer = hosts[recording.hearer].id
            let skew = known?.pair(emission.host, hearer)?.skew ?? 0
            let estimator = ArrivalEstimator(spec: emission.spec, rate: rate * (1 + skew))
            guard let filter = MatchedFilter(specs: [emission.spec], rate: rate),
                let best = (filter.push(recording.signal) + filter.finish()).max(by: {
                    $0.correlation < $1.correlation
                }), let arrival = estimator.estimate(recording.signal, near: best.position).arrival
            else { return nil }
            // Whole samples and the broken part apart: 1000 s × 48 kHz leaves a double 0.1 ns.
            let stamp = (recording.origin + arrival.position) / rate
            return ChirpHearing(
                emission: emission.id, host: hearer, heard: .init(nanoseconds: Int64((stamp * 1e9).rounded())),
                uncertainty: arrival.uncertainty, assumedSkew: skew)
        }
    }
}
