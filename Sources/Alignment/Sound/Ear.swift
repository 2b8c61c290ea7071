internal import Acoustics
internal import Episode
internal import Platform
package import Protocol

/// Listens to recordings for chirps.
package struct Ear: Sendable {
    /// The sweeps that are listened for.
    package let specs: [ChirpSpec]
    /// Chirps heard with less confidence aren't taken.
    package let leastConfidence: Double
    private static let legalRates = 4_000...768_000
    /// Milliseconds: a spec from a file must not ask for all memory.
    private static let legalLengths = 10.0...10_000
    /// What is kept to judge whether the microphone could have heard it, seconds.
    private static let judgedSeconds = 10

    /// The sweeps that the hosts' sync points name, up and down; where none is named, both presets.
    package init(points: [HostPoint], leastConfidence: Double = 0) {
        var specs: [ChirpSpec] = []
        let told = points.flatMap(\.chirps).compactMap(\.spec)
        let usual = [ChirpPreset.ultrasonic, .audible].compactMap(\.startSpec)
        for spec in told.isEmpty ? usual : told {
            for sweep in [spec, spec.reversed] where !specs.contains(where: { $0.isSameSweep(as: sweep) }) {
                // More than a few different ones is no episode of anyone's.
                if specs.count < 16 { specs.append(sweep) }
            }
        }
        self.init(specs: specs, leastConfidence: leastConfidence)
    }

    package init(specs: [ChirpSpec], leastConfidence: Double = 0) {
        self.specs = specs.filter { Self.legalLengths.contains($0.durationMilliseconds) }
        self.leastConfidence = leastConfidence
    }

    /// Listens to one recording; whatever is wrong with it is its `problem`.
    ///
    /// `progress` is called with the seconds that have been heard; what it throws ends the listening.
    package func listen(_ source: SoundSource, progress: (Double) throws -> Void) throws -> SoundHearing {
        var session = Listening(source: source, ear: self)
        do {
            let format = try SoundReader.read(source.path, begin: { session.begin($0) }) { place, block in
                session.take(place, block)
                try progress(session.seconds)
            }
            if format == nil { session.hearing.problem = "there is no sound in \(FilePath.name(of: source.path))" }
        } catch let error as EpisodeError {
            session.hearing.problem = "its sound can't be read: \(error.cause)"
        } catch let error as SystemError {
            session.hearing.problem = "its sound can't be read: \(error)"
        }
        session.finish()
        return session.hearing
    }

    /// One recording while it is heard.
    private struct Listening {
        let ear: Ear
        var hearing: SoundHearing
        var seconds = 0.0
        private var usable: [ChirpSpec] = []
        private var listener: ChirpListener?
        private var runStart: Int64 = 0
        private var next: Int64 = 0
        private var first: Int64?
        private var judged: [Float] = []
        private var found: [(spec: ChirpSpec, place: Double, arrival: ChirpArrival)] = []

        init(source: SoundSource, ear: Ear) {
            self.ear = ear
            hearing = SoundHearing(source: source)
        }

        mutating func begin(_ format: SoundFileFormat) {
            hearing.format = format
            let rate = Double(format.rate)
            guard Ear.legalRates.contains(format.rate) else {
                hearing.problem = "\(format.rate) samples a second are no sound card's"
                return
            }
            usable = ear.specs.filter {
                max($0.fromHz, $0.toHz) <= rate / 2 * 0.98 && ChirpListener(specs: [$0], rate: rate) != nil
            }
            listener = ChirpListener(specs: usable, rate: rate)
        }

        mutating func take(_ place: Int64, _ block: [Float]) {
            guard let format = hearing.format else { return }
            if first == nil { (first, runStart, next) = (place, place, place) }
            if place != next {
                close()
                listener = ChirpListener(specs: usable, rate: Double(format.rate))
                runStart = place
            }
            next = place + Int64(block.count)
            seconds = Double(next - (first ?? 0)) / Double(format.rate)
            let room = Ear.judgedSeconds * format.rate - judged.count
            if room > 0 { judged += block.prefix(room) }
            keep(listener?.push(block) ?? [])
        }

        private mutating func close() { keep(listener?.finish() ?? []) }

        private mutating func keep(_ heard: [ChirpListener.Heard]) {
            for one in heard where one.arrival.confidence >= ear.leastConfidence && found.count < 10_000 {
                found.append((usable[one.template], one.arrival.position + Double(runStart), one.arrival))
            }
        }

        mutating func finish() {
            close()
            listener = nil
            guard let format = hearing.format else { return }
            hearing.seconds = seconds
            let rate = Double(format.rate)
            let clock: SoundClock
            do { clock = try SoundTiming.clock(hearing.source, rate: rate) } catch {
                hearing.problem = hearing.problem ?? "\(error)"
                return
            }
            if let first, next > first {
                let (a, b) = (clock.reading(at: Double(first)).time, clock.reading(at: Double(next)).time)
                if a <= b { hearing.span = a...b }
            }
            hearing.chirps = found.map { spec, place, arrival in
                let reading = clock.reading(at: place)
                let own = arrival.deviation / rate * 1e9
                return HeardChirp(
                    spec: spec, place: place, time: reading.time,
                    deviation: (own * own + reading.deviation * reading.deviation).squareRoot(),
                    cardSkew: reading.cardSkew, signalToNoise: arrival.signalToNoise,
                    confidence: arrival.confidence, part: arrival.part, clipped: arrival.clipped,
                    echo: arrival.strongestDelay / rate)
            }.sorted { ($0.time, $0.spec.fromHz) < ($1.time, $1.spec.fromHz) }
            if hearing.chirps.isEmpty, hearing.problem == nil { hearing.problem = silence(rate) }
        }

        private func silence(_ rate: Double) -> String {
            for spec in ear.specs {
                if let limit = MicrophoneLimit.judge(judged[...], rate: rate, spec: spec) { return limit.description }
            }
            return "no chirp is in its sound"
        }
    }
}

extension ChirpSpec {
    /// Whether a matched filter of one finds the other.
    package func isSameSweep(as other: ChirpSpec) -> Bool {
        abs(fromHz - other.fromHz) < 1 && abs(toHz - other.toHz) < 1
            && abs(durationMilliseconds - other.durationMilliseconds) < 1
    }
}
