internal import Devices
internal import Protocol

/// What `speaker.kind` may be in an agent's configuration.
enum SpeakerKind: String, CaseIterable {
    case alsa, emulated, none

    /// Makes the speaker and touches no hardware; nil for `none`.
    static func speaker(
        from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> (any ChirpSpeaker)? {
        let kind: SpeakerKind = try reader.word("kind")
        let speaker: (any ChirpSpeaker)?
        switch kind {
        case .alsa: speaker = try ALSASpeaker(from: &reader)
        case .emulated: speaker = try EmulatedSpeaker(from: &reader, in: surroundings)
        case .none: speaker = nil
        }
        try reader.finish()
        return speaker
    }
}
