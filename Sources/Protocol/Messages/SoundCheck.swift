package import Timing

/// `sound_check`: play or hear short, quiet sweeps before a take, with the devices of an armed take.
///
/// All hosts get the same sweeps; one of them plays. Answered by `sound_checked` when all is heard, or not.
package struct SoundCheckCommand: Codable, Sendable, Hashable {
    /// One sweep, and the preset that it stands for.
    package struct Probe: Codable, Sendable, Hashable {
        package var preset: ChirpPreset
        package var spec: ChirpSpec
        /// When its first sample shall leave, on the agent's clock.
        package var at: Timestamp<HostTime>

        package init(preset: ChirpPreset, spec: ChirpSpec, at: Timestamp<HostTime>) {
            self.preset = preset
            self.spec = spec
            self.at = at
        }

        private enum CodingKeys: String, CodingKey {
            case preset, spec
            case at = "at_ns"
        }
    }

    package var take: UniqueID
    package var plays: Bool
    package var probes: [Probe]

    package init(take: UniqueID, plays: Bool, probes: [Probe]) {
        self.take = take
        self.plays = plays
        self.probes = probes
    }
}

/// `sound_checked`: what the microphones of a host heard.
package struct SoundCheckReport: Codable, Sendable, Hashable {
    /// One sweep at one microphone.
    package struct Hearing: Codable, Sendable, Hashable {
        package var stream: StreamID
        package var preset: ChirpPreset
        /// Whether the sweep itself was found, and not only noise.
        package var isHeard: Bool
        /// In the sweep's band: sound over noise before it, dB.
        ///
        /// Nil when there is nothing to compare.
        package var signalToNoise: Double?
        /// The noise in the band, dB of full scale.
        package var noise: Double?
        /// Why this microphone can't hear the preset at all.
        package var limit: String?

        package init(
            stream: StreamID, preset: ChirpPreset, isHeard: Bool, signalToNoise: Double?, noise: Double?,
            limit: String? = nil
        ) {
            self.stream = stream
            self.preset = preset
            self.isHeard = isHeard
            self.signalToNoise = signalToNoise
            self.noise = noise
            self.limit = limit
        }

        private enum CodingKeys: String, CodingKey {
            case stream, preset, limit
            case noise = "noise_db"
            case isHeard = "heard"
            case signalToNoise = "snr_db"
        }
    }

    package var take: UniqueID
    package var hearings: [Hearing]
    /// Of the host that plays: how its times are known.
    package var source: ChirpSource?
    /// Why nothing was played, or heard.
    package var error: String?

    package init(take: UniqueID, hearings: [Hearing], source: ChirpSource? = nil, error: String? = nil) {
        self.take = take
        self.hearings = hearings
        self.source = source
        self.error = error
    }
}
