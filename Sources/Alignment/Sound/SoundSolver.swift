package import Acoustics
package import Episode
internal import Glibc
package import Protocol
internal import Timing

/// Everything that sound says of the clocks of a take.
package struct SoundSolution: Sendable {
    /// One clock against the common one, which is the reference's.
    package struct Place: Sendable, Hashable {
        package var method: ClockPlacement.Method
        /// Its time minus the reference's, ns, at `instant` of the reference's time.
        package var offset: Int64
        package var instant: Int64
        /// Its rate against the reference's, minus one.
        package var skew: Double
        package var skewUncertainty: Double
        /// How far the offset may be off: the range that the unknown distance leaves, and three deviations, ns.
        package var uncertainty: Int64
        package var chirps: Int
        package var confidence: Double
    }

    package let reference: ClockID
    package let places: [ClockID: Place]
    /// Nil where no one knows who played.
    package let twoWay: TwoWaySolution?
    /// The host of the solution that stands for a clock.
    package let names: [ClockID: HostID]
    /// Why a clock isn't among the places.
    package let reasons: [ClockID: String]
    package let notes: [String]
    let events: [SoundEvent]

    /// Whether a clock's recording has the sweep that a leader played at a moment; nil when it isn't known which it is.
    package func hasHeard(
        _ clock: ClockID, _ sweep: ChirpSpec, playedByLeaderOf records: [EpisodeRecord], _ moment: ChirpMoment
    ) -> Bool? {
        let leaders = records.filter { $0.chirps.contains { $0.moment == moment && $0.emitted != nil } }
        let emitted = Set(
            leaders.flatMap { $0.chirps }.filter { $0.moment == moment }.compactMap(\.emitted?.nanoseconds))
        let event = events.first { event in
            event.spec.isSameSweep(as: sweep)
                && event.player.map { player in
                    leaders.contains { $0.host == player.host } && emitted.contains(player.at)
                } == true
        }
        return event.map { $0.heard[clock] != nil }
    }

    /// What sound says of two clocks, the second against the first; nil when neither heard the other.
    package func statement(_ first: ClockID, _ second: ClockID) -> PairStatement? {
        guard let a = names[first], let b = names[second] else { return nil }
        return twoWay?.pair(a, b)
    }
}

