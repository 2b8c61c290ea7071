package import Protocol

/// `iio` in the configuration: a sensor of the kernel's IIO.
package enum IIOIMUKind: DeviceKind {
    package static let name = "iio"

    /// Keys: `device`, `rate`, `mode`, `apply_mount_matrix`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        var options = IIOIMU.Options(
            device: try reader.string(
                "device", legal: "a sensor's identity, serial number or name (`downbeat-agent devices` lists them)",
                check: { !$0.isEmpty }))
        if reader.value("rate") != nil { options.rate = try reader.number("rate", in: 0.1...10_000) }
        options.mode = try reader.word("mode", default: .auto)
        options.turns = try reader.bool("apply_mount_matrix", default: true)
        return IIOIMU(stream, options)
    }

    package static func attached() -> [DeviceList.Attached] {
        IIOFolder.all().compactMap { folder in
            let shape = IIOShape(folder, turns: true)
            guard !shape.converter.channels.isEmpty else { return nil }
            let channels = shape.converter.channels.map { "\($0.name) in \($0.unit.isEmpty ? "1" : $0.unit)" }
            let rate = IIORates.read(folder).map { ["\($0) rows/s"] } ?? []
            return DeviceList.Attached(
                kind: name, identity: folder.identity,
                label: "\(folder.name)\(shape.elements.isEmpty ? ", without a buffer" : "")",
                abilities: [channels.joined(separator: ", ")] + rate)
        }
    }
}
