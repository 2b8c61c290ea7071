internal import Platform
package import Protocol
internal import Timing

/// What `rig.json5` says; without the file every trusted host takes part, and the defaults hold.
package struct RigConfiguration: Sendable, Hashable {
    /// A host that a take needs.
    package struct Host: Sendable, Hashable {
        package var host: HostID
        /// "address[:clockPort]", asked directly where multicast is blocked.
        package var address: String?
        /// Metres between its speaker and its microphone.
        package var speakerDistance: Double?

        package init(host: HostID, address: String? = nil, speakerDistance: Double? = nil) {
            self.host = host
            self.address = address
            self.speakerDistance = speakerDistance
        }
    }

    /// The file; nil when there is none.
    package var file: String?
    package var hosts: [Host] = []
    package var usesMulticast = true
    package var leader: HostID?
    package var primary: String?
    package var chirp = ChirpPreset.ultrasonic
    /// Whether all hosts with a speaker play in turn.
    package var playsTurns = true
    /// The start chirp of the preset `custom`.
    package var customChirp: ChirpSpec?
    /// Whether the microphones are asked before each take if they hear the leader.
    package var checksSound = false
    package var policy = AbsencePolicy.strict
    package var countdown = 0
    /// Free bytes on an agent below which no take begins.
    package var reserveBytes: Int64 = 2_000_000_000
    package var timing = TakeTiming()
    package var session: SessionID?
    package var participant = ""
    package var task = ""
    package var server: String?

    package init() {}

    /// Reads a file.
    ///
    /// - Throws: `SystemError`, `ConfigReader.Invalid`.
    package static func load(_ path: String) throws -> RigConfiguration {
        try RigConfiguration(file: path, text: Files.read(path, limit: 1 << 20))
    }

    package init(file: String, text: [UInt8]) throws(ConfigReader.Invalid) {
        self.file = file
        var top = try ConfigReader(file: file, text: text)
        for var entry in try top.objects("hosts") {
            let name = try entry.string("host", legal: HostID.rule, check: HostID.isLegal)
            let address = try entry.optionalString("address", legal: "an address, with or without ':port'")
            let distance = try entry.number("speaker_distance_m", default: .nan, in: 0...5)
            try entry.finish()
            hosts.append(
                Host(
                    host: HostID(unchecked: name), address: address, speakerDistance: distance.isNaN ? nil : distance))
        }
        try refuseTwins(top)
        if var discovery = try top.object("discovery") {
            usesMulticast = try discovery.bool("multicast", default: true)
            try discovery.finish()
        }
        if let name = try top.optionalString("leader") {
            leader = try member(name, "leader", top)
        }
        if let text = try top.optionalString("primary", legal: "'<host>.<stream>'") {
            guard hosts.isEmpty || hosts.contains(where: { text.hasPrefix("\($0.host).") }), text.contains(".") else {
                throw top.invalid("primary", .string(text), legal: "'<host>.<stream>' of one of 'hosts'")
            }
            primary = text
        }
        server = try top.optionalString("server", legal: "a URL that begins with http:// or https://")
        if let server, !server.hasPrefix("http://") && !server.hasPrefix("https://") {
            throw top.invalid("server", .string(server), legal: "a URL that begins with http:// or https://")
        }
        try readTake(&top)
        try readSession(&top)
        try top.finish()
    }

    private mutating func readTake(_ top: inout ConfigReader) throws(ConfigReader.Invalid) {
        guard var take = try top.object("take") else { return }
        policy = try take.word("policy", default: policy)
        chirp = try take.word("chirp", default: chirp)
        playsTurns = try take.bool("two_way", default: true)
        if var custom = try take.object("custom_chirp") { customChirp = try Self.chirp(&custom) }
        guard chirp != .custom || customChirp != nil else {
            throw take.invalid("custom_chirp", nil, legal: "the figures of the chirp, since 'chirp' is 'custom'")
        }
        checksSound = try take.bool("sound_check", default: false)
        countdown = Int(try take.integer("countdown_s", default: 0, in: 0...60))
        timing.lead = .milliseconds(try take.integer("lead_ms", default: 1500, in: 700...30_000))
        timing.clockLimit = .microseconds(try take.integer("clock_limit_us", default: 5000, in: 1...1_000_000))
        timing.startTimeout = .seconds(Double(try take.integer("start_timeout_s", default: 20, in: 1...120)))
        timing.armTimeout = timing.startTimeout * 2 + .seconds(20)
        timing.limit = .seconds(try take.number("limit_minutes", default: 240, in: 0.1...10_080) * 60)
        reserveBytes = Int64(try take.number("reserve_gb", default: 2, in: 0...100_000) * 1e9)
        try take.finish()
    }

    /// Keys: `from_hz`, `to_hz`, `duration_ms`, `amplitude`, `envelope_ms`.
    private static func chirp(_ reader: inout ConfigReader) throws(ConfigReader.Invalid) -> ChirpSpec {
        let standard = ChirpSpec(fromHz: 0, toHz: 0)
        let spec = ChirpSpec(
            fromHz: try reader.number("from_hz", in: 0...1e6), toHz: try reader.number("to_hz", in: 0...1e6),
            durationMilliseconds: try reader.number("duration_ms", default: standard.durationMilliseconds, in: 0...1e6),
            amplitude: try reader.number("amplitude", default: standard.amplitude, in: 0...1),
            envelopeMilliseconds: try reader.number("envelope_ms", default: standard.envelopeMilliseconds, in: 0...1e6))
        try reader.finish()
        if let objection = spec.objection {
            throw ConfigReader.Invalid(
                description: "\(reader.file): '\(reader.name("from_hz"))' and its figures can't be: \(objection)")
        }
        return spec
    }

    private mutating func readSession(_ top: inout ConfigReader) throws(ConfigReader.Invalid) {
        guard var defaults = try top.object("session") else { return }
        if let name = try defaults.optionalString("name", legal: SessionID.rule) {
            guard let id = SessionID(rawValue: name) else {
                throw defaults.invalid("name", .string(name), legal: SessionID.rule)
            }
            session = id
        }
        participant = try defaults.string("participant", default: "")
        task = try defaults.string("task", default: "")
        try defaults.finish()
    }

    private func member(_ name: String, _ key: String, _ top: ConfigReader) throws(ConfigReader.Invalid) -> HostID {
        guard HostID.isLegal(name), hosts.isEmpty || hosts.contains(where: { $0.host.rawValue == name }) else {
            let names = hosts.map { "'\($0.host)'" }.joined(separator: ", ")
            throw top.invalid(key, .string(name), legal: hosts.isEmpty ? HostID.rule : "one of 'hosts': \(names)")
        }
        return HostID(unchecked: name)
    }

    private func refuseTwins(_ top: ConfigReader) throws(ConfigReader.Invalid) {
        var seen: Set<HostID> = []
        for host in hosts where !seen.insert(host.host).inserted {
            throw top.invalid("hosts", .string(host.host.rawValue), legal: "each host once")
        }
    }
}
