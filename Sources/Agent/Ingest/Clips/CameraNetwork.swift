internal import Devices
internal import Platform
internal import Protocol
internal import Timing

/// Takes the host into a camera's Wi-Fi and back.
///
/// What was there before is in a journal before anything is changed, so that it comes back in every case: after a failure,
/// and after a `kill -9` at the next start. The camera's network never becomes the way to anywhere else.
///
/// Concurrency: blocking; used by one thread.
struct CameraNetwork {
    /// What to put back.
    struct Journal: Codable, Hashable {
        /// Our own connection's name.
        var profile: String
        var interface: String
        /// UUIDs of what was up on the adapter.
        var previous: [String]
    }

    struct Failure: Error, CustomStringConvertible { let description: String }

    private static let joinTries = 2
    private static let joinPause = Interval.milliseconds(1_500)

    let tool: any NetworkTool
    let path: String

    // MARK: There

    /// Joins; gives back the adapter's name.
    func join(_ network: String, password: String, interface: String?) throws -> String {
        try restore()
        let adapter = try interface ?? self.adapter()
        let profile = "downbeat \(network)"
        let journal = Journal(profile: profile, interface: adapter, previous: try active(on: adapter))
        try AtomicFile.write(try JSONText.encodePretty(journal), to: path, mode: 0o600)
        do {
            try make(profile, network, password, adapter)
        } catch {
            try restore()
            throw error
        }
        return adapter
    }

    private func make(_ profile: String, _ network: String, _ password: String, _ adapter: String) throws {
        _ = try ask(["connection", "delete", "id", profile], mayFail: true)
        try ask([
            "connection", "add", "type", "wifi", "con-name", profile, "ifname", adapter, "ssid", network,
            "connection.autoconnect", "no", "ipv4.never-default", "yes", "ipv6.method", "ignore",
            "wifi-sec.key-mgmt", "wpa-psk", "wifi-sec.psk", password,
        ])
        var last = ""
        for attempt in 1...Self.joinTries {
            do {
                try ask(["-w", "30", "connection", "up", "id", profile], within: .seconds(40))
                return
            } catch let error as Failure {
                last = error.description
                if attempt < Self.joinTries { Pause.now(Self.joinPause) }
            }
        }
        throw Failure(
            description:
                "the network '\(network)' can't be joined with \(adapter): \(last); see whether the camera is on and "
                + "near, and whether its Wi-Fi password is the configuration's")
    }

    /// The first Wi-Fi adapter that isn't in use, else the first one.
    private func adapter() throws -> String {
        let lines = try ask(["-t", "-f", "DEVICE,TYPE,STATE", "device", "status"]).split(separator: "\n")
        let adapters = lines.compactMap { line -> (name: String, isFree: Bool)? in
            let fields = Self.fields(line)
            guard fields.count >= 3, fields[1] == "wifi" else { return nil }
            return (fields[0], fields[2] == "disconnected")
        }
        guard let one = adapters.first(where: \.isFree) ?? adapters.first else {
            throw Failure(description: "this host has no Wi-Fi adapter; plug one in, or use the camera's USB cable")
        }
        return one.name
    }

    private func active(on adapter: String) throws -> [String] {
        try ask(["-t", "-f", "UUID,DEVICE,NAME", "connection", "show", "--active"]).split(separator: "\n")
            .compactMap { line in
                let fields = Self.fields(line)
                // Ours may be up since an earlier run.
                guard fields.count >= 3, fields[1] == adapter, !fields[2].hasPrefix("downbeat ") else { return nil }
                return fields[0]
            }
    }

    // MARK: And back

    /// Whether there is something to put back.
    var isAway: Bool { Files.exists(path) }

    /// Puts back what the journal says; nothing happens when there is none.
    ///
    /// - Throws: `Failure` when the old connection can't be had back; the journal then stays for another try.
    func restore() throws {
        guard isAway else { return }
        let journal: Journal
        do {
            journal = try JSONText.decode(Journal.self, from: try Files.read(path, limit: 1 << 16))
        } catch {
            Log("wifi").error("\(path) can't be read, and which network was there before isn't known: \(error)")
            try Files.rename(path, to: "\(path).broken")
            return
        }
        _ = try ask(["-w", "10", "connection", "down", "id", journal.profile], within: .seconds(15), mayFail: true)
        _ = try ask(["connection", "delete", "id", journal.profile], mayFail: true)
        var problems: [String] = []
        for uuid in journal.previous {
            do {
                try ask(
                    ["-w", "30", "connection", "up", "uuid", uuid, "ifname", journal.interface], within: .seconds(40))
            } catch { problems.append("\(error)") }
        }
        guard problems.isEmpty else {
            throw Failure(
                description: "the network that \(journal.interface) had before can't be had back: "
                    + problems.joined(separator: "; ") + "; it is tried again at the next ingest or start")
        }
        try Files.remove(path)
    }

    // MARK: The tool

    @discardableResult
    private func ask(_ words: [String], within limit: Interval = .seconds(15), mayFail: Bool = false) throws -> String {
        let result: (status: Int32, output: String, errors: String)
        do { result = try tool.run(words, within: limit) } catch let error as SystemError {
            throw Failure(
                description: error.errno == .noSuchFile
                    ? "nmcli isn't there; install NetworkManager, or use the camera's USB cable" : "nmcli: \(error)")
        }
        guard result.status == 0 || mayFail else {
            let said = result.errors.split(separator: "\n").first.map(String.init) ?? "status \(result.status)"
            throw Failure(description: "nmcli \(words.first { !$0.hasPrefix("-") && Int($0) == nil } ?? ""): \(said)")
        }
        return result.output
    }

    /// The fields of a line of `nmcli -t`, in which a colon inside a field has a backslash.
    static func fields(_ line: some StringProtocol) -> [String] {
        var (fields, isEscaped) = ([""], false)
        for character in line {
            if isEscaped {
                fields[fields.count - 1].append(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == ":" {
                fields.append("")
            } else {
                fields[fields.count - 1].append(character)
            }
        }
        return fields
    }
}
