internal import Coordinator
internal import Platform
internal import Protocol

/// `downbeat status`: what each host and stream does now.
enum StatusCommand {
    static let syntax = CommandSyntax(
        program: "downbeat status", summary: "Show what each host and each stream does now, and the takes that run.",
        options: [
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("json", help: "print JSON"),
        ],
        example: "downbeat status")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let patience = try RigRun.patience(parsed, program: syntax.program)
        let options = SessionCoordinator.Options(
            home: surroundings.home, configuration: surroundings.configuration, commands: false)
        let (view, expected, running) = try await RigRun.with(options, printer: LivePrinter(.nowhere)) { rig in
            let (view, expected) = await HostsCommand.look(rig, patience)
            return (view, expected, await rig.runningEpisodes())
        }
        guard view.hosts.contains(where: { $0.presence == .alive }) else {
            throw RigRun.nobody(view, expected: expected)
        }
        if parsed.has("json") {
            try RigRun.print(
                .object([
                    "hosts": .array(view.hosts.map(HostsCommand.json)),
                    "recording": .array(running.map { .string($0.rawValue) }),
                ]))
            return .good
        }
        for line in RigTable.lines(view, width: StandardOutput.columns, color: Surroundings.hasColor) {
            StandardOutput.write(line + "\n")
        }
        for episode in running {
            let names = view.hosts.filter { $0.status?.episode == episode }.map(\.host.rawValue)
            StandardOutput.write(
                "\(episode) is being recorded on \(names.joined(separator: ", ")); 'downbeat stop' ends it\n")
        }
        return .good
    }
}
