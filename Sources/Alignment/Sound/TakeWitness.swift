internal import Acoustics
package import Episode
package import Protocol
internal import Timing

/// Listens to the hosts' recordings when a take is sealed, and compares what sound and network say of their clocks.
///
/// Nothing of the network goes into what sound says: which chirp is which is told by their pattern alone. So a clock
/// that lies by any amount shows. Blocking.
package struct TakeWitness {
    let records: [EpisodeRecord]
    let clocks: [HostID: ClockSeries]
    /// The start chirp; nil when the take has none.
    let spec: ChirpSpec?
    /// Metres between a host's speaker and its microphone.
    let speakerDistances: [HostID: Double]
    /// No two hosts of a rig are farther apart, metres: 14 m are 41 ms, so a lie of 50 ms shows also one way.
    static let farthest = 14.0

    package init(
        records: [EpisodeRecord], clocks: [HostID: ClockSeries], spec: ChirpSpec?,
        speakerDistances: [HostID: Double] = [:]
    ) {
        (self.records, self.clocks) = (records, clocks)
        (self.spec, self.speakerDistances) = (spec, speakerDistances)
    }

    /// Nil when the take has no chirps, or no host a microphone.
    package func testify() throws -> SoundWitness? {
        guard let spec else { return nil }
        let sources = records.flatMap { SoundSource.microphones(of: $0) }
        guard !sources.isEmpty else { return nil }
        let ear = Ear(specs: [spec, spec.reversed])
        let hearings = try sources.map { try ear.listen($0) { _ in } }
        let points = records.map { HostPoint($0) }
        let distances = Dictionary(
            uniqueKeysWithValues: speakerDistances.map { ($0.key.rawValue, $0.value) })
        let solution = SoundSolver(farthest: Self.farthest).solve(hearings, points: points, ownDistances: distances)
        var witness = SoundWitness()
        witness.misfit = solution?.twoWay?.misfit
        witness.notes = (solution?.notes ?? []) + (solution?.reasons ?? [:]).map { "\($0.key): \($0.value)" }.sorted()
        witness.ears = records.map { describe($0, hearings, solution, spec) }
        witness.pairs = pairs(solution)
        return witness
    }

    // MARK: Ears

    private func describe(
        _ record: EpisodeRecord, _ hearings: [SoundHearing], _ solution: SoundSolution?, _ spec: ChirpSpec
    ) -> SoundWitness.Ear {
        var ear = SoundWitness.Ear(host: record.host)
        let own = hearings.filter { $0.source.clock == .host(record.host) }
        guard let best = own.max(by: { $0.chirps.count < $1.chirps.count }) else { return ear }
        ear.stream = best.source.id
        ear.chirps = best.chirps.count
        ear.problem = best.chirps.isEmpty ? best.problem : nil
        ear.confidence = best.chirps.map(\.confidence).min()
        ear.cardSkew = cardSkew(best)
        let played = records.flatMap { record in record.chirps.filter { $0.emitted != nil && $0.source != .silent } }
        for (moment, sweep) in [(ChirpMoment.start, spec), (.stop, spec.reversed)] {
            // A chirp that nobody played can't be missed.
            guard played.contains(where: { $0.moment == moment }) else { continue }
            let isHeard = solution?.hasHeard(.host(record.host), sweep, playedByLeaderOf: records, moment)
            let same = best.chirps.contains { $0.spec.isSameSweep(as: sweep) }
            if moment == .start { ear.hasStart = isHeard ?? same } else { ear.hasStop = isHeard ?? same }
        }
        return ear
    }

    /// From the places and the stamps of the first and the last chirp.
    private func cardSkew(_ hearing: SoundHearing) -> Double? {
        guard let rate = hearing.format.map({ Double($0.rate) }), let first = hearing.chirps.first,
            let last = hearing.chirps.last
        else { return nil }
        let seconds = Double(last.time &- first.time) / 1e9
        guard seconds > 1 else { return nil }
        return ((last.place - first.place) / rate / seconds - 1) * 1e6
    }

    // MARK: Pairs

    /// Every two hosts whose clocks the network knows.
    private func pairs(_ solution: SoundSolution?) -> [SoundWitness.Pair] {
        let known = records.map(\.host).compactMap { HostID(rawValue: $0) }.filter { clocks[$0] != nil }.sorted()
        var pairs: [SoundWitness.Pair] = []
        for (index, first) in known.enumerated() {
            for second in known[(index + 1)...] {
                if let pair = pair(first, second, solution) { pairs.append(pair) }
            }
        }
        return pairs
    }

    private func pair(_ first: HostID, _ second: HostID, _ solution: SoundSolution?) -> SoundWitness.Pair? {
        let (a, b) = (ClockID.host(first.rawValue), ClockID.host(second.rawValue))
        let statement = solution?.statement(a, b)
        let places = (solution?.places[a], solution?.places[b])
        guard let clock = network(first, second, places) else { return nil }
        let finding = AcousticWitness().compare(clock.statement, with: statement)
        var pair = SoundWitness.Pair(
            first: first.rawValue, second: second.rawValue,
            opinion: SoundWitness.Pair.Opinion(rawValue: finding.opinion.rawValue) ?? .cannotSay,
            network: finding.network, networkBound: finding.networkBound, isOneWay: finding.oneWay,
            text: finding.description)
        (pair.sound, pair.soundUncertainty) = (finding.sound, finding.soundUncertainty)
        (pair.difference, pair.limit) = (finding.difference, finding.limit)
        pair.networkSkew = clock.skew * 1e6
        if let statement {
            (pair.distance, pair.distanceUncertainty) = (statement.distance, statement.distanceUncertainty)
            pair.soundSkew = statement.skew * 1e6
        }
        return pair
    }

    /// What the network says of two clocks at the instant of the sound's statement, by the hosts' own clocks.
    private func network(
        _ first: HostID, _ second: HostID, _ places: (SoundSolution.Place?, SoundSolution.Place?)
    ) -> (statement: ClockStatement, skew: Double)? {
        func side(_ host: HostID, _ place: SoundSolution.Place?) -> (offset: Interval, bound: Interval, skew: Double)? {
            guard let series = clocks[host] else { return nil }
            let instant =
                place.map { Timestamp<HostTime>(nanoseconds: $0.instant &+ $0.offset) }
                ?? records.first { $0.host == host.rawValue }?.anchor.map { Timestamp(nanoseconds: $0.monotonic) }
            guard let instant, let (rig, bound) = series.rig(instant), let mapping = series.mapping(at: instant) else {
                return nil
            }
            let offset = instant - Timestamp(nanoseconds: rig.nanoseconds)
            return (offset, bound, -mapping.skew / (1 + mapping.skew))
        }
        guard let a = side(first, places.0), let b = side(second, places.1) else { return nil }
        let statement = ClockStatement(
            first: first, second: second, offset: b.offset - a.offset, bound: a.bound + b.bound)
        return (statement, b.skew - a.skew)
    }
}
