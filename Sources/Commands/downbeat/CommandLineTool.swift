internal import Coordinator
internal import Glibc
internal import Platform
internal import Protocol

/// Finds the subcommand, and turns what goes wrong into one line and an exit code.
enum CommandLineTool {
    private static let program = "downbeat"

    static func run(_ words: [String]) async -> ExitCode {
        if StateFolder.environment("DOWNBEAT_LOG") == "debug" { Log.level = .debug }
        var words = words
        // Common options may stand before the subcommand too.
        var leading: [String] = []
        while let first = words.first, first.hasPrefix("-") {
            if first == "--help" || first == "-h" { return said(help) }
            if first == "--version" { return said(version) }
            let takesWord = first == "--home" || first == "--config"
            guard takesWord || first.hasPrefix("--home=") || first.hasPrefix("--config=") else {
                return failed(.usage, "'\(first)' is not an option here\nTry '\(program) --help'.")
            }
            leading += words.prefix(takesWord ? 2 : 1)
            words.removeFirst(min(words.count, takesWord ? 2 : 1))
        }
        guard let name = words.first else {
            StandardError.write(help)
            return .usage
        }
        if name == "help" { return await run(words.count > 1 ? [words[1], "--help"] : ["--help"]) }
        guard let subcommand = Subcommand.all.first(where: { $0.name == name }) else {
            let nearest = NearestName.of(name, in: Subcommand.all.map(\.name))
            let hint = nearest.map { "; did you mean '\($0)'?" } ?? ""
            return failed(.usage, "'\(name)' is not a command\(hint)\nTry '\(program) --help'.")
        }
        return await run(subcommand, leading + words.dropFirst())
    }

    private static func run(_ subcommand: Subcommand, _ words: [String]) async -> ExitCode {
        do {
            let parsed = try subcommand.fullSyntax.parse(words)
            if parsed.has("help") { return said(subcommand.fullSyntax.help) }
            if parsed.has("version") { return said(version) }
            // Set for all that asks `StateFolder`; no other thread reads the environment yet.
            if let home = parsed.value("home") { setenv("DOWNBEAT_HOME", absolute(home), 1) }
            if let file = parsed.value("config") { setenv("DOWNBEAT_CONFIG", absolute(file), 1) }
            let configuration = try configuration(needed: parsed.value("config") != nil)
            let surroundings = Surroundings(home: StateFolder.path, configuration: configuration)
            return try await subcommand.run(
                complete(subcommand, parsed, words, configuration), surroundings)
        } catch let error as UsageError {
            StandardError.write("\(error)\n")
            return .usage
        } catch let error as CommandFailure {
            return failed(error.code, error.description)
        } catch let error as ConfigReader.Invalid {
            return failed(.usage, "\(error)")
        } catch let error as ResumeError {
            switch error {
            case .unknown: return failed(.notFound, "\(error)")
            case .stillRecording, .aborted: return failed(.refused, "\(error)")
            case .notRunning: return failed(.notFound, "\(error)")
            case .sealed: return said("\(error)\n")
            }
        } catch {
            return failed(.failed, "\(error)")
        }
    }

    private static func configuration(needed: Bool) throws -> RigConfiguration {
        guard let path = StateFolder.configuration(named: "rig.json5") else { return RigConfiguration() }
        return try RigConfiguration.load(path)
    }

    /// Gives `upload` the configured server, when none was named.
    private static func complete(
        _ subcommand: Subcommand, _ parsed: CommandSyntax.Parsed, _ words: [String], _ rig: RigConfiguration
    ) throws -> CommandSyntax.Parsed {
        guard subcommand.name == "upload", !parsed.has("server"), let server = rig.server else { return parsed }
        return try subcommand.fullSyntax.parse(["--server", server] + words)
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return "\(String(cString: folder))/\(path)"
    }

    private static let version = "downbeat \(ProductVersion.current)\n"

    private static var help: String {
        var table = TextTable([.left, .left])
        for subcommand in Subcommand.all {
            table.add([TextCell("  \(subcommand.name)"), TextCell(subcommand.syntax.summary)])
        }
        return """
            Usage: \(program) COMMAND [OPTION]…
            Record one take on many capture PCs with one command.

            \(table.lines().joined(separator: "\n"))

            '\(program) COMMAND --help' says more. Exit codes: 0 good, 1 the take or job failed, 2 usage, 3 nothing found,
            4 refused.

            Example: \(program) record --duration 10 --task "pick cup"

            """
    }

    private static func said(_ text: String) -> ExitCode {
        StandardOutput.write(text)
        return .good
    }

    private static func failed(_ code: ExitCode, _ sentence: String) -> ExitCode {
        let color = isatty(2) == 1 && StateFolder.environment("NO_COLOR") == nil
        StandardError.write("\(color ? TextTable.paint("error", .red) : "error"): \(sentence)\n")
        return code
    }
}
