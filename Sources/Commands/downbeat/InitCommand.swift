internal import Platform
internal import Protocol
internal import Transport

/// `downbeat init`: makes this machine a coordinator.
enum InitCommand {
    static let syntax = CommandSyntax(
        program: "downbeat init", summary: "Make this machine a coordinator: its identity and its key.",
        options: [CommandOption("name", value: "NAME", help: "what hosts call this coordinator (the machine's name)")],
        example: "downbeat init --name lab-desk")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let isNew = !Files.exists("\(surroundings.home)/trust/coordinator.json")
        var trust = try RigTrust.load(home: surroundings.home)
        if let name = parsed.value("name") {
            guard (1...64).contains(name.utf8.count) else {
                throw UsageError(program: syntax.program, message: "--name must have 1 to 64 bytes")
            }
            try trust.rename(name)
        }
        StandardOutput.write(
            """
            coordinator '\(trust.name)' \(isNew ? "is made" : "is there already")
            home:  \(surroundings.home)
            key:   \(trust.keys.publicKey.fingerprint)
            hosts: \(trust.hosts.isEmpty ? "none has joined yet" : trust.hosts.map(\.host.rawValue).joined(separator: ", "))
            next:  downbeat invite

            """)
        return .good
    }
}
