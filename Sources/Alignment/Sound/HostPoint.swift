package import Episode
internal import Protocol
internal import Timing

/// What a host's sync point says: its anchor, and the chirps that it played.
package struct HostPoint: Sendable, Hashable {
    package var host: String
    package var anchor: EpisodeRecord.Anchor?
    package var chirps: [EpisodeRecord.Chirp]

    package init(host: String, anchor: EpisodeRecord.Anchor?, chirps: [EpisodeRecord.Chirp]) {
        (self.host, self.anchor, self.chirps) = (host, anchor, chirps)
    }

    package init(_ record: EpisodeRecord) {
        self.init(host: record.host, anchor: record.anchor, chirps: record.chirps)
    }

    /// Whether it played the chirps at the take's ends.
    var isLeader: Bool { chirps.contains { $0.moment != .turn && $0.emitted != nil } }

    /// Every sweep that left its speaker, with its time on the host's clock.
    var emissions: [Emission] {
        chirps.flatMap { chirp -> [Emission] in
            guard let at = chirp.emitted, chirp.source != .silent else { return [] }
            let spec = chirp.spec ?? (chirp.moment == .stop ? HostPoint.usual.reversed : HostPoint.usual)
            return chirp.moment.sweeps(of: chirp.moment == .stop ? spec.reversed : spec).map { sweep in
                Emission(host: host, spec: sweep.spec, at: (at + sweep.delay).nanoseconds, source: chirp.source)
            }
        }
    }

    /// What a sync point without a spec means.
    private static let usual = ChirpSpec(fromHz: 17_000, toHz: 19_000)

    struct Emission: Sendable, Hashable {
        var host: String
        var spec: ChirpSpec
        /// ns of the host's clock.
        var at: Int64
        var source: ChirpSource?

        /// One standard deviation of the stamp, where no microphone of the host has heard it.
        ///
        /// A program's guess leaves out the way through the sound system, tens of milliseconds.
        var uncertainty: Interval {
            switch source {
            case .hardware: .milliseconds(2)
            case .softwareFallback, .silent, nil: .milliseconds(60)
            }
        }
    }
}
