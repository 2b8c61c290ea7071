internal import Coordinator
internal import Episode
internal import Platform
internal import Protocol
internal import Timing

/// `downbeat episodes`: what was recorded, and where it is.
enum EpisodesCommand {
    static let syntax = CommandSyntax(
        program: "downbeat episodes",
        summary: "List the episodes at home and on the hosts, those of a coordinator that died too.",
        options: [
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("offline", help: "only what is known here, without asking the hosts"),
            CommandOption("session", short: "s", value: "NAME", help: "only of this session"),
            CommandOption("json", help: "print JSON"),
        ],
        example: "downbeat episodes --session pilot")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let patience = try RigRun.patience(parsed, program: syntax.program)
        var snapshots: [HostID: HostSnapshot] = [:]
        var silent: [HostID] = []
        if !parsed.has("offline") {
            let options = SessionCoordinator.Options(
                home: surroundings.home, configuration: surroundings.configuration, commands: false)
            (snapshots, silent) = try await RigRun.with(options, printer: LivePrinter(.nowhere)) { rig in
                let expected = await rig.expected
                guard !expected.isEmpty else { return ([:], []) }
                let ready = await rig.waitForHosts(patience)
                return (await rig.snapshots(), expected.filter { !ready.contains($0) })
            }
        }
        var listings = EpisodeCatalogue.list(home: surroundings.home, snapshots: snapshots)
        if let session = parsed.value("session") { listings = listings.filter { $0.session == session } }
        if parsed.has("json") {
            try RigRun.print(.array(listings.map(json)))
        } else {
            for line in table(listings).lines(color: Surroundings.hasColor) { StandardOutput.write(line + "\n") }
            if listings.isEmpty { StandardOutput.write("no episodes yet; record one with 'downbeat record'\n") }
        }
        if !silent.isEmpty {
            StandardError.write(
                "not asked, since they don't answer: \(silent.map(\.rawValue).joined(separator: ", "))\n")
        }
        return .good
    }

    private static func table(_ listings: [EpisodeListing]) -> TextTable {
        var table = TextTable([.left, .left, .left, .right, .left, .right, .left])
        guard !listings.isEmpty else { return table }
        table.add(["EPISODE", "SESSION", "TASK", "LENGTH", "VERDICT", "SIZE", "STATE"].map { TextCell($0, .dim) })
        for listing in listings {
            let color: TextColor? =
                switch listing.verdict {
                case "green": .green
                case "amber": .yellow
                case "red": .red
                default: nil
                }
            table.add([
                TextCell(listing.episode.rawValue), TextCell(listing.session), TextCell(listing.task),
                TextCell(listing.seconds.map { "\(RigTable.clock(.seconds($0)))" } ?? "-"),
                TextCell(listing.verdict ?? "-", color), TextCell(ByteCount.text(listing.bytes)),
                TextCell(listing.words, listing.state == .recording ? .red : nil),
            ])
        }
        return table
    }

    private static func json(_ listing: EpisodeListing) -> JSONValue {
        .object([
            "episode": .string(listing.episode.rawValue), "session": .string(listing.session),
            "task": .string(listing.task), "state": .string(listing.state.rawValue), "words": .string(listing.words),
            "hosts": .array(listing.hosts.map { .string($0.rawValue) }),
            "verdict": listing.verdict.map { .string($0) } ?? .null,
            "duration_s": listing.seconds.map { .number($0) } ?? .null, "bytes": .integer(listing.bytes),
            "started": listing.startWall.map { .string(UTC($0).iso) } ?? .null,
            "folder": listing.folder.map { .string($0) } ?? .null,
        ])
    }
}
