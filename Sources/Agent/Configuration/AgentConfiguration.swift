package import Devices
package import Episode
internal import Platform
package import Protocol

/// What `agent.json5` says, checked key by key; the devices are made and not touched.
package struct AgentConfiguration: Sendable {
    /// Where the agent can be reached; port 0 takes a free one.
    package struct Listen: Sendable, Hashable {
        /// "*" for all interfaces, or a numeric address.
        package var address = "*"
        package var commandPort: UInt16 = 0
        package var bulkPort: UInt16 = 0
        package var clockPort: UInt16 = 0

        package init() {}
    }

    package var host: HostID
    package var listen = Listen()
    /// In the order of the file, the primary stream first.
    package var devices: [any CaptureDevice] = []
    /// Nil: this host plays no chirps.
    package var speaker: (any ChirpSpeaker)?
    package var air: AirPlace?
    /// Whose sound is heard in which video.
    package var sound = SoundChoice()
    /// How pictures are encoded that a camera hasn't compressed.
    package var encoding = VideoFileWriter.Encoding()
    /// Free bytes that are never used up, whatever the coordinator's own reserve is.
    package var reserveBytes: Int64 = Self.standardReserve

    package static let standardReserve: Int64 = 1 << 30

    /// A host without streams: it can join a rig and list its devices.
    package init(host: HostID) { self.host = host }

    /// Reads a file; `hostID` is the name from the command line, which comes before the file's, and `machineName` the
    /// host's name when nothing else names it.
    ///
    /// Throws `ConfigReader.Invalid` or `SystemError`, each one sentence.
    package static func read(
        _ path: String, hostID: String? = nil, machineName: String = StateFolder.machineName
    ) throws -> AgentConfiguration {
        let text = try Files.read(path, limit: 1 << 20)
        return try AgentConfiguration(file: path, text: text, hostID: hostID, machineName: machineName)
    }

    package init(
        file: String, text: [UInt8], hostID: String? = nil, machineName: String = StateFolder.machineName
    ) throws(ConfigReader.Invalid) {
        var reader = try ConfigReader(file: file, text: text)
        let named = try reader.string("host_id", default: machineName, legal: HostID.rule, check: HostID.isLegal)
        guard let host = HostID(rawValue: hostID ?? named) else {
            throw ConfigReader.Invalid(
                description: "'\(hostID ?? named)' can't be a host's name; legal is \(HostID.rule)")
        }
        self.host = host
        if var listen = try reader.object("listen") { self.listen = try Self.listen(&listen) }
        if var air = try reader.object("air") { self.air = try Self.air(&air) }
        reserveBytes = try reader.integer("reserve_bytes", default: Self.standardReserve, in: 1 << 20...1 << 50)
        let surroundings = Surroundings(host: host, air: air)
        if var speaker = try reader.object("speaker") {
            self.speaker = try SpeakerKind.speaker(from: &speaker, in: surroundings)
        }
        devices = try Self.devices(&reader, in: surroundings)
        sound = try SoundChoice(from: &reader, streams: devices.map(\.stream))
        if var encoder = try reader.object("encoder") {
            encoding.engine = try encoder.word("engine", default: .software)
            encoding.quality = Int(try encoder.integer("quality", default: 21, in: 0...51))
            encoding.threads = Int(try encoder.integer("threads", default: 0, in: 0...64))
            try encoder.finish()
        }
        try reader.finish()
    }

    private static func listen(_ reader: inout ConfigReader) throws(ConfigReader.Invalid) -> Listen {
        var listen = Listen()
        listen.address = try reader.string(
            "address", default: "*", legal: "'*' for all interfaces, or a numeric address such as '10.0.0.5' or '::1'"
        ) { text in
            text == "*"
                || (!text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || $0 == 46 })
                || text.contains(":")
        }
        let ports: ClosedRange<Int64> = 0...65_535
        listen.commandPort = UInt16(clamping: try reader.integer("command_port", default: 0, in: ports))
        listen.bulkPort = UInt16(clamping: try reader.integer("bulk_port", default: 0, in: ports))
        listen.clockPort = UInt16(clamping: try reader.integer("clock_port", default: 0, in: ports))
        if listen.commandPort != 0 && listen.commandPort == listen.bulkPort {
            throw reader.invalid(
                "bulk_port", .integer(Int64(listen.bulkPort)), legal: "a port other than 'command_port', or 0")
        }
        try reader.finish()
        return listen
    }

    private static func air(_ reader: inout ConfigReader) throws(ConfigReader.Invalid) -> AirPlace {
        let folder = try reader.string("folder", legal: "the path of a folder that all emulated hosts share") {
            !$0.isEmpty
        }
        let position = try reader.numbers("position", count: 3, default: [0, 0, 0])
        guard position.allSatisfy({ abs($0) <= 1000 }) else {
            throw reader.invalid(
                "position", .array(position.map { .number($0) }),
                legal: "a list of 3 numbers from -1000 to 1000, in metres")
        }
        let noise = try reader.number("noise", default: 0.001, in: 0...1)
        try reader.finish()
        return AirPlace(folder: folder, position: position, noise: noise)
    }

    private static func devices(
        _ reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> [any CaptureDevice] {
        var devices: [any CaptureDevice] = []
        for var entry in try reader.objects("streams") {
            let device = try DeviceCatalog.device(from: &entry, in: surroundings)
            if devices.contains(where: { $0.stream == device.stream }) {
                throw entry.invalid(
                    "id", .string(device.stream.rawValue),
                    legal: "an id that no other stream of this host has, since files are named by it")
            }
            devices.append(device)
        }
        guard let primary = try reader.optionalString("primary_stream", legal: "the id of one of 'streams'") else {
            return devices
        }
        guard let index = devices.firstIndex(where: { $0.stream.rawValue == primary }) else {
            let ids = devices.map { "'\($0.stream)'" }.joined(separator: ", ")
            throw reader.invalid("primary_stream", .string(primary), legal: "one of \(ids.isEmpty ? "no stream" : ids)")
        }
        devices.insert(devices.remove(at: index), at: 0)
        return devices
    }
}
