package import Protocol
internal import Timing

/// `serial` in the configuration: a sensor that prints lines.
package enum SerialIMUKind: DeviceKind {
    package static let name = "serial"

    /// Keys: `device`, `baud`, `dtr`, `rts`, `rate`, `start`, and the line's layout.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        let device = try reader.string(
            "device", legal: "a path such as '/dev/serial/by-id/usb-…' (`downbeat-agent devices` lists them)",
            check: { $0.hasPrefix("/") })
        var port = SerialPort.Settings(baud: UInt32(try reader.integer("baud", default: 115_200, in: 50...12_000_000)))
        if reader.value("dtr") != nil { port.dtr = try reader.bool("dtr") }
        if reader.value("rts") != nil { port.rts = try reader.bool("rts") }
        let rate: Double? = reader.value("rate") == nil ? nil : try reader.number("rate", in: 0.01...100_000)
        let start = try reader.strings("start", legal: "a list of lines to send")
        return SerialIMU(
            stream,
            SerialIMU.Options(
                device: device, port: port, layout: try LineLayout(from: &reader), rate: rate, start: start))
    }

    package static func attached() -> [DeviceList.Attached] {
        var seen: Set<String> = []
        return SerialNodes.links().filter { seen.insert($0.node).inserted }.map { link, node in
            DeviceList.Attached(
                kind: name, identity: link, label: "serial line \(node)",
                abilities: ["lines of CSV or JSON, as 'channels' describes them"])
        }
    }
}
