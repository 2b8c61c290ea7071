internal import Glibc
internal import Platform
internal import Protocol

/// The program on each capture PC.
@main
struct DownbeatAgent {
    static let version = "downbeat-agent \(ProductVersion.current)"

    static func main() async {
        Signals.block()
        exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    private static func run(_ words: [String]) async -> ExitCode {
        let code: ExitCode
        switch words.first {
        case "run": code = await RunCommand.run(Array(words.dropFirst()))
        case "join": code = await JoinCommand.run(Array(words.dropFirst()))
        case "devices": code = await DevicesCommand.run(Array(words.dropFirst()))
        case "recover": code = await RecoverCommand.run(Array(words.dropFirst()))
        case "--version":
            StandardOutput.write("\(version)\n")
            code = .good
        case "--help", "-h", "help":
            StandardOutput.write(usage)
            code = .good
        case let word?:
            StandardError.write("downbeat-agent: '\(word)' is no command\nTry 'downbeat-agent --help'.\n")
            code = .usage
        case nil:
            StandardError.write("downbeat-agent: a command is needed\nTry 'downbeat-agent --help'.\n")
            code = .usage
        }
        return code
    }

    private static let usage = """
        Usage: downbeat-agent COMMAND [OPTION]…
        Records on one capture PC what a coordinator asks for.

          run           serve until SIGINT or SIGTERM; a running take is then stopped properly
          join TOKEN    trust the coordinator whose 'downbeat invite' printed the token
          devices       what is attached to this host, and what the configuration makes of it
          recover       repair the episodes that an agent left that was killed ('run' does it by itself)

          --help        print this text; each command has its own: downbeat-agent run --help
          --version     print the version

        State and episodes are in $DOWNBEAT_HOME (default ~/.local/share/downbeat, as a service /var/lib/downbeat), the
        configuration is the file $DOWNBEAT_CONFIG (default ~/.config/downbeat/agent.json5, then
        /etc/downbeat/agent.json5).

        Exit codes: 0 good, 1 failed, 2 the command line is wrong, 3 not found, 4 refused.

        Example: downbeat-agent run --config configs/agent-emulated.json5 --home /tmp/left --host-id left-pc

        """
}
