internal import Protocol

/// One sweep that sounded, and who heard it.
struct SoundEvent: Sendable {
    let spec: ChirpSpec
    /// By clock: the place in that clock's list of chirps.
    var heard: [ClockID: Int] = [:]
    /// ns of the first clock's time line, roughly: good enough to tell sweeps apart.
    let about: Int64
    /// The host that played it, as far as it is known.
    var player: HostPoint.Emission?
}

/// Finds out which chirps of several recordings are one and the same; pure.
///
/// Nothing is known of the clocks, so only the pattern counts: the offset between two clocks is that one at which most
/// chirps of the one are chirps of the other. When two offsets explain as many, it isn't known, and nothing is said.
struct SoundEvents: Sendable {
    /// Within a room sound comes everywhere in this time, ns; 14 m.
    private static let reach = 45e6
    /// Two clocks may drift apart by so much; crystals are within 100 ppm.
    private static let drift = 200e-6
    /// Offsets that are looked at; a take has some hundreds.
    private static let mostTried = 4000

    private(set) var events: [SoundEvent] = []
    /// Each connected clock's time minus the first one's, ns.
    private(set) var offsets: [ClockID: Int64] = [:]
    /// Why a clock is not connected, a clause.
    private(set) var reasons: [ClockID: String] = [:]

    init(_ ears: [ClockID: [HeardChirp]], first preferred: ClockID? = nil) {
        var waiting = ears.filter { !$0.value.isEmpty }.keys.sorted()
        // The one that heard most is the best to compare with.
        guard
            let first = preferred.flatMap({ waiting.contains($0) ? $0 : nil })
                ?? waiting.max(by: { (ears[$0]?.count ?? 0, $1) < (ears[$1]?.count ?? 0, $0) })
        else { return }
        place(first, ears[first] ?? [], offset: 0, matches: [:])
        waiting.removeAll { $0 == first }
        while true {
            // The surest one next: its chirps help to place the others.
            var best: (clock: ClockID, match: Match)?
            for clock in waiting {
                switch match(ears[clock] ?? []) {
                case .found(let match):
                    if match.pairs.count > best?.match.pairs.count ?? 0 { best = (clock, match) }
                    reasons[clock] = nil
                case .unknown(let reason): reasons[clock] = reason
                }
            }
            guard let best else { return }
            place(best.clock, ears[best.clock] ?? [], offset: best.match.offset, matches: best.match.pairs)
            waiting.removeAll { $0 == best.clock }
        }
    }

    struct Match: Sendable {
        /// The clock's time minus the first one's, ns.
        var offset: Int64
        /// From the places of the clock's chirps to the events.
        var pairs: [Int: Int]
    }

    enum Outcome: Sendable {
        case found(Match)
        case unknown(String)
    }

    private mutating func place(_ clock: ClockID, _ chirps: [HeardChirp], offset: Int64, matches: [Int: Int]) {
        offsets[clock] = offset
        for (index, chirp) in chirps.enumerated() {
            if let event = matches[index] {
                events[event].heard[clock] = index
            } else {
                events.append(SoundEvent(spec: chirp.spec, heard: [clock: index], about: chirp.time &- offset))
            }
        }
    }

    private func match(_ chirps: [HeardChirp]) -> Outcome {
        SoundEvents.match(
            chirps.map { ($0.spec, $0.time) }, to: events.map { ($0.spec, $0.about) }, reach: SoundEvents.reach)
    }

    /// The offset at which most of one list are in the other.
    static func match(
        _ own: [(spec: ChirpSpec, time: Int64)], to others: [(spec: ChirpSpec, time: Int64)], reach: Double
    ) -> Outcome {
        var tried: [Match] = []
        for (spec, time) in own.prefix(200) {
            for other in others.prefix(500) where other.spec.isSameSweep(as: spec) {
                let (offset, overflow) = time.subtractingReportingOverflow(other.time)
                if overflow || tried.count >= Self.mostTried
                    || tried.contains(where: { ($0.offset &- offset).magnitude < 1_000_000 })
                {
                    continue
                }
                tried.append(pairs(own, others, offset: offset, anchor: time, reach: reach))
            }
        }
        guard let most = tried.map(\.pairs.count).max() else {
            return .unknown("it heard none of the sweeps that the others heard")
        }
        let best = tried.filter { $0.pairs.count == most }
        // Candidates that agree are one: each of their pairs proposed it.
        let spread = Double(best.map(\.offset).max() ?? 0) - Double(best.map(\.offset).min() ?? 0)
        let allowed = 2 * reach + drift * length(own)
        guard spread <= allowed, let choice = best.min(by: { unrest($0, own, others) < unrest($1, own, others) }) else {
            return .unknown(
                "its \(own.count) chirps fit those of the others in \(best.count) ways equally well")
        }
        return .found(choice)
    }

