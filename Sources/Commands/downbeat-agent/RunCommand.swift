internal import Agent
internal import Glibc
internal import Platform

/// `downbeat-agent run`.
enum RunCommand {
    static let syntax = CommandSyntax(
        program: "downbeat-agent run",
        summary: "Serves the coordinators that this host has joined, until SIGINT or SIGTERM.",
        options: [
            AgentArguments.config, AgentArguments.home, AgentArguments.hostID,
            CommandOption("verbose", short: "v", help: "more lines in the log"),
        ],
        example: "downbeat-agent run --config configs/agent-emulated.json5 --home /tmp/left --host-id left-pc")

    static func run(_ words: [String]) async -> ExitCode {
        await AgentArguments.run(syntax, words) { parsed in
            if parsed.has("verbose") { Log.level = .debug }
            guard let configuration = try AgentArguments.configuration(parsed) else {
                return AgentArguments.fail(
                    "no configuration was found; copy configs/agent.json5 to /etc/downbeat/agent.json5 and edit it, or "
                        + "name a file with --config", .notFound)
            }
            let home = AgentArguments.home(parsed)
            let lock = try home.lock()
            let loop = EventLoop(name: "signals")
            let signals = try Signals.stream(on: loop)
            let (reasons, sink) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(4))
            // Ends with the program: it only passes signals on.
            let relay = Task {
                for await signal in signals { sink.yield(signal == SIGINT ? "SIGINT" : "SIGTERM") }
            }
            defer { relay.cancel() }
            let service = AgentService(configuration, home: home) { line in
                StandardOutput.write("downbeat-agent: \(line)\n")
            }
            try await service.run(until: reasons)
            withExtendedLifetime(lock) {}
            return .good
        }
    }
}
