internal import Coordinator
internal import Platform
internal import Protocol
internal import Timing

/// Runs a coordinator around a command.
enum RigRun {
    /// The coordinator lives as long as the body; Ctrl-C reaches `interrupted`, and a take that it began.
    static func with<Value: Sendable>(
        _ options: SessionCoordinator.Options, printer: LivePrinter,
        _ body: @escaping @Sendable (SessionCoordinator) async throws -> Value
    ) async throws -> Value {
        let rig = try SessionCoordinator(options)
        // Unstructured: the rig's life and the notes are ended here, after the body, whatever became of it.
        let life = Task { await rig.run() }
        let notes = Task { for await note in rig.notes { printer.note(note) } }
        defer { notes.cancel() }
        do {
            let value = try await body(rig)
            await end(rig, life)
            await notes.value
            return value
        } catch {
            await end(rig, life)
            await notes.value
            throw error
        }
    }

    private static func end(_ rig: SessionCoordinator, _ life: Task<Void, Never>) async {
        await rig.giveBackLeases()
        life.cancel()
        await life.value
    }

    /// Does something while Ctrl-C is taken as `interrupted`.
    static func untilInterrupted<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value, interrupted: @escaping @Sendable () async -> Void
    ) async throws -> Value {
        let loop = EventLoop(name: "signals")
        let signals = try Signals.stream(on: loop)
        // Unstructured: it ends with the work.
        let listener = Task { for await _ in signals { await interrupted() } }
        defer { listener.cancel() }
        return try await work()
    }

    /// `--wait` in seconds.
    static func patience(_ parsed: CommandSyntax.Parsed, program: String) throws -> Interval {
        guard let text = parsed.value("wait") else { return .seconds(5) }
        guard let seconds = Double(text), seconds >= 0, seconds <= 3600 else {
            throw UsageError(program: program, message: "--wait is '\(text)'; legal is seconds from 0 to 3600")
        }
        return .seconds(seconds)
    }

    /// One sentence for a rig in which nobody answers.
    static func nobody(_ view: RigView, expected: [HostID]) -> CommandFailure {
        if expected.isEmpty {
            let strangers = view.hosts.map(\.host.rawValue)
            let seen = strangers.isEmpty ? "" : " (seen without having joined: \(strangers.joined(separator: ", ")))"
            return CommandFailure(
                .notFound,
                "no host has joined this rig\(seen); run 'downbeat invite' here, and 'downbeat-agent join TOKEN' on each "
                    + "capture PC")
        }
        for host in view.hosts where expected.contains(host.host) {
            if let problem = host.problem, problem.isRefusal {
                let text = problem.text.hasPrefix("host ") ? problem.text : "host \(host.host): \(problem.text)"
                return CommandFailure(.refused, text)
            }
        }
        let why = view.discoveryProblem.map { "; \($0)" } ?? ""
        return CommandFailure(
            .notFound,
            "no agent found: \(expected.map(\.rawValue).joined(separator: ", ")) \(expected.count == 1 ? "doesn't" : "don't") "
                + "answer; check that downbeat-agent runs there, that this machine is on the same network, and that mDNS "
                + "(UDP 5353) or the addresses in rig.json5 get through\(why)")
    }

    /// The folder of an episode at home.
    static func folder(_ name: String, home: String) throws -> String {
        let found = SealedEpisode.folders(home: home, session: nil, names: [name])
        let there = found.filter { Files.isFolder($0) }
        if there.count > 1 {
            throw CommandFailure(
                .refused, "\(name) is in several sessions; name its folder: \(there.joined(separator: ", "))")
        }
        guard let folder = there.first else {
            throw CommandFailure(.notFound, "\(name): there is no such episode here; 'downbeat episodes' lists them")
        }
        return folder
    }

    /// A word as an episode's name.
    static func episode(_ word: String) throws -> EpisodeID {
        guard let episode = EpisodeID(rawValue: FilePath.name(of: word)) else {
            throw CommandFailure(.usage, "'\(word)' is no episode; legal is \(EpisodeID.rule)")
        }
        return episode
    }

    static func print(_ json: JSONValue) throws {
        StandardOutput.write(String(decoding: try JSONText.encode(json), as: UTF8.self) + "\n")
    }
}
