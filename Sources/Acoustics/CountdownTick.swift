package import Protocol

/// The short tones before the start, with SyncField's figures: 880, 1047 and 1175 Hz, 110 ms, amplitude 0.9, ends of 8 ms.
package enum CountdownTick {
    private static let pitches: [Int: Double] = [3: 880, 2: 1047, 1: 1175]

    /// The tone for so many seconds that are left.
    ///
    /// Longer countdowns stay on the lowest tone until three.
    package static func spec(remaining: Int) -> ChirpSpec {
        let pitch = pitches[max(remaining, 1)] ?? 880
        return ChirpSpec(
            fromHz: pitch, toHz: pitch, durationMilliseconds: 110, amplitude: 0.9, envelopeMilliseconds: 8)
    }

    /// The tone's samples, mono.
    package static func samples(remaining: Int, rate: Int) -> [Float] {
        Chirp.samples(spec(remaining: remaining), rate: rate)
    }
}
