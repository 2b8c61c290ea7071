internal import Platform
package import Protocol

/// `v4l2` in the configuration: a camera of the kernel.
package enum V4L2CameraKind: DeviceKind {
    package static let name = "v4l2"

    /// Keys: `device`, `format`, `width`, `height`, `rate`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        let device = try reader.string(
            "device",
            legal: "a camera's link below /dev/v4l, serial number, bus or name, as `downbeat-agent devices` shows them"
        ) { !$0.isEmpty }
        var options = V4L2Camera.Options(device: device)
        options.wish.format = try reader.word("format", default: .auto)
        options.wish.width = Int(try reader.integer("width", default: 1280, in: 16...16384))
        options.wish.height = Int(try reader.integer("height", default: 720, in: 16...16384))
        options.wish.rate = try reader.number("rate", default: 30, in: 0.1...1000)
        return V4L2Camera(stream, options)
    }

    package static func attached() -> [DeviceList.Attached] {
        let nodes = CameraNodes.all()
        return nodes.filter { $0.capturesVideo || $0.problem != nil }.map { node in
            var entry = DeviceList.Attached(
                kind: name, identity: node.identity(among: nodes), label: "\(node.card) (now \(node.path))",
                abilities: [], problem: node.problem)
            if let serial = node.serial { entry.label += ", serial \(serial)" }
            if let port = try? V4L2Node(path: node.path) {
                entry.abilities = V4L2Choice.abilities(port.offers())
                port.close()
            }
            return entry
        }
    }
}
