internal import Glibc
internal import Platform

/// The operator's program; see `Subcommand.all` for what it does.
@main
struct Downbeat {
    static func main() async {
        Signals.block()
        exit(await CommandLineTool.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }
}
