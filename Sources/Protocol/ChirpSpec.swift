/// A linear FM sweep, with SyncField's keys (`chirp_spec` of sync_point.json).
package struct ChirpSpec: Codable, Sendable, Hashable {
    package var fromHz: Double
    package var toHz: Double
    package var durationMilliseconds: Double
    package var amplitude: Double
    package var envelopeMilliseconds: Double

    package init(
        fromHz: Double, toHz: Double, durationMilliseconds: Double = 500, amplitude: Double = 0.8,
        envelopeMilliseconds: Double = 15
    ) {
        self.fromHz = fromHz
        self.toHz = toHz
        self.durationMilliseconds = durationMilliseconds
        self.amplitude = amplitude
        self.envelopeMilliseconds = envelopeMilliseconds
    }

    /// The same sweep backwards in frequency: the stop chirp of a start chirp.
    package var reversed: ChirpSpec {
        var other = self
        (other.fromHz, other.toHz) = (toHz, fromHz)
        return other
    }

    private enum CodingKeys: String, CodingKey {
        case fromHz = "from_hz"
        case toHz = "to_hz"
        case durationMilliseconds = "duration_ms"
        case amplitude
        case envelopeMilliseconds = "envelope_ms"
    }
}

/// Which chirps a take has.
package enum ChirpPreset: String, Codable, Sendable, CaseIterable {
    case ultrasonic, audible, off

    /// The start chirp; the stop chirp is its reverse.
    ///
    /// Figures: SyncField's defaults.
    package var startSpec: ChirpSpec? {
        switch self {
        case .ultrasonic: ChirpSpec(fromHz: 17_000, toHz: 19_000)
        case .audible: ChirpSpec(fromHz: 400, toHz: 2_500)
        case .off: nil
        }
    }
}

/// How honestly the time of a chirp's emission is known.
package enum ChirpSource: String, Codable, Sendable, CaseIterable {
    /// The sound card's own clock said when the first sample left.
    case hardware
    /// The program's clock around the call that played it.
    case softwareFallback = "software_fallback"
    /// Nothing was played.
    case silent
}
