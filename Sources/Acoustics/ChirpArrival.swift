package import Timing

/// One chirp's arrival at a microphone, by its direct path.
package struct ChirpArrival: Sendable, Hashable {
    /// Of the chirp's first sample, in samples from the begin of the signal.
    package var position: Double
    /// One standard deviation of `position`, samples: noise and unresolved echoes together.
    package var deviation: Double
    /// The same as time.
    package var uncertainty: Interval
    /// Power of the found path behind the matched filter over that of the noise there, dB.
    ///
    /// A filter over 500 ms at 48 kHz adds 44 dB to the ratio of the samples themselves.
    package var signalToNoise: Double
    /// ρ² of the strongest path: its share of all the energy in the chirp's band, 0…1.
    package var correlation: Double
    /// √ρ² over the part that is there, 0…1: a clean chirp is at 1, noise far below 0.2.
    package var confidence: Double
    /// How much later than the direct path the strongest one came, samples; 0 when they are the same.
    package var strongestDelay: Double
    /// The share of the chirp that was in the signal, as a range of 0…1.
    package var part: ClosedRange<Double>
    /// Share of the chirp's samples that stand at the largest value: over 0.01 it was clipped.
    package var clipped: Double
}

/// What an estimator can say of one place in a recording.
package enum ArrivalOutcome: Sendable, Hashable {
    case heard(ChirpArrival)
    /// There is sound in the band, and no chirp in it: ρ² of the best place.
    case absent(correlation: Double)
    /// This microphone, or what came after it, has nothing in the chirp's band.
    case deaf(MicrophoneLimit)
    /// The place isn't in the recording.
    case outside

    package var arrival: ChirpArrival? {
        guard case .heard(let arrival) = self else { return nil }
        return arrival
    }
}