    private static func length(_ list: [(spec: ChirpSpec, time: Int64)]) -> Double {
        Double(list.last?.time ?? 0) - Double(list.first?.time ?? 0)
    }

    /// One to one, each chirp with the nearest of its sweep.
    private static func pairs(
        _ own: [(spec: ChirpSpec, time: Int64)], _ others: [(spec: ChirpSpec, time: Int64)], offset: Int64,
        anchor: Int64, reach: Double
    ) -> Match {
        var match = Match(offset: offset, pairs: [:])
        var taken: Set<Int> = []
        for (index, chirp) in own.enumerated() {
            let limit = reach + drift * Double((chirp.time &- anchor).magnitude)
            var best: (event: Int, distance: Double)?
            for (event, other) in others.enumerated() where other.spec.isSameSweep(as: chirp.spec) {
                let distance = Double((chirp.time &- other.time &- offset).magnitude)
                if distance <= limit, distance < best?.distance ?? .infinity, !taken.contains(event) {
                    best = (event, distance)
                }
            }
            if let best {
                match.pairs[index] = best.event
                taken.insert(best.event)
            }
        }
        return match
    }

    private static func unrest(
        _ match: Match, _ own: [(spec: ChirpSpec, time: Int64)], _ others: [(spec: ChirpSpec, time: Int64)]
    ) -> Double {
        match.pairs.reduce(0) { $0 + Double((own[$1.key].time &- others[$1.value].time &- match.offset).magnitude) }
    }

    // MARK: Who played

    /// How far a stamp of an emission may be from the sound in the player's own microphone, ns.
    private static let stampReach = 500e6

    /// Says of each event which host played it, as far as the stamps tell.
    ///
    /// Returns sentences on stamps that don't fit what was heard.
    mutating func attribute(_ points: [HostPoint], _ ears: [ClockID: [HeardChirp]]) -> [String] {
        var notes: [String] = []
        var open: [HostPoint.Emission] = []
        // The leader first: a follower whose stamps lie by as much as its slot is late would claim the start chirp.
        let ordered = points.filter(\.isLeader) + points.filter { !$0.isLeader }
        for point in ordered {
            let emissions = point.emissions.sorted { $0.at < $1.at }
            guard !emissions.isEmpty else { continue }
            let ear = ClockID.host(point.host)
            guard let own = ears[ear], offsets[ear] != nil else {
                open += emissions
                continue
            }
            let heard = events.indices.compactMap { event in
                events[event].heard[ear].map { (event: event, time: own[$0].time) }
            }
            var missing: [HostPoint.Emission] = []
            for emission in emissions {
                let near = heard.filter {
                    events[$0.event].player == nil && events[$0.event].spec.isSameSweep(as: emission.spec)
                        && Double(($0.time &- emission.at).magnitude) <= Self.stampReach
                }.min { ($0.time &- emission.at).magnitude < ($1.time &- emission.at).magnitude }
                if let near { events[near.event].player = emission } else { missing.append(emission) }
            }
            if missing.count == emissions.count {
                // None fits: the stamps of speaker and microphone are of two clocks, or one of them is wrong.
                let free = heard.filter { events[$0.event].player == nil }
                if case .found(let match) = Self.match(
                    missing.map { ($0.spec, $0.at) }, to: free.map { (events[$0.event].spec, $0.time) },
                    reach: Self.reach), match.pairs.count == missing.count
                {
                    for (index, place) in match.pairs { events[free[place].event].player = missing[index] }
                    notes.append(
                        "\(point.host): the stamps of its speaker and of its microphone are \(Words.length(match.offset)) apart"
                    )
                    missing = []
                }
            }
            open += missing
        }
        attributeRest(open)
        return notes
    }

    /// A sweep that only one host can have played, and that only one event is left for.
    private mutating func attributeRest(_ open: [HostPoint.Emission]) {
        for emission in open {
            let rivals = open.filter { $0.spec.isSameSweep(as: emission.spec) }
            let free = events.indices.filter {
                events[$0].player == nil && events[$0].spec.isSameSweep(as: emission.spec)
            }
            if rivals.count == 1, free.count == 1, let event = free.first { events[event].player = emission }
        }
    }
}

/// Figures in sentences.
enum Words {
    /// "1.25 s", "3.4 ms", "12 µs".
    static func length(_ nanoseconds: Int64) -> String {
        let size = Double(nanoseconds.magnitude)
        func digits(_ value: Double) -> String {
            let text = ((value * 10).rounded() / 10).description
            return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
        }
        if size < 1e6 { return "\(digits(size / 1e3)) µs" }
        return size < 1e9 ? "\(digits(size / 1e6)) ms" : "\(digits(size / 1e9)) s"
    }
}
