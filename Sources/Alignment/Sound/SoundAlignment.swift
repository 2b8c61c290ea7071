internal import Acoustics
internal import Protocol
internal import Timing

/// Aligns by the chirps in the recordings.
///
/// Clocks that the network has placed stay where they are, and sound is their witness: where the two disagree by more
/// than both may err, nothing is aligned, since one of them is wrong and no one knows which.
package struct SoundAlignment: AlignmentMethod {
    package init() {}

    package func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) throws(Aligner.Unaligned) {
        let open = input.clocks.filter { draft.placements[$0] == nil }
        guard input.options.method != .clock, !input.heard.isEmpty || !open.isEmpty else {
            for clock in open { draft.fail(clock, "sound isn't to count") }
            return
        }
        let solver = SoundSolver(
            farthest: input.options.farthest, distance: input.options.distance, soundSpeed: input.options.soundSpeed)
        let solution = solver.solve(input.heard, points: input.points)
        if let solution { try witness(solution, input, &draft) }
        let placed = solution.map { placements($0, draft) } ?? [:]
        if let solution, !placed.isEmpty {
            draft.notes += solution.notes
            if draft.common == nil {
                draft.common =
                    switch solution.reference {
                    case .host(let host): host
                    case .clip(let stream, _): stream
                    }
            }
        }
        for clock in open {
            if let placement = placed[clock] {
                draft.placements[clock] = placement
            } else {
                draft.fail(clock, reason(clock, input, solution))
            }
        }
    }

    // MARK: Places

    /// Where the clocks of the solution stand on the common clock, as far as it is known.
    private func placements(_ solution: SoundSolution, _ draft: AlignmentDraft) -> [ClockID: ClockPlacement] {
        guard solution.places.count > 1 else { return [:] }
        let own = solution.places.mapValues { place -> ClockPlacement? in
            guard let line = timeline(place) else { return nil }
            var placement = ClockPlacement(
                place.method, line, uncertainty: place.uncertainty, isProved: false)
            placement.chirps = place.chirps
            placement.confidence = place.confidence
            return placement
        }.compactMapValues { $0 }
        guard draft.common != nil else { return own }
        // The surest clock that is placed already carries the others.
        let anchors = own.keys.filter { draft.placements[$0]?.uncertainty != nil }
        var result: [ClockID: ClockPlacement] = [:]
        for (clock, placement) in own where draft.placements[clock] == nil {
            let anchor = anchors.min {
                ($0.host == clock.host ? 0 : 1, solution.places[$0]?.uncertainty ?? .max, $0)
                    < ($1.host == clock.host ? 0 : 1, solution.places[$1]?.uncertainty ?? .max, $1)
            }
            guard let anchor, let base = draft.placements[anchor], let bridge = own[anchor],
                let place = solution.places[clock]
            else { continue }
            result[clock] = carry(placement, place, over: bridge, to: base)
        }
        return result
    }

    private func timeline(_ place: SoundSolution.Place) -> HostTimeline? {
        if place.method == .reference { return .identity }
        let (host, overflow) = place.instant.addingReportingOverflow(place.offset)
        guard !overflow else { return nil }
        return HostTimeline([
            HostTimeline.Knot(
                host: host, offset: place.offset, skew: place.skew, bound: place.uncertainty,
                skewBound: min(place.skewUncertainty, 0.009))
        ])
    }

    /// From a clock over sound to an anchor, and from that to the common clock.
    private func carry(
        _ placement: ClockPlacement, _ place: SoundSolution.Place, over bridge: ClockPlacement,
        to base: ClockPlacement
    ) -> ClockPlacement? {
        let here = place.instant &+ place.offset
        func common(_ host: Int64) -> (time: Int64, doubt: Int64?) {
            let reference = placement.timeline.common(host)
            // The anchor's instant that is the reference's one: a small step suffices, the clocks differ by ppm.
            var anchor = reference &+ bridge.timeline.offset(at: reference)
            anchor = reference &+ bridge.timeline.offset(at: anchor)
            return (base.timeline.common(anchor), base.timeline.bound(at: anchor))
        }
        let (first, later) = (common(here), common(here &+ 10_000_000_000))
        let rate = Double(later.time &- first.time) / 10e9
        guard rate > 0.9, rate < 1.1, let doubt = first.doubt,
            let line = HostTimeline([
                HostTimeline.Knot(
                    host: here, offset: here &- first.time, skew: 1 / rate - 1,
                    bound: (place.uncertainty &+ doubt), skewBound: min(place.skewUncertainty + 1e-6, 0.009))
            ])
        else { return nil }
        var result = placement
        result.timeline = line
        result.uncertainty = place.uncertainty &+ doubt &+ (bridge.uncertainty ?? 0)
        if result.method == .reference { result.method = .soundOneWay }
        return result
    }

    // MARK: Witness

    /// Compares what the network and what sound says of each pair of placed clocks.
    private func witness(
        _ solution: SoundSolution, _ input: AlignmentInput, _ draft: inout AlignmentDraft
    ) throws(Aligner.Unaligned) {
        let placed = solution.places.keys.filter { draft.placements[$0]?.uncertainty != nil }.sorted()
        var lies: [String] = []
        for (index, first) in placed.enumerated() {
            for second in placed[(index + 1)...] {
                guard let a = draft.placements[first], let b = draft.placements[second],
                    let pair = solution.statement(first, second), let place = solution.places[first]
                else { continue }
                // At the instant of the sound's offset, which is the first host's time in the statement.
                let here = place.instant &+ place.offset
                let common = a.timeline.common(here)
                let there = common &+ b.timeline.offset(at: common &+ b.timeline.offset(at: here))
                let bound = (a.timeline.bound(at: here) ?? 0) &+ (b.timeline.bound(at: there) ?? 0)
                let clock = ClockStatement(
                    first: pair.first, second: pair.second,
                    offset: .nanoseconds(pair.first == solution.names[first] ? there &- here : here &- there),
                    bound: .nanoseconds(bound))
                let finding = AcousticWitness().compare(clock, with: pair)
                if finding.opinion == .disagree {
                    lies.append(finding.description)
                } else {
                    draft.notes.append(finding.description)
                }
            }
        }
        guard let first = lies.first, input.options.method == .automatic else { return }
        let more = lies.count > 1 ? " (and \(lies.count - 1) more pairs)" : ""
        throw Aligner.Unaligned(
            "\(first)\(more); one of them is wrong: choose --method sound or --method clock when you know which")
    }

    // MARK: Reasons

    private func reason(_ clock: ClockID, _ input: AlignmentInput, _ solution: SoundSolution?) -> String {
        let own = input.heard.filter { $0.source.clock == clock }
        guard !own.isEmpty else { return "there is no sound of it to listen to" }
        guard own.contains(where: { !$0.chirps.isEmpty }) else {
            return own.compactMap(\.problem).first ?? "no chirp is in its sound"
        }
        if let reason = solution?.reasons[clock] { return reason }
        let others = input.heard.filter { $0.source.clock != clock }
        guard others.contains(where: { !$0.chirps.isEmpty }) else {
            return "its sound has chirps, and no other clock's has any"
        }
        return "its chirps and those of the others aren't the same ones"
    }
}
