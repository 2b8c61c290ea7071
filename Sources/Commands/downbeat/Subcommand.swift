internal import Coordinator
internal import Platform

/// One verb of the operator.
struct Subcommand: Sendable {
    let name: String
    let syntax: CommandSyntax
    let run: @Sendable (CommandSyntax.Parsed, Surroundings) async throws -> ExitCode

    /// In the order of the work.
    static let all: [Subcommand] = [
        Subcommand(name: "init", syntax: InitCommand.syntax, run: InitCommand.run),
        Subcommand(name: "invite", syntax: InviteCommand.syntax, run: InviteCommand.run),
        Subcommand(name: "hosts", syntax: HostsCommand.syntax, run: HostsCommand.run),
        Subcommand(name: "status", syntax: StatusCommand.syntax, run: StatusCommand.run),
        Subcommand(name: "check", syntax: CheckCommand.syntax, run: CheckCommand.run),
        Subcommand(name: "record", syntax: RecordOptions.syntax, run: RecordCommand.run),
        Subcommand(name: "stop", syntax: StopCommandLine.syntax, run: StopCommandLine.run),
        Subcommand(name: "episodes", syntax: EpisodesCommand.syntax, run: EpisodesCommand.run),
        Subcommand(name: "ingest", syntax: IngestCommand.syntax, run: IngestCommand.run),
        Subcommand(name: "verify", syntax: VerifyCommand.syntax, run: VerifyCommand.run),
        Subcommand(name: "merge", syntax: MergeCommand.syntax, run: MergeCommand.run),
        Subcommand(name: "align", syntax: AlignCommand.syntax, run: AlignCommand.run),
        Subcommand(name: "upload", syntax: UploadCommand.syntax) { parsed, _ in await UploadCommand.run(parsed) },
        Subcommand(name: "syncserver", syntax: SyncServerCommand.syntax) { parsed, _ in
            await SyncServerCommand.run(parsed)
        },
    ]

    /// Options that all of them have.
    static let common = [
        CommandOption("config", value: "FILE", help: "the rig's configuration (rig.json5 of the usual places)"),
        CommandOption("home", value: "DIR", help: "where state and episodes are ($DOWNBEAT_HOME)"),
    ]

    /// The syntax with the common options.
    var fullSyntax: CommandSyntax {
        CommandSyntax(
            program: syntax.program, summary: syntax.summary, operands: syntax.operands,
            options: syntax.options.filter { !["help", "version"].contains($0.name) } + Subcommand.common,
            example: syntax.example)
    }
}

/// Where a command finds its things.
struct Surroundings: Sendable {
    let home: String
    let configuration: RigConfiguration

    /// Whether colours are welcome: on a terminal, and never with NO_COLOR.
    static var hasColor: Bool { StandardOutput.isTerminal && StateFolder.environment("NO_COLOR") == nil }
}

/// What ends a command with a sentence and a code.
struct CommandFailure: Error, CustomStringConvertible {
    let code: ExitCode
    let description: String

    init(_ code: ExitCode, _ description: String) {
        self.code = code
        self.description = description
    }
}
