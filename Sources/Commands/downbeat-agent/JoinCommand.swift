internal import Agent
internal import Platform

/// `downbeat-agent join TOKEN`.
enum JoinCommand {
    static let syntax = CommandSyntax(
        program: "downbeat-agent join",
        summary: "Trusts the coordinator whose 'downbeat invite' printed the token; a running agent sees it at once.",
        operands: "TOKEN", options: [AgentArguments.home],
        example: "downbeat-agent join downbeat1:0123ab-4567cd-…")

    static func run(_ words: [String]) async -> ExitCode {
        await AgentArguments.run(syntax, words) { parsed in
            guard !parsed.operands.isEmpty else {
                throw UsageError(program: syntax.program, message: "a TOKEN is needed; 'downbeat invite' prints one")
            }
            // A token that was pasted with a line break comes as several words.
            let token = parsed.operands.joined()
            let sentence = try AgentTasks.join(token, home: AgentArguments.home(parsed))
            StandardOutput.write("downbeat-agent: \(sentence)\n")
            return .good
        }
    }
}

/// `downbeat-agent recover`.
enum RecoverCommand {
    static let syntax = CommandSyntax(
        program: "downbeat-agent recover",
        summary: "Repairs the episodes that an agent left that was killed; 'run' does it by itself.",
        options: [AgentArguments.home, AgentArguments.config, AgentArguments.hostID],
        example: "downbeat-agent recover --home /var/lib/downbeat")

    static func run(_ words: [String]) async -> ExitCode {
        await AgentArguments.run(syntax, words) { parsed in
            let home = AgentArguments.home(parsed)
            let lock = try home.lock()
            let host = try AgentArguments.configuration(parsed)?.host ?? AgentArguments.bare(parsed).host
            let sentences = try await AgentTasks.recover(home: home, host: host)
            for sentence in sentences { StandardOutput.write("\(sentence)\n") }
            if sentences.isEmpty { StandardOutput.write("nothing to repair in \(home.episodes)\n") }
            withExtendedLifetime(lock) {}
            return .good
        }
    }
}
