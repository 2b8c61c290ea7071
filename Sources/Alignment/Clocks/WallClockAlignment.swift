internal import Episode

/// Aligns by what the hosts' wall clocks showed when their takes began; only when it was asked for.
///
/// No one knows how well those clocks were set, so no uncertainty is claimed.
package struct WallClockAlignment: AlignmentMethod {
    package init() {}

    package func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) {
        let open = input.clocks.filter { draft.placements[$0] == nil }
        guard input.options.usesWallClock, !open.isEmpty else { return }
        guard let base = base(input, &draft) else { return }
        for clock in open {
            guard case .host(let host) = clock else {
                draft.fail(clock, "a clip's own time has no wall clock")
                continue
            }
            guard let own = offset(host, input), let knot = line(own &- base) else {
                draft.fail(clock, "its sync_point.json has no wall clock beside its own clock")
                continue
            }
            var placement = ClockPlacement(.wallClock, knot, uncertainty: nil, isProved: false)
            placement.notes = ["by the hosts' wall clocks, of which no one knows how well they were set"]
            draft.placements[clock] = placement
        }
    }

    /// The common clock minus the wall clock; the wall clock itself where nothing is placed yet.
    private func base(_ input: AlignmentInput, _ draft: inout AlignmentDraft) -> Int64? {
        guard draft.common != nil else {
            draft.common = "wall"
            return 0
        }
        for (clock, placement) in draft.placements.sorted(by: { $0.key < $1.key }) {
            guard case .host(let host) = clock, let own = offset(host, input),
                let anchor = input.points.first(where: { $0.host == host })?.anchor
            else { continue }
            // wall = host − own, common = host − placement: common − wall.
            return own &- placement.timeline.offset(at: anchor.monotonic)
        }
        return nil
    }

    /// Host minus wall clock.
    private func offset(_ host: String, _ input: AlignmentInput) -> Int64? {
        guard let anchor = input.points.first(where: { $0.host == host })?.anchor, let wall = anchor.wall else {
            return nil
        }
        let (offset, overflow) = anchor.monotonic.subtractingReportingOverflow(wall)
        return overflow || offset.magnitude >= SampleRows.farthest.magnitude ? nil : offset
    }

    private func line(_ offset: Int64) -> HostTimeline? {
        HostTimeline([HostTimeline.Knot(host: 0, offset: offset, skew: 0)])
    }
}
