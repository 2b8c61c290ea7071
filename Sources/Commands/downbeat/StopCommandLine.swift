internal import Coordinator
internal import Platform
internal import Protocol

/// `downbeat stop`: ends a take whose coordinator is gone.
enum StopCommandLine {
    static let syntax = CommandSyntax(
        program: "downbeat stop",
        summary: "End a take that runs on the hosts without a coordinator, and bring it home.", operands: "[EPISODE]",
        options: [
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("no-ingest", help: "leave the files on the hosts"),
            CommandOption("json", help: "print one JSON object at the end"),
        ],
        example: "downbeat stop")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let named = try parsed.operands.first.map { try RigRun.episode($0) }
        return try await ResumedTake.run(parsed, surroundings, program: syntax.program, hosts: nil) { rig in
            let running = await rig.runningEpisodes()
            guard let episode = named ?? running.first else {
                throw CommandFailure(.notFound, "no host that is there records anything")
            }
            if named == nil, running.count > 1 {
                throw CommandFailure(
                    .refused,
                    "several takes run: name one of \(running.map(\.rawValue).joined(separator: ", "))")
            }
            return try await rig.stop(episode, ingests: !parsed.has("no-ingest"))
        }
    }
}

/// `downbeat ingest`: brings the files of finished takes home.
enum IngestCommand {
    static let syntax = CommandSyntax(
        program: "downbeat ingest",
        summary: "Bring the files of a finished take home, merge and judge it; goes on where it broke off.",
        operands: "EPISODE",
        options: [
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("json", help: "print one JSON object at the end"),
        ],
        example: "downbeat ingest ep_20260411_152930_a1b2c3")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        guard parsed.operands.count == 1, let word = parsed.operands.first else {
            throw UsageError(program: syntax.program, message: "name one episode")
        }
        let episode = try RigRun.episode(word)
        let record = TakeJournal(home: surroundings.home).record(of: episode)
        if record?.phase == .sealed { throw ResumeError.sealed(episode) }
        let hosts = record?.hostsWithFilesElsewhere
        return try await ResumedTake.run(
            parsed, surroundings, program: syntax.program, hosts: hosts?.isEmpty == false ? hosts : nil,
            mayBeAlone: hosts?.isEmpty == true
        ) { rig in try await rig.ingest(episode) }
    }
}

/// What `stop` and `ingest` have in common.
enum ResumedTake {
    static func run(
        _ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings, program: String, hosts: [HostID]?,
        mayBeAlone: Bool = false,
        _ work: @escaping @Sendable (SessionCoordinator) async throws -> TakeReport
    ) async throws -> ExitCode {
        let patience = try RigRun.patience(parsed, program: program)
        guard let lock = try TakeLock(home: surroundings.home) else {
            throw CommandFailure(.refused, "another downbeat commands this rig now; wait for it, or stop it")
        }
        defer { lock.release() }
        let isJSON = parsed.has("json")
        let printer = LivePrinter(isJSON ? .errors : .output)
        let options = SessionCoordinator.Options(
            home: surroundings.home, configuration: surroundings.configuration, hosts: hosts, commands: true)
        let report = try await RigRun.with(options, printer: printer) { rig in
            if !mayBeAlone {
                let expected = await rig.expected
                guard await !rig.waitForHosts(patience).isEmpty else {
                    throw RigRun.nobody(await rig.view(), expected: expected)
                }
            }
            return try await RigRun.untilInterrupted {
                try await LiveTake.follow(rig, printer) { try await work(rig) }
            } interrupted: {
                await rig.interrupt()
            }
        }
        if isJSON {
            try RigRun.print(TakeSummary.json(report))
        } else {
            for line in TakeSummary.lines(report, color: Surroundings.hasColor) { StandardOutput.write(line + "\n") }
        }
        return TakeSummary.exitCode(report)
    }
}
