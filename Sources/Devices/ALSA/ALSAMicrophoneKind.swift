internal import Platform
package import Protocol

/// `alsa` in the configuration: a sound card that captures.
package enum ALSAMicrophoneKind: DeviceKind {
    package static let name = "alsa"

    /// Keys: `card` and `device`, or `pcm`; `rate`, `channels`, `format`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        var options = ALSAMicrophone.Options(name: try PCMName(from: &reader))
        options.rate = Int(try reader.integer("rate", default: 48_000, in: 4_000...768_000))
        options.channels = Int(try reader.integer("channels", default: 1, in: 1...64))
        options.format = try reader.word("format", default: .auto)
        return ALSAMicrophone(stream, options)
    }

    package static func attached() -> [DeviceList.Attached] {
        SoundCards.all(.capture).map { entry in
            let name = PCMName(card: entry.card, device: entry.device)
            let port = entry.port.map { ", port \($0)" } ?? ""
            var attached = DeviceList.Attached(
                kind: Self.name, identity: name.description,
                label: "\(entry.label) (card '\(entry.card)', device \(entry.device)\(port))", abilities: [])
            do throws(Errno) {
                let pcm = try PCM(name: name.description, .capture)
                attached.abilities = pcm.abilities()
                pcm.close()
            } catch {
                attached.problem =
                    ALSAFault(
                        error, during: .open, name: name.description,
                        holder: {
                            SoundCards.node(of: name, .capture).map { DeviceHolder.words(for: $0) } ?? "another program"
                        }
                    ).cause
            }
            return attached
        }
    }
}
