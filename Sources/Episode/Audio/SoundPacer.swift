internal import Timing

/// Decides how sound is laid along a time line by the stamps of its blocks.
///
/// A card's clock is off by up to a thousand parts in a million, and its stamps jitter. So the place of a block isn't
/// taken at its word: a control loop of second order stretches the sound by as little as leads it after its stamps
/// (critically damped, time constant 2 s). At 1000 ppm it is off by 0.74 ms at most (d·τ/e with d = 1e-3, τ = 2 s), and
/// by nothing in the end; 0.1 ms of jitter in blocks of 20 ms become 7 µs. What is off by more than 10 ms is a hole or
/// an overlap.
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
    private static let timeConstant = 2.0
    /// Twice the largest skew of a card.
    private static let mostStretch = 0.002

    private var integral = 0.0
    /// What the card's clock is found to be off by, as a part: positive when its samples last longer than they should.
    var skew: Double { integral }

    /// Judges a block.
    ///
    /// - Parameters:
    ///   - error: by how much later than now expected the block should be heard, in seconds.
    ///   - length: of the block, in seconds.
    /// - Returns: how to go on.
    mutating func judge(error: Double, length: Double) -> Verdict {
        guard error.isFinite, length.isFinite, abs(error) <= Self.tolerance else { return .move }
        let gain = 1 / Self.timeConstant
        // A very long block is no reason for a leap.
        integral = limited(integral + gain * gain * error * min(max(length, 0), 0.2))
        return .follow(stretch: limited(integral + 2 * gain * error))
    }

    private func limited(_ value: Double) -> Double { min(max(value, -Self.mostStretch), Self.mostStretch) }
}
