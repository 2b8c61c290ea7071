internal import Agent
internal import Platform
internal import Protocol

/// What the commands have in common.
enum AgentArguments {
    static let home = CommandOption("home", value: "DIR", help: "state and episodes (default: $DOWNBEAT_HOME)")
    static let config = CommandOption(
        "config", short: "c", value: "FILE", help: "the configuration (default: $DOWNBEAT_CONFIG)")
    static let hostID = CommandOption(
        "host-id", value: "NAME", help: "the host's name in the rig, before the configuration's")

    static func home(_ parsed: CommandSyntax.Parsed) -> AgentHome {
        AgentHome(parsed.value("home") ?? StateFolder.path)
    }

    /// Nil when there is no configuration at all.
    static func configuration(_ parsed: CommandSyntax.Parsed) throws -> AgentConfiguration? {
        guard let path = parsed.value("config") ?? StateFolder.configuration(named: "agent.json5") else { return nil }
        return try AgentConfiguration.read(path, hostID: parsed.value("host-id"), cameras: home(parsed).cameras)
    }

    /// A host with no configuration: its name only.
    static func bare(_ parsed: CommandSyntax.Parsed) throws -> AgentConfiguration {
        let name = parsed.value("host-id") ?? StateFolder.machineName
        guard let host = HostID(rawValue: name) else {
            throw ConfigReader.Invalid(description: "'\(name)' can't be a host's name; legal is \(HostID.rule)")
        }
        return AgentConfiguration(host: host)
    }

    /// Parses, answers `--help` and `--version`, runs, and turns errors into sentences and exit codes.
    static func run(
        _ syntax: CommandSyntax, _ words: [String], _ body: (CommandSyntax.Parsed) async throws -> ExitCode
    ) async -> ExitCode {
        do {
            let parsed = try syntax.parse(words)
            if parsed.has("help") {
                StandardOutput.write(syntax.help)
                return .good
            }
            if parsed.has("version") {
                StandardOutput.write("\(DownbeatAgent.version)\n")
                return .good
            }
            return try await body(parsed)
        } catch let error as UsageError {
            StandardError.write("\(error)\n")
            return .usage
        } catch let error as HomeInUse {
            return fail("\(error)", .refused)
        } catch let error as SystemError where error.errno == .noSuchFile {
            return fail("\(error)", .notFound)
        } catch {
            return fail("\(error)", .failed)
        }
    }

    static func fail(_ text: String, _ code: ExitCode) -> ExitCode {
        StandardError.write("downbeat-agent: \(text)\n")
        return code
    }
}
