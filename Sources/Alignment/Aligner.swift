/// What an alignment method may look at.
package struct AlignmentInput: Sendable {
    package var streams: [LoadedStream]
    package var heard: [SoundHearing] = []
    package var points: [HostPoint] = []
    package var clockSeries: String?
    package var manifest: String?
    package var options = AlignmentSettings()

    /// The clocks in the order in which the streams name them.
    package var clocks: [ClockID] {
        var seen: Set<ClockID> = []
        return streams.map(\.stream.clock).filter { seen.insert($0).inserted }
    }

    /// The streams of a clock, for a sentence.
    func words(_ clock: ClockID) -> String { "\(clock)" }
}

/// Where one clock stands against the common one, and how that is known.
package struct ClockPlacement: Sendable {
    package enum Method: String, Sendable, Hashable, CaseIterable {
        /// It is the only clock there is, or the one that the others are compared with.
        case reference
        case clockSeries = "clock_series"
        case clockMapping = "clock_mapping"
        /// Each heard the other.
        case soundTwoWay = "sound_two_way"
        /// Sound went one way: the distance stays in the offset, 2.9 ms for each metre.
        case soundOneWay = "sound_one_way"
        /// Both heard a chirp of which no one knows who played it.
        case soundShared = "sound_shared"
        case wallClock = "wall_clock"
    }

    package var method: Method
    package var timeline: HostTimeline
    /// How far it may be off, ns: a proved bound, the whole range that sound leaves, or three deviations; nil: unknown.
    package var uncertainty: Int64?
    /// Whether the uncertainty is proved.
    package var isProved: Bool
    /// Chirps that it rests on.
    package var chirps = 0
    /// √ρ² of the weakest of them, 0…1.
    package var confidence: Double?
    /// What a person should know.
    package var notes: [String] = []

    package init(_ method: Method, _ timeline: HostTimeline, uncertainty: Int64?, isProved: Bool) {
        (self.method, self.timeline, self.uncertainty, self.isProved) = (method, timeline, uncertainty, isProved)
    }
}

/// All clocks of a job on one clock.
package struct Alignment: Sendable {
    package internal(set) var placements: [ClockID: ClockPlacement]
    /// Which clock it is: `rig`, `wall`, or the name of a clock of the job.
    package internal(set) var common: String
    /// Where sound and network were compared, a sentence each.
    package internal(set) var notes: [String]
    /// Clocks that couldn't be placed and may be left out, with the reason.
    package internal(set) var unplaced: [ClockID: String]

    func timeline(_ clock: ClockID) -> HostTimeline { placements[clock]?.timeline ?? .identity }

    /// One word for all clocks: their method, or `mixed`.
    package var method: String {
        let words = Set(placements.values.filter { $0.method != .reference }.map(\.method.rawValue))
        if words.isEmpty { return "single_host" }
        return words.count == 1 ? words.first ?? "mixed" : "mixed"
    }
}

/// What is found so far.
package struct AlignmentDraft: Sendable {
    package var placements: [ClockID: ClockPlacement] = [:]
    package var common: String?
    /// Why a clock couldn't be placed, a clause for each method that tried.
    package var reasons: [ClockID: [String]] = [:]
    package var notes: [String] = []

    mutating func fail(_ clock: ClockID, _ reason: String) { reasons[clock, default: []].append(reason) }
}

/// One way to bring the clocks of a job to a common one.
///
/// It places the clocks that it can, in addition to those that are placed, or says in a clause why it can't; it never
/// guesses.
package protocol AlignmentMethod: Sendable {
    func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) throws(Aligner.Unaligned)
}

/// Tries the methods in order, until all clocks have their place.
package struct Aligner: Sendable {
    package let methods: [any AlignmentMethod]

    package init(methods: [any AlignmentMethod]) { self.methods = methods }

    package static let standard = Aligner(methods: [
        SingleClockAlignment(), ClockSeriesAlignment(), ClockMappingAlignment(), SoundAlignment(), WallClockAlignment(),
    ])

    /// Why a job can't be aligned: one sentence.
    package struct Unaligned: Error, Sendable, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    package func align(_ input: AlignmentInput) throws(Unaligned) -> Alignment {
        var draft = AlignmentDraft()
        for method in methods { try method.place(input, &draft) }
        let missing = input.clocks.filter { draft.placements[$0] == nil }
        // A clip without stamps is an addition; a host isn't.
        let grave = missing.filter { clock in
            if case .clip = clock, draft.placements.count > 0 { return false }
            return !(input.options.allowsPart && draft.placements.count > 1)
        }
        guard grave.isEmpty else { throw Unaligned(refusal(grave, input, draft)) }
        let unplaced = Dictionary(uniqueKeysWithValues: missing.map { ($0, reason($0, draft)) })
        return Alignment(
            placements: draft.placements, common: draft.common ?? "", notes: draft.notes, unplaced: unplaced)
    }

    private func reason(_ clock: ClockID, _ draft: AlignmentDraft) -> String {
        (draft.reasons[clock] ?? ["nothing relates its clock to another"]).joined(separator: ", and ")
    }

    private func refusal(_ missing: [ClockID], _ input: AlignmentInput, _ draft: AlignmentDraft) -> String {
        let names = Set(input.clocks.map(\.host)).sorted()
        let reasons = missing.map { "\($0): \(reason($0, draft))" }
        let cure =
            input.options.usesWallClock
            ? "leave it out, or send the clock_sync.jsonl or the manifest.json that the coordinator made"
            : "send the clock_sync.jsonl or the manifest.json that the coordinator made, leave it out, or let the wall "
                + "clocks count (--wall-clock)"
        let whole =
            input.clocks.count > 1
            ? "the hosts \(names.joined(separator: ", ")) have no common clock" : "its clock can't be placed"
        return "\(whole): \(reasons.joined(separator: "; ")); \(cure)"
    }
}

/// The only clock of a job is its own common clock.
package struct SingleClockAlignment: AlignmentMethod {
    package init() {}

    package func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) {
        guard let clock = input.clocks.first, input.clocks.count == 1 else { return }
        draft.common = clock.host
        draft.placements[clock] = ClockPlacement(.reference, .identity, uncertainty: 0, isProved: true)
    }
}
