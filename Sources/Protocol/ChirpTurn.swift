package import Timing

extension ChirpMoment {
    /// The silence between the two sweeps of a turn: longer than the reverberation of the first is loud.
    package static let turnGap = Interval.milliseconds(200)

    /// The sweeps that are played at this moment, each with its delay after the first sample, for a take whose start
    /// chirp is `start`.
    ///
    /// A turn is the start chirp and then the stop chirp, played as one sound: both ways of the sweep together show how
    /// the player's card runs against a hearer's, which one alone would take for another instant.
    package func sweeps(of start: ChirpSpec) -> [(spec: ChirpSpec, delay: Interval)] {
        switch self {
        case .start: [(start, .zero)]
        case .stop: [(start.reversed, .zero)]
        case .turn:
            [
                (start, .zero),
                (start.reversed, .seconds(start.durationMilliseconds / 1000) + Self.turnGap),
            ]
        }
    }

    /// From the first to the last sample.
    package func length(of start: ChirpSpec) -> Interval {
        sweeps(of: start).map { $0.delay + .seconds($0.spec.durationMilliseconds / 1000) }.max() ?? .zero
    }
}
