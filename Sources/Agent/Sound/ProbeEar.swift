internal import Acoustics
internal import Devices
internal import Glibc
internal import Protocol
internal import Timing

/// What one microphone heard of the sweeps of a sound check.
///
/// Pure; some tens of milliseconds of arithmetic a channel.
struct ProbeEar {
    /// The noise is measured over so much before the first sweep.
    static let noiseLength = Interval.milliseconds(300)
    /// Sound from 17 m is 50 ms on its way, and a speaker without a clock of its own may be late by more.
    static let lateness = Interval.milliseconds(400)
    /// An instant that was mapped from another clock, and stamps, may be early by so much.
    static let earliness = Interval.milliseconds(50)
    /// More channels of an array say nothing new.
    private static let mostChannels = 8

    private let stream: StreamID
    private let format: AudioFormat
    /// Of each channel.
    private let noise: [[Float]]

    /// - Parameters:
    ///   - stream: the microphone's.
    ///   - format: of its samples.
    ///   - samples: what came before the first sweep.
    ///   - begin: of the first sweep.
    init(_ stream: StreamID, _ format: AudioFormat, noise samples: [Sample], before begin: Timestamp<HostTime>) {
        self.stream = stream
        self.format = format
        let channels = 1...max(1, min(format.channels, Self.mostChannels))
        noise = channels.map {
            Self.signal(samples, format, channel: $0, from: begin - Self.noiseLength, to: begin)
        }
    }

    /// The best channel's hearing of a sweep in the samples around it.
    func hearing(of probe: SoundCheckCommand.Probe, in sound: [Sample]) -> SoundCheckReport.Hearing {
        let end = probe.at + .seconds(probe.spec.durationMilliseconds / 1000) + Self.lateness
        let found = noise.indices.map { index in
            hearing(
                probe, noise: noise[index],
                signal: Self.signal(sound, format, channel: index + 1, from: probe.at - Self.earliness, to: end))
        }
        return found.max { Self.rank($0) < Self.rank($1) } ?? missing(probe, "it delivers no sound")
    }

    private static func rank(_ hearing: SoundCheckReport.Hearing) -> Double {
        (hearing.isHeard ? 1000 : 0) + (hearing.signalToNoise ?? -500)
    }

    private func hearing(
        _ probe: SoundCheckCommand.Probe, noise: [Float], signal: [Float]
    ) -> SoundCheckReport.Hearing {
        let rate = format.rate
        guard signal.count > rate / 10, noise.count > rate / 10 else { return missing(probe, "it delivers no sound") }
        let low = min(probe.spec.fromHz, probe.spec.toHz)
        let high = max(probe.spec.fromHz, probe.spec.toHz)
        guard high <= Double(rate) / 2 * 0.98, let filter = MatchedFilter(specs: [probe.spec], rate: Double(rate))
        else {
            let limit = MicrophoneLimit.rateTooLow(rate: Double(rate), needed: high)
            return missing(probe, limit.description)
        }
        let candidates = filter.push(signal) + filter.finish()
        let best = candidates.max { $0.correlation < $1.correlation }
        let band = BandEnergy(band: low...high, rate: rate)
        let quiet = Self.mean(band.profile(of: noise))
        // Where it wasn't found it would have begun at the instant itself.
        let place = Int(best?.position ?? Self.earliness.seconds * Double(rate))
        let length = Int(probe.spec.durationMilliseconds / 1000 * Double(rate))
        let loud = Self.mean(band.profile(of: signal, over: place..<place + length))
        var hearing = missing(probe, nil)
        hearing.isHeard = best != nil
        hearing.noise = Self.decibels(quiet / 0.5)
        // Digital silence has no level; 120 dB under full scale is less than any converter's own noise.
        hearing.signalToNoise = Self.decibels(max(loud - quiet, 1e-12) / max(quiet, 1e-12))
        if best == nil {
            hearing.limit =
                MicrophoneLimit.judge(signal[...], rate: Double(rate), spec: probe.spec).map { $0.description }
        }
        return hearing
    }

    private func missing(_ probe: SoundCheckCommand.Probe, _ limit: String?) -> SoundCheckReport.Hearing {
        SoundCheckReport.Hearing(
            stream: stream, preset: probe.preset, isHeard: false, signalToNoise: nil, noise: nil, limit: limit)
    }

    private static func mean(_ levels: [BandEnergy.Level]) -> Double {
        levels.isEmpty ? 0 : levels.reduce(0) { $0 + $1.meanSquare } / Double(levels.count)
    }

    /// To a tenth.
    private static func decibels(_ ratio: Double) -> Double {
        (100 * log10(max(ratio, 1e-15))).rounded() / 10
    }

    /// One channel between two instants; what isn't there is left out.
    private static func signal(
        _ samples: [Sample], _ format: AudioFormat, channel: Int, from: Timestamp<HostTime>, to: Timestamp<HostTime>
    ) -> [Float] {
        var signal: [Float] = []
        for sample in samples.sorted(by: { $0.capture < $1.capture }) {
            guard case .audio(let bytes, let frames) = sample.payload, frames > 0 else { continue }
            let end = sample.capture + .seconds(Double(frames) / Double(format.rate))
            guard end > from, sample.capture < to else { continue }
            signal += PCMSamples.channel(channel, of: bytes, format.encoding, channels: format.channels)
        }
        return signal
    }
}
