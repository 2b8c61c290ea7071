internal import Glibc
package import Protocol
package import Timing

/// A chirp that a host played.
package struct ChirpEmission: Sendable, Hashable {
    /// Unique in the take.
    package var id: Int
    package var host: HostID
    package var spec: ChirpSpec
    /// When its first sample left, on the host's own time line.
    package var emitted: Timestamp<HostTime>
    /// One standard deviation of that: small for a hardware stamp, tens of milliseconds for a program's guess.
    package var uncertainty: Interval

    package init(id: Int, host: HostID, spec: ChirpSpec, emitted: Timestamp<HostTime>, uncertainty: Interval) {
        (self.id, self.host, self.spec, self.emitted, self.uncertainty) = (id, host, spec, emitted, uncertainty)
    }
}

/// A chirp that a host's microphone heard; its own as well.
package struct ChirpHearing: Sendable, Hashable {
    /// Which emission.
    package var emission: Int
    package var host: HostID
    /// Arrival of the first sample by the direct path, on the hearing host's time line.
    package var heard: Timestamp<HostTime>
    /// One standard deviation, as the estimator gave it.
    package var uncertainty: Interval
    /// The skew of the hearer against the player that the template was already stretched by; 0 for nominal rates.
    package var assumedSkew: Double

    package init(
        emission: Int, host: HostID, heard: Timestamp<HostTime>, uncertainty: Interval, assumedSkew: Double = 0
    ) {
        (self.emission, self.host, self.heard) = (emission, host, heard)
        (self.uncertainty, self.assumedSkew) = (uncertainty, assumedSkew)
    }
}

/// What sound says of the clocks and places of two hosts.
package struct PairStatement: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// Each heard the other: offset and distance are separate.
        case twoWay
        /// Sound went one way only: the offset is known up to the unknown distance, 2.9 ms for each metre.
        ///
        /// It lies between these two: the speaker beside the microphone, and as far as a host can be.
        case oneWay(earliest: Interval, latest: Interval)
    }

    package var first: HostID
    package var second: HostID
    package var kind: Kind
    /// The second host's time minus the first's, at the take's first chirp.
    package var offset: Interval
    /// One standard deviation.
    package var offsetUncertainty: Interval
    /// Metres, and one standard deviation.
    package var distance: Double
    package var distanceUncertainty: Double
    /// The second clock's rate against the first's, minus one, and one standard deviation.
    package var skew: Double
    package var skewUncertainty: Double
}

/// Offsets, skews and distances of hosts that play chirps in turn and hear each other: weighted least squares.
///
/// The unknowns are: for each host but the first its clock's offset and skew; for each pair the distance; for each
/// emission how wrong its stamp was; for each host the way from its own speaker to its own microphone. The observations
/// are the arrivals; each host that hears itself replaces its emission stamp by its own ear, so the delay of the speaker
/// falls out (Peng et al., BeepBeep, 2007). What stays is a difference of the *microphones'* delays, which is a
/// difference of stamps and goes wherever they go.
///
/// Distances are those of the microphones. A speaker that is s away from its microphone, in a direction that isn't known,
/// makes the way to another host up to s longer or shorter than the way back: of that the offset is wrong by 0.4 s/c and
/// the distance by 0.4 s (one deviation). It is in the uncertainties. For 100 µs the two have to be within 3 cm.
///
/// An arrival found with a template that doesn't run at the player's rate is off by κ·skew, with
/// κ = f/slope + T/2 at the middle frequency: +4.75 s for 17→19 kHz, −4.25 s for the way down. A pair of both
/// sweeps tells the skew to a part of a ppm.
///
/// Arrivals that don't fit are weighted down (Huber); the uncertainties grow when the whole doesn't fit as it should.
package struct TwoWaySolution: Sendable {
    package struct Options: Sendable {
        /// Metres a second; 343.2 at 20 °C, 0.17 % more for each degree.
        package var soundSpeed = 343.2
        /// Between a host's own speaker and microphone, metres, and how well that is known.
        package var ownDistance = 0.1
        package var ownDistances: [HostID: Double] = [:]
        package var ownDistanceUncertainty = 0.02
        /// No two hosts are farther apart, metres.
        ///
        /// 14 m are 41 ms: so a clock that lies by 50 ms is caught even where sound went one way only.
        package var farthest = 14.0
        /// One standard deviation of the skew of two clocks before anything was heard.
        package var skewUncertainty = 150e-6
        /// How far a host's sound card may run off its clock while it plays, one standard deviation; 0 when the time lines
        /// are the cards' own.
        package var speakerSkewUncertainty = 0.0
        /// Metres between any two hosts where it is known, with one standard deviation.
        package var knownDistance: (metres: Double, deviation: Double)?

        package init() {}
    }

    /// The time line that the others are compared with: the first host that played.
    package let reference: HostID
    /// The reference's first chirp that another host heard: the instant at which the offsets hold.
    package let instant: Timestamp<HostTime>
    package let hosts: [HostID]
    /// Player and hearer of each way that sound took between two hosts.
    package let ways: Set<[HostID]>
    package let pairs: [PairStatement]
    /// √(χ²/degrees of freedom): about 1 when the uncertainties were honest; 0 when nothing is left over to judge it.
    package let misfit: Double
    /// Hearings whose residual is over five of their own deviations.
    package let rejected: [ChirpHearing]

    /// Nil when no one heard anyone else.
    package init?(emissions: [ChirpEmission], hearings: [ChirpHearing], options: Options = Options()) {
        guard var system = TwoWaySystem(emissions: emissions, hearings: hearings, options: options),
            system.solve()
        else { return nil }
        hosts = system.hosts
        reference = system.hosts[0]
        instant = system.instant
        ways = system.directedWays
        misfit = system.misfit
        rejected = system.rejected
        pairs = system.statements()
    }

    /// The statement of two hosts in either order; offset and skew are those of `second` against `first`.
    package func pair(_ first: HostID, _ second: HostID) -> PairStatement? {
        if let same = pairs.first(where: { $0.first == first && $0.second == second }) { return same }
        return pairs.first { $0.first == second && $0.second == first }?.reversed
    }
}

extension PairStatement {
    /// The same seen from the other host.
    package var reversed: PairStatement {
        var other = self
        (other.first, other.second) = (second, first)
        (other.offset, other.skew) = (-offset, -skew)
        if case .oneWay(let earliest, let latest) = kind { other.kind = .oneWay(earliest: -latest, latest: -earliest) }
        return other
    }
}
