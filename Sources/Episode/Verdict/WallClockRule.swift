package import Timing

/// A host's wall clock against the coordinator's, as it was measured and as both machines' daemons claim it; pure.
///
/// Nothing in an episode is timed by wall clocks. But a rig whose PTP is green while two PCs are a second apart is one whose
/// operator believes something that isn't so, and whose other recordings (a motion capture system on the same PTP) are
/// wrong by it; and if it were our measurement that is wrong, it would show here too.
package struct WallClockRule: Sendable {
    package struct Comparison: Sendable, Hashable {
        /// The host's wall clock minus the coordinator's at one instant, and what that can be wrong by.
        package var difference: Interval
        package var bound: Interval
        package var host: ClockClaim?
        package var rig: ClockClaim?

        package init(difference: Interval, bound: Interval, host: ClockClaim?, rig: ClockClaim?) {
            self.difference = difference
            self.bound = bound
            self.host = host
            self.rig = rig
        }
    }

    /// Differences that have a name, in seconds: since 2017 TAI − UTC is 37 s.
    private static let names: [(seconds: Double, words: String)] = [
        (37, "TAI minus UTC: one clock is on TAI, as a PTP clock is, and the other on UTC"),
        (18, "GPS time minus UTC: one clock is on GPS time"),
        (19, "TAI minus GPS time: one clock is on TAI, the other on GPS time"),
    ]

    /// The name of a difference between two clocks, nil when it has none; whole hours to a day are a time zone.
    package static func name(of difference: Interval) -> String? {
        let seconds = difference.magnitude.seconds
        if let named = names.first(where: { (seconds - $0.seconds).magnitude < 0.5 }) { return named.words }
        let hours = (seconds / 1800).rounded() / 2
        guard hours >= 0.5, hours <= 24, (seconds - hours * 3600).magnitude < 0.5 else { return nil }
        return "a whole number of half hours: a time zone was taken for UTC"
    }

    /// A sentence and its colour; nil when there is nothing to say.
    package static func judge(_ host: String, _ comparison: Comparison) -> EpisodeVerdict.Reason? {
        let (difference, bound) = (comparison.difference, comparison.bound)
        let apart =
            "its wall clock is \(VerdictRules.text(difference)) "
            + (difference < .zero ? "behind" : "ahead of") + " the coordinator's"
        let named = name(of: difference).map { " (\($0))" } ?? ""
        if let mine = comparison.host?.vouched, let other = comparison.rig?.vouched {
            guard difference.magnitude > mine + other + bound else { return nil }
            let claims = "\(comparison.host?.words ?? ""); on the coordinator \(comparison.rig?.words ?? "")"
            return .init(
                .red,
                "host \(host): \(apart)\(named), more than the daemons of both vouch for (\(claims)); "
                    + "the time stamps of the episode don't rest on it, but one of these clocks is wrong")
        }
        // Nobody vouches for it, and it is off by what has a name.
        guard difference.magnitude > bound, !named.isEmpty else { return nil }
        return .init(.amber, "host \(host): \(apart)\(named); set it, or let a daemon do so")
    }
}
