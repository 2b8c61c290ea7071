internal import Agent
internal import Platform
internal import Protocol

/// `downbeat-agent devices`.
enum DevicesCommand {
    static let syntax = CommandSyntax(
        program: "downbeat-agent devices",
        summary: "Lists what is attached to this host, and opens each configured stream to see whether it works.",
        options: [
            AgentArguments.config, AgentArguments.home, AgentArguments.hostID,
            CommandOption("json", help: "print one JSON object"),
        ],
        example: "downbeat-agent devices --json")

    static func run(_ words: [String]) async -> ExitCode {
        await AgentArguments.run(syntax, words) { parsed in
            let configuration = try AgentArguments.configuration(parsed) ?? AgentArguments.bare(parsed)
            let list = try await AgentTasks.devices(configuration, home: AgentArguments.home(parsed))
            if parsed.has("json") {
                StandardOutput.write(String(decoding: try JSONText.encodePretty(list), as: UTF8.self))
            } else {
                StandardOutput.write(text(list))
            }
            return list.streams.contains { $0.error != nil } ? .failed : .good
        }
    }

    private static func text(_ list: DeviceList) -> String {
        var lines = ["Attached:"]
        if list.attached.isEmpty { lines.append("  nothing that this program knows") }
        for device in list.attached {
            lines.append("  \(device.kind)  \(device.label)")
            lines.append("      identity: \(device.identity)")
            for ability in device.abilities { lines.append("      \(ability)") }
            if let problem = device.problem { lines.append("      problem: \(problem)") }
        }
        lines += ["", "Configured streams:"]
        if list.streams.isEmpty { lines.append("  none") }
        for outcome in list.streams {
            let stream = outcome.stream
            if let error = outcome.error {
                lines.append("  \(stream.id)  FAILED: \(error)")
            } else {
                lines.append("  \(stream.id)  \(stream.kind.rawValue)  \(stream.label)")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
