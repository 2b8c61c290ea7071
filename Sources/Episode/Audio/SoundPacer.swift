/// Decides how sound is laid along a time line by the stamps of its blocks.
///
/// A card's clock is off by up to a thousand parts in a million, and its stamps jitter. A wrong rate is worse than a
/// wrong place: in a sweep of 4 kHz/s, as the chirps are, 1 ppm at 18 kHz looks like a delay of 4.5 µs. So the stamps
/// aren't followed one by one. A Kalman filter with two states, how far the sound lies from its place and how much
/// faster than nominal the card runs, learns the rate in a second or two (1 ppm after 10 s for stamps that jitter by
/// 0.1 ms), beginning before the take with what is only observed; the place is corrected slowly, over 5 s. What is off
/// by more than 10 ms is a hole or an overlap.
///
/// Pure.
struct SoundPacer {
    enum Verdict: Equatable {
        /// Output samples for each input sample, over the nominal ratio: 1 + this.
        case follow(stretch: Double)
        /// The block belongs to a place of its own.
        case move
    }

    static let tolerance = 0.010
    /// How long a wrong place takes to be put right, seconds.
    private static let correction = 5.0
    /// The card's clock may be off by 1000 ppm, and the place has to be led back too.
    private static let mostStretch = 0.0015
    /// What is thought of a card that nothing is known of: 150 ppm.
    private static let priorRate = 150e-6
    /// How fast a rate may change with the temperature: 0.3 ppm in a second, and what of the place isn't in it: 1 µs.
    private static let (rateNoise, placeNoise) = (0.3e-6 * 0.3e-6, 1e-6 * 1e-6)

    /// True less led place, and length of a sample less its nominal one, as a part.
    private var (place, rate) = (0.0, 0.0)
    /// Variances and covariance of both.
    private var (placeVariance, covariance, rateVariance) = (0.0, 0.0, priorRate * priorRate)
    /// Of the stamps, learned from what wasn't foreseen.
    private var noise = 100e-6 * 100e-6
    private var stretch = 0.0
    private var hasBegun = false

    /// What the card's clock is found to be off by, as a part: positive when its samples last longer than they should.
    var skew: Double { rate }

    /// A block lies at a new place, whatever came before; what is known of the rate stays.
    mutating func restart() {
        (place, placeVariance, covariance, hasBegun) = (0, noise, 0, true)
        stretch = limited(rate)
    }

    /// Judges a block.
    ///
    /// - Parameters:
    ///   - error: by how much later than now expected the block should be heard, in seconds.
    ///   - length: of the block before it, in seconds.
    /// - Returns: how to go on.
    mutating func judge(error: Double, length: Double) -> Verdict {
        guard error.isFinite, length.isFinite, length >= 0, abs(error) <= Self.tolerance else { return .move }
        if !hasBegun { restart() }
        let time = min(length, 1)
        // The truth went on by the card's rate, the led sound by the stretch.
        place += time * (rate - stretch)
        placeVariance += time * (2 * covariance + time * rateVariance + Self.placeNoise)
        covariance += time * rateVariance
        rateVariance += time * Self.rateNoise

        let surprise = error - place
        let total = placeVariance + noise
        let (placeGain, rateGain) = (placeVariance / total, covariance / total)
        place += placeGain * surprise
        rate = limited(rate + rateGain * surprise)
        rateVariance -= rateGain * covariance
        covariance -= placeGain * covariance
        placeVariance -= placeGain * placeVariance
        let excess = max(0, surprise * surprise - placeVariance)
        noise = min(max(noise + 0.02 * (excess - noise), 5e-6 * 5e-6), 2e-3 * 2e-3)

        stretch = limited(rate + place / Self.correction)
        return .follow(stretch: stretch)
    }

    private func limited(_ value: Double) -> Double { min(max(value, -Self.mostStretch), Self.mostStretch) }
}
