internal import Coordinator
internal import Platform
internal import Protocol
internal import Timing
internal import Transport

/// `downbeat invite`: prints a token that lets one host join.
enum InviteCommand {
    static let syntax = CommandSyntax(
        program: "downbeat invite", summary: "Print a token with which one capture PC joins this rig, within 24 hours.",
        options: [
            CommandOption("wait", short: "w", help: "wait until the host has joined, or until Ctrl-C"),
            CommandOption("json", help: "print the token as a JSON object"),
        ],
        example: "downbeat invite --wait")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let trust = try RigTrust.load(home: surroundings.home)
        let token = try trust.invite().text
        if parsed.has("json") {
            try RigRun.print(.object(["token": .string(token), "coordinator": .string(trust.name)]))
        } else if !StandardOutput.isTerminal {
            // For scripts: the token alone.
            StandardOutput.write("\(token)\n")
            StandardError.write("type on the capture PC: downbeat-agent join TOKEN\n")
        } else {
            StandardOutput.write(
                "On the capture PC, type:\n\n  downbeat-agent join \(token)\n\nThe token is good for one host, for 24 hours.\n"
            )
        }
        guard parsed.has("wait") else { return .good }
        return try await wait(surroundings, known: Set(trust.hosts.map(\.hostUUID)))
    }

    private static func wait(_ surroundings: Surroundings, known: Set<UniqueID>) async throws -> ExitCode {
        let printer = LivePrinter(.errors)
        printer.line("waiting for the host to join; Ctrl-C ends the waiting, and the token stays good")
        let options = SessionCoordinator.Options(
            home: surroundings.home, configuration: surroundings.configuration, commands: false)
        return try await RigRun.with(options, printer: printer) { rig in
            // Unstructured, so that Ctrl-C can end it alone.
            let waiting = Task { await rig.waitForNewHost(known: known) }
            return try await RigRun.untilInterrupted {
                guard let host = await waiting.value else { return .notFound }
                printer.line("host \(host) has joined")
                return ExitCode.good
            } interrupted: {
                waiting.cancel()
            }
        }
    }
}
