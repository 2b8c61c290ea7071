package import Protocol

/// The only list of kinds.
package enum DeviceCatalog {
    package static let kinds: [any DeviceKind.Type] = [
        V4L2CameraKind.self, ALSAMicrophoneKind.self, GloveKind.self, Go3SCameraKind.self,
        EmulatedCameraKind.self, EmulatedMicrophoneKind.self, EmulatedIMUKind.self,
    ]

    /// Makes the device of one entry of `streams` in an agent's configuration.
    package static func device(
        from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        let id = try reader.string("id", legal: StreamID.rule, check: StreamID.isLegal)
        let names = kinds.map { $0.name }
        let kind = try reader.string(
            "kind", legal: "one of \(names.map { "'\($0)'" }.joined(separator: ", "))", check: names.contains)
        for candidate in kinds where candidate.name == kind {
            let device = try candidate.device(StreamID(unchecked: id), from: &reader, in: surroundings)
            try reader.finish()
            return device
        }
        throw reader.invalid("kind", .string(kind), legal: names.joined(separator: ", "))
    }
}
