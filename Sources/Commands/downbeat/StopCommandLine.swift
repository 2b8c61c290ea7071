internal import Coordinator
internal import Episode
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
            CommandOption("from", value: "DIR", help: "take a wrist camera's clips out of this folder"),
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("json", help: "print one JSON object at the end"),
        ],
        example: "downbeat ingest ep_20260411_152930_a1b2c3")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        guard parsed.operands.count == 1, let word = parsed.operands.first else {
            throw UsageError(program: syntax.program, message: "name one episode")
        }
        let episode = try RigRun.episode(word)
        if let source = parsed.value("from") { return try await byHand(word, from: source, parsed, surroundings) }
        let record = TakeJournal(home: surroundings.home).record(of: episode)
        var hosts = record?.hostsWithFilesElsewhere
        if record?.phase == .sealed {
            hosts = (try? RigRun.folder(word, home: surroundings.home)).map { ClipsAtHome.waiting(in: $0) }
            guard hosts?.isEmpty == false else { throw ResumeError.sealed(episode) }
        }
        return try await ResumedTake.run(
            parsed, surroundings, program: syntax.program, hosts: hosts?.isEmpty == false ? hosts : nil,
            mayBeAlone: hosts?.isEmpty == true
        ) { rig in try await rig.ingest(episode) }
    }

    /// Clips that a person has copied: into what is home, and merged again.
    private static func byHand(
        _ word: String, from source: String, _ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings
    ) async throws -> ExitCode {
        guard Files.isFolder(source) else { throw CommandFailure(.notFound, "\(source): there is no such folder") }
        let folder = try RigRun.folder(word, home: surroundings.home)
        let name = FilePath.name(of: folder)
        guard !ClipsAtHome.waiting(in: folder).isEmpty else {
            throw CommandFailure(.refused, "\(name): it waits for no clip")
        }
        let journal = TakeJournal(home: surroundings.home)
        var record = EpisodeID(rawValue: name).flatMap { journal.record(of: $0) }
        // What came with the hosts' lists is looked at anew.
        for index in record?.hosts.indices ?? 0..<0 { record?.hosts[index].files = nil }
        let known = record
        let (report, seal) = try await EventLoop(name: "clips").run {
            let report = try ClipsAtHome.place(from: source, in: folder)
            return (report, try EpisodeSealer.mergeAgain(folder: folder, record: known, journal: journal))
        }
        if parsed.has("json") {
            try RigRun.print(
                .object([
                    "episode": .string(name), "verdict": .string(seal.verdict.color.rawValue),
                    "placed": .array(report.placed.map { .string($0) }),
                    "failed": .array(report.failed.map { .string($0) }), "folder": .string(folder),
                ]))
        } else {
            for line in report.placed { StandardOutput.write("\(line)\n") }
            for line in report.failed { StandardOutput.write("not found: \(line)\n") }
            StandardOutput.write("\(name): \(seal.verdict.color.rawValue)\n")
        }
        return report.failed.isEmpty && seal.verdict.color != .red ? .good : .failed
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
