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
    /// Of the operator's own figures, which come beside.
    case custom

    /// The start chirp; the stop chirp is its reverse.
    ///
    /// Figures: SyncField's defaults. Nil for `custom` too, whose chirp is told beside.
    package var startSpec: ChirpSpec? {
        switch self {
        case .ultrasonic: ChirpSpec(fromHz: 17_000, toHz: 19_000)
        case .audible: ChirpSpec(fromHz: 400, toHz: 2_500)
        case .off, .custom: nil
        }
    }
}

extension ChirpSpec {
    /// What a person may ask for, with the sentence for what may not be: hertz, milliseconds, and an amplitude of full scale.
    ///
    /// - Returns: nil when it is legal.
    package var objection: String? {
        let figures = [fromHz, toHz, durationMilliseconds, amplitude, envelopeMilliseconds]
        guard figures.allSatisfy({ $0.isFinite }) else { return "all of its figures must be numbers" }
        // Speakers and microphones end at 20 kHz or before, and so do codecs.
        guard (50...22_000).contains(fromHz), (50...22_000).contains(toHz) else {
            return "its frequencies must be from 50 to 22000 Hz"
        }
        // A tone has no begin that a filter could find, and the start must not look like the stop.
        guard abs(toHz - fromHz) >= 200 else { return "it must sweep over at least 200 Hz" }
        guard (50...5_000).contains(durationMilliseconds) else { return "it must last from 50 to 5000 ms" }
        guard amplitude > 0, amplitude <= 1 else { return "its amplitude must be over 0 and at most 1" }
        guard envelopeMilliseconds >= 0, envelopeMilliseconds <= durationMilliseconds / 2 else {
            return "its envelope must be at most half of its duration"
        }
        return nil
    }

    /// The quiet, short sweep that stands for this one in a check before the take.
    package var probe: ChirpSpec {
        var probe = self
        probe.durationMilliseconds = min(durationMilliseconds, 250)
        probe.amplitude = amplitude * Self.probeLevel
        return probe
    }

    /// −18 dB: heard by a microphone, and hardly by a person.
    package static let probeLevel = 0.125
    /// How much louder the chirp itself is than its probe, dB.
    package static let probeHeadroom = 18.06
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