/// Solves for the clocks by the chirps that were heard.
package struct SoundSolver: Sendable {
    package var options = TwoWaySolution.Options()

    /// `farthest` and `distance` in metres.
    package init(farthest: Double, distance: Double? = nil, soundSpeed: Double = 343.2) {
        options.farthest = farthest
        options.soundSpeed = soundSpeed
        // Two cards of one make differ by some ten ppm.
        options.speakerSkewUncertainty = 50e-6
        // A measured distance is good to a hand's breadth or two.
        if let distance { options.knownDistance = (distance, 0.3) }
    }

    /// Nil when no two clocks heard the same.
    package func solve(
        _ hearings: [SoundHearing], points: [HostPoint], ownDistances: [String: Double] = [:]
    ) -> SoundSolution? {
        let ears = Self.ears(hearings)
        var events = SoundEvents(ears)
        guard let first = events.offsets.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }) else { return nil }
        guard events.offsets.count > 1 else {
            return SoundSolution(
                reference: first.key, places: [:], twoWay: nil, names: [:], reasons: events.reasons, notes: [],
                events: events.events)
        }
        let notes = events.attribute(points, ears)
        let clocks = events.offsets.keys.sorted()
        let names = Dictionary(
            uniqueKeysWithValues: clocks.enumerated().map { index, clock in
                (
                    clock,
                    HostID(rawValue: clock.host).flatMap { clock == .host($0.rawValue) ? $0 : nil }
                        ?? HostID(unchecked: "clock-\(index)")
                )
            })
        let solution = twoWay(events, ears, names, ownDistances)
        let places =
            solution.map { self.places($0, events, ears, clocks, names) } ?? shared(events, ears, clocks)
        let reference = solution.flatMap { one in clocks.first { names[$0] == one.reference } } ?? clocks[0]
        return SoundSolution(
            reference: reference, places: places, twoWay: solution, names: names, reasons: events.reasons,
            notes: notes, events: events.events)
    }

    private static let mostChirps = 60

    /// One recording for each clock: the one with its own stamps first, then the one that heard most.
    static func ears(_ hearings: [SoundHearing]) -> [ClockID: [HeardChirp]] {
        func rank(_ hearing: SoundHearing) -> Int { if case .samples = hearing.source.timing { 1 } else { 0 } }
        var chosen: [ClockID: SoundHearing] = [:]
        for hearing in hearings where !hearing.chirps.isEmpty {
            let old = chosen[hearing.source.clock]
            let isBetter =
                old.map { (rank(hearing), hearing.chirps.count) > (rank($0), $0.chirps.count) } ?? true
            if isBetter { chosen[hearing.source.clock] = hearing }
        }
        return chosen.mapValues { hearing in
            // A take has some dozens; what is more is music.
            guard hearing.chirps.count > mostChirps else { return hearing.chirps }
            return hearing.chirps.sorted { $0.confidence > $1.confidence }.prefix(mostChirps)
                .sorted { $0.time < $1.time }
        }
    }

    private func twoWay(
        _ events: SoundEvents, _ ears: [ClockID: [HeardChirp]], _ names: [ClockID: HostID],
        _ ownDistances: [String: Double]
    ) -> TwoWaySolution? {
        var emissions: [ChirpEmission] = []
        var hearings: [ChirpHearing] = []
        for (id, event) in events.events.enumerated() {
            guard let player = event.player else { continue }
            let clock = ClockID.host(player.host)
            let host = names[clock] ?? HostID(rawValue: player.host) ?? HostID(unchecked: "player")
            let ownEar = event.heard[clock].flatMap { ears[clock]?[$0] }
            emissions.append(
                ChirpEmission(
                    id: id, host: host, spec: player.spec, emitted: Timestamp(nanoseconds: ownEar?.time ?? player.at),
                    // Its own ear takes the stamp's place; the stamp only names the instant then.
                    uncertainty: ownEar == nil ? player.uncertainty : .milliseconds(50)))
            for (hearer, index) in event.heard {
                guard let chirp = ears[hearer]?[index], let name = names[hearer] else { continue }
                hearings.append(
                    ChirpHearing(
                        emission: id, host: name, heard: Timestamp(nanoseconds: chirp.time),
                        uncertainty: .seconds(max(chirp.deviation, 100) / 1e9),
                        // The template ran at the card's nominal rate: the equations are told how far that was off.
                        assumedSkew: -(chirp.cardSkew - (ownEar?.cardSkew ?? 0))))
            }
        }
        var options = options
        for (host, metres) in ownDistances {
            if let name = names[.host(host)] { options.ownDistances[name] = metres }
        }
        return TwoWaySolution(emissions: emissions, hearings: hearings, options: options)
    }

    // MARK: Places

    /// Breadth first from the reference over the pairs that heard each other.
    private func places(
        _ solution: TwoWaySolution, _ events: SoundEvents, _ ears: [ClockID: [HeardChirp]], _ clocks: [ClockID],
        _ names: [ClockID: HostID]
    ) -> [ClockID: SoundSolution.Place] {
        guard let reference = clocks.first(where: { names[$0] == solution.reference }) else { return [:] }
        let instant = solution.instant.nanoseconds
        var places = [
            reference: SoundSolution.Place(
                method: .reference, offset: 0, instant: instant, skew: 0, skewUncertainty: 0, uncertainty: 0,
                chirps: ears[reference]?.count ?? 0, confidence: 1)
        ]
        var frontier = [reference]
        while !frontier.isEmpty {
            var next: [ClockID] = []
            for clock in clocks where places[clock] == nil {
                let steps = frontier.compactMap { from in step(from, clock, solution, places[from], names) }
                guard var place = steps.min(by: { $0.uncertainty < $1.uncertainty }) else { continue }
                let own = events.events.compactMap { event in
                    event.player == nil ? nil : event.heard[clock].flatMap { ears[clock]?[$0] }
                }
                place.chirps = own.count
                place.confidence = own.map(\.confidence).min() ?? 0
                places[clock] = place
                next.append(clock)
            }
            frontier = next
        }
        return places
    }

    private func step(
        _ from: ClockID, _ to: ClockID, _ solution: TwoWaySolution, _ start: SoundSolution.Place?,
        _ names: [ClockID: HostID]
    ) -> SoundSolution.Place? {
        guard var place = start, let a = names[from], let b = names[to], let pair = solution.pair(a, b) else {
            return nil
        }
        let offset: Interval
        let range: Interval
        switch pair.kind {
        case .twoWay:
            offset = pair.offset
            range = .seconds(pair.offsetUncertainty.seconds * 3)
            place.method = solution.heardBothWays(a, b) ? .soundTwoWay : .soundOneWay
        case .oneWay(let earliest, let latest):
            offset = earliest + (latest - earliest) / 2
            range = (latest - earliest) / 2
            place.method = .soundOneWay
        }
        place.offset = place.offset &+ offset.nanoseconds
        place.uncertainty = place.uncertainty &+ range.nanoseconds
        place.skew = (1 + place.skew) * (1 + pair.skew) - 1
        place.skewUncertainty += min(3 * pair.skewUncertainty, 0.004)
        return place
    }

    /// No one knows who played: all that can be said is that sound came to both within the room's length.
    private func shared(
        _ events: SoundEvents, _ ears: [ClockID: [HeardChirp]], _ clocks: [ClockID]
    ) -> [ClockID: SoundSolution.Place] {
        guard let reference = clocks.first else { return [:] }
        let room = Int64(options.farthest / options.soundSpeed * 1e9)
        var places: [ClockID: SoundSolution.Place] = [:]
        for clock in clocks {
            let both = events.events.compactMap { event -> (Int64, Int64, Double)? in
                guard let a = event.heard[reference].flatMap({ ears[reference]?[$0] }),
                    let b = event.heard[clock].flatMap({ ears[clock]?[$0] })
                else { return nil }
                return (a.time, b.time, min(a.confidence, b.confidence))
            }.sorted { $0.0 < $1.0 }
            guard let first = both.first, let last = both.last else { continue }
            let span = Double(last.0 &- first.0)
            let bend = Double((last.1 &- last.0) &- (first.1 &- first.0))
            let isLong = span > 30e9 && clock != reference
            places[clock] = SoundSolution.Place(
                method: clock == reference ? .reference : .soundShared, offset: first.1 &- first.0, instant: first.0,
                skew: isLong ? bend / span : 0,
                skewUncertainty: clock == reference ? 0 : isLong ? Double(room) / span : 100e-6,
                uncertainty: clock == reference ? 0 : room, chirps: both.count,
                confidence: both.map(\.2).min() ?? 0)
        }
        return places
    }
}

extension TwoWaySolution {
    /// Whether each of two hosts heard the other.
    package func heardBothWays(_ a: HostID, _ b: HostID) -> Bool { ways.contains([a, b]) && ways.contains([b, a]) }
}
