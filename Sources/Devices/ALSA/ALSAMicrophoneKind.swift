internal import Platform
package import Protocol

/// `alsa` in the configuration: a sound card that captures.
package enum ALSAMicrophoneKind: DeviceKind {
    package static let name = "alsa"

    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        ALSAMicrophone(stream, try ALSAMicrophoneOptions(from: &reader))
    }

    package static func attached() -> [DeviceList.Attached] { attached(SoundSystem.alsa) }

    static func attached(_ system: SoundSystem) -> [DeviceList.Attached] {
        let cards = system.cards(.capture)
        return cards.map { card in
            let name = PCMName(card: card.id, device: card.device)
            // Of two of one make only the port tells which is which.
            let isDouble = cards.contains { $0.make == card.make && $0.number != card.number }
            let hint = isDouble ? "; there are two of them: give the port too" : ""
            let place = card.place.isEmpty ? "" : ", \(card.place)"
            var attached = DeviceList.Attached(
                kind: Self.name, identity: name.description,
                label: "\(card.label) (card '\(card.id)', device \(card.device)\(place)\(hint))", abilities: [])
            do throws(Errno) {
                let pcm = try system.open(name.description, .capture)
                attached.abilities = pcm.abilities()
                pcm.close()
            } catch {
                attached.problem = system.fault(error, .open, name, .capture).cause
            }
            return attached
        }
    }
}
