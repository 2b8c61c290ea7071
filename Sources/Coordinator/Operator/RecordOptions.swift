internal import Episode
package import Platform
package import Protocol
package import Timing

/// What `downbeat record` was asked for, from its options and the rig's configuration.
package struct RecordOptions: Sendable {
    package static let syntax = CommandSyntax(
        program: "downbeat record",
        summary: "Record one take on all hosts of the rig, bring it home, merge it and judge it.",
        options: [
            CommandOption("duration", short: "d", value: "SECONDS", help: "how long; the stop chirp comes then"),
            CommandOption("until-stopped", help: "until Ctrl-C (the same as without a duration)"),
            CommandOption("task", short: "t", value: "TEXT", help: "what is done in the take"),
            CommandOption(
                "session", short: "s", value: "NAME", help: "the sitting that it belongs to (session-<date>)"),
            CommandOption("participant", short: "p", value: "NAME", help: "who is recorded"),
            CommandOption("policy", value: "POLICY", help: "what absent hosts and streams do: strict, warn or allow"),
            CommandOption("hosts", value: "A,B", help: "only these hosts"),
            CommandOption("leader", value: "HOST", help: "the host that plays the chirps"),
            CommandOption("chirp", value: "PRESET", help: "ultrasonic, audible, custom (of rig.json5) or off"),
            CommandOption("one-way", help: "only the leader plays; the others don't answer in turn"),
            CommandOption("countdown", value: "SECONDS", help: "count down before the start"),
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("no-ingest", help: "leave the files on the hosts; 'downbeat ingest' brings them later"),
            CommandOption("json", help: "print one JSON object at the end, and progress to standard error"),
        ],
        example: "downbeat record --duration 10 --task \"pick cup\"")

    package var duration: Interval?
    package var task: String
    package var session: SessionID
    package var participant: String
    package var policy: AbsencePolicy
    package var hosts: [HostID]?
    package var leader: HostID?
    package var chirp: ChirpPreset
    package var playsTurns: Bool
    package var chirpSpec: ChirpSpec?
    package var checksSound: Bool
    package var countdown: Int
    package var ingests: Bool
    package var json: Bool

    /// Options come before the configuration, and that before the defaults.
    package init(
        _ parsed: CommandSyntax.Parsed, _ rig: RigConfiguration, now: Timestamp<WallTime>
    ) throws(UsageError) {
        if let text = parsed.value("duration") {
            guard let seconds = Double(text), seconds > 0, seconds <= 604_800 else {
                throw Self.wrong("duration", text, "seconds from 0.1 to 604800")
            }
            guard !parsed.has("until-stopped") else {
                throw UsageError(
                    program: Self.syntax.program, message: "--duration and --until-stopped exclude each other")
            }
            duration = .seconds(max(0.1, seconds))
        }
        task = parsed.value("task") ?? rig.task
        participant = parsed.value("participant") ?? rig.participant
        session = try Self.session(parsed, rig, now)
        policy = try Self.word("policy", parsed) ?? rig.policy
        chirp = try Self.word("chirp", parsed) ?? rig.chirp
        playsTurns = rig.playsTurns && !parsed.has("one-way")
        chirpSpec = rig.customChirp
        guard chirp != .custom || chirpSpec != nil else {
            throw Self.wrong("chirp", "custom", "ultrasonic, audible or off: rig.json5 has no 'custom_chirp'")
        }
        checksSound = rig.checksSound
        hosts = try Self.hosts(parsed)
        leader = rig.leader
        if let text = parsed.value("leader") {
            guard let host = HostID(rawValue: text) else { throw Self.wrong("leader", text, "the name of a host") }
            leader = host
        }
        countdown = rig.countdown
        if let text = parsed.value("countdown") {
            guard let seconds = Int(text), (0...60).contains(seconds) else {
                throw Self.wrong("countdown", text, "a whole number from 0 to 60")
            }
            countdown = seconds
        }
        ingests = !parsed.has("no-ingest")
        json = parsed.has("json")
    }

    private static func session(
        _ parsed: CommandSyntax.Parsed, _ rig: RigConfiguration, _ now: Timestamp<WallTime>
    ) throws(UsageError) -> SessionID {
        if let text = parsed.value("session") {
            guard let session = SessionID(rawValue: text) else { throw wrong("session", text, SessionID.rule) }
            return session
        }
        return rig.session ?? SessionID(unchecked: "session-\(UTC(now).iso.prefix(10))")
    }

    /// "a,b" as hosts; nil when the option isn't there.
    package static func hosts(_ parsed: CommandSyntax.Parsed) throws(UsageError) -> [HostID]? {
        guard let text = parsed.value("hosts") else { return nil }
        var hosts: [HostID] = []
        for part in text.split(separator: ",") {
            guard let host = HostID(rawValue: String(part)) else {
                throw wrong("hosts", text, "names of hosts with commas between them")
            }
            if !hosts.contains(host) { hosts.append(host) }
        }
        guard !hosts.isEmpty else { throw wrong("hosts", text, "names of hosts with commas between them") }
        return hosts
    }

    private static func word<T: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ parsed: CommandSyntax.Parsed
    ) throws(UsageError) -> T? {
        guard let text = parsed.value(name) else { return nil }
        guard let word = T(rawValue: text) else {
            throw wrong(name, text, T.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return word
    }

    private static func wrong(_ name: String, _ text: String, _ legal: String) -> UsageError {
        UsageError(program: syntax.program, message: "--\(name) is '\(text)'; legal is \(legal)")
    }

    /// The take for the hosts that are meant.
    package func settings(
        hosts: [HostID], firstReady: HostID, rig: RigConfiguration, now: Timestamp<WallTime>
    ) -> TakeSettings {
        var generator = SystemRandomNumberGenerator()
        let suffix = (0..<6).map { _ in String(Int.random(in: 0...15, using: &generator), radix: 16) }.joined()
        var settings = TakeSettings(
            session: session, episode: EpisodeID(unchecked: "ep_\(UTC(now).compact)_\(suffix)"), task: task,
            participant: participant, hosts: hosts, leader: leader ?? firstReady, isLeaderFixed: leader != nil,
            primary: rig.primary, chirp: chirp, chirpSpec: chirp == .custom ? chirpSpec : nil, playsTurns: playsTurns,
            speakerDistances: Dictionary(
                rig.hosts.compactMap { host in host.speakerDistance.map { (host.host, $0) } },
                uniquingKeysWith: { first, _ in first }), policy: policy, duration: duration, countdown: countdown,
            reserveBytes: rig.reserveBytes, ingests: ingests, timing: rig.timing)
        settings.checksSound = checksSound ? true : nil
        return settings
    }
}
