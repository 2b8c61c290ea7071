package import Episode
package import Protocol

/// A chirp that a recording has in it.
package struct HeardChirp: Sendable, Hashable {
    package var spec: ChirpSpec
    /// Sample frames since the file's time zero.
    package var place: Double
    /// Its first sample's arrival by the direct path, ns of the source's clock.
    package var time: Int64
    /// One standard deviation of `time`: arrival and stamps together, ns.
    package var deviation: Double
    /// The recording's rate against the nominal one, by its stamps, minus one.
    package var cardSkew: Double
    /// Behind the matched filter, dB.
    package var signalToNoise: Double
    /// √ρ², 0…1.
    package var confidence: Double
    /// The share of the chirp that is there.
    package var part: ClosedRange<Double>
    /// Share of its samples that stand at the limit.
    package var clipped: Double
    /// How much later than the direct path the strongest one came, seconds.
    package var echo: Double

    /// `17000-19000`.
    package var word: String { "\(Int(spec.fromHz))-\(Int(spec.toHz))" }
}

/// What was heard in one recording.
package struct SoundHearing: Sendable, Hashable {
    package var source: SoundSource
    /// Nil when there's no sound in the file.
    package var format: SoundFileFormat?
    package var seconds: Double
    /// First and last instant of the sound, ns of the source's clock.
    package var span: ClosedRange<Int64>?
    package var chirps: [HeardChirp]
    /// Why nothing, or not everything, could be heard: one clause.
    package var problem: String?

    package init(source: SoundSource) {
        self.source = source
        seconds = 0
        chirps = []
    }

    package var json: JSONValue {
        .object([
            "stream": .string(source.id), "host": .string(source.host),
            "rate": format.map { .integer(Int64($0.rate)) } ?? .null,
            "codec": format.map { .string($0.codec) } ?? .null, "duration_sec": .number(seconds),
            "problem": problem.map { .string($0) } ?? .null,
            "chirps": .array(
                chirps.map { chirp in
                    .object([
                        "sweep_hz": .string(chirp.word), "time_ns": .integer(chirp.time),
                        "uncertainty_ns": .integer(Int64(min(max(chirp.deviation, 0), 1e15))),
                        "snr_db": .number((chirp.signalToNoise * 10).rounded() / 10),
                        "confidence": .number((chirp.confidence * 1000).rounded() / 1000),
                        "part": .array([.number(chirp.part.lowerBound), .number(chirp.part.upperBound)]),
                        "clipped": .number((chirp.clipped * 1000).rounded() / 1000),
                        "card_skew_ppm": .number((chirp.cardSkew * 1e9).rounded() / 1e3),
                    ])
                }),
        ])
    }
}
