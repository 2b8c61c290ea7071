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
            CommandOption(
                "accept", value: "STREAM", help: "what this stream's name means now is meant, or 'all' of them"),
            CommandOption("json", help: "print one JSON object"),
        ],
        example: "downbeat-agent devices --json")

    static func run(_ words: [String]) async -> ExitCode {
        await AgentArguments.run(syntax, words) { parsed in
            if let stream = parsed.value("accept") {
                try AgentArguments.home(parsed).acceptCameras(of: stream == "all" ? nil : [stream])
            }
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
            if let camera = device.camera { lines += place(camera) }
            for ability in device.abilities { lines.append("      \(ability)") }
            if let camera = device.camera { lines += details(camera) }
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
            for finding in stream.findings ?? [] { lines.append("      note: \(finding)") }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Where a camera is, and who has it.
    private static func place(_ camera: AttachedCamera) -> [String] {
        var lines: [String] = []
        let others = camera.names.dropFirst()
        if !others.isEmpty { lines.append("      also: \(others.joined(separator: ", "))") }
        if let usb = camera.usb {
            let release = usb.release.map { ", release \($0)" } ?? ""
            lines.append(
                "      USB: port \(usb.port) on bus \(usb.bus), \(speed(usb.megabitsPerSecond)) Mbit/s, "
                    + "\(usb.id)\(release)")
        }
        lines.append(
            "      held by: \(camera.holders.isEmpty ? "nobody" : camera.holders.joined(separator: ", "))")
        return lines
    }

    private static func details(_ camera: AttachedCamera) -> [String] {
        var lines: [String] = []
        let settable = camera.controls.filter { !$0.isReadOnly }
        if !settable.isEmpty {
            let words = settable.map { control in
                let value = control.value.map { "=\($0)" } ?? ""
                return "\(control.name)\(value) (\(control.minimum) to \(control.maximum))"
            }
            lines.append("      controls: \(words.joined(separator: ", "))")
        }
        if let line = camera.configuration { lines.append("      for agent.json5: \(line)") }
        return lines
    }

    /// Whole, as they are but for the slowest, which has 1.5.
    private static func speed(_ megabits: Double) -> String {
        Int64(exactly: megabits).map { "\($0)" } ?? "\(megabits)"
    }
}
