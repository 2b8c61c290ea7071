internal import Coordinator
internal import Platform
internal import Protocol
internal import Timing

/// `downbeat hosts`: who is there.
enum HostsCommand {
    static let syntax = CommandSyntax(
        program: "downbeat hosts", summary: "List the hosts of the rig and those that were seen, with what is wrong.",
        options: [
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("json", help: "print JSON"),
        ],
        example: "downbeat hosts")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let patience = try RigRun.patience(parsed, program: syntax.program)
        let options = SessionCoordinator.Options(
            home: surroundings.home, configuration: surroundings.configuration, commands: false)
        let (view, expected) = try await RigRun.with(options, printer: LivePrinter(.nowhere)) { rig in
            await look(rig, patience)
        }
        if parsed.has("json") {
            try RigRun.print(.array(view.hosts.map(json)))
        } else {
            for line in table(view).lines(width: nil, color: Surroundings.hasColor) {
                StandardOutput.write(line + "\n")
            }
            for host in view.hosts {
                if let problem = host.problem { StandardOutput.write("  host \(host.host): \(problem.text)\n") }
            }
        }
        guard view.hosts.contains(where: { $0.presence != .absent }) else {
            throw RigRun.nobody(view, expected: expected)
        }
        return .good
    }

    /// Waits for the expected hosts and their clocks.
    static func look(_ rig: SessionCoordinator, _ patience: Interval) async -> (RigView, [HostID]) {
        let expected = await rig.expected
        let ready = await rig.waitForHosts(expected.isEmpty ? min(patience, .seconds(2)) : patience)
        await rig.waitForClocks(.milliseconds(5), hosts: ready, patience: .seconds(2))
        return (await rig.view(), expected)
    }

    private static func table(_ view: RigView) -> TextTable {
        var table = TextTable([.left, .left, .left, .left, .right, .left])
        table.add(["HOST", "STATE", "ADDRESS", "CLOCK", "FREE", "VERSION"].map { TextCell($0, .dim) })
        for host in view.hosts {
            table.add([
                TextCell(host.host.rawValue, .bold), state(host), TextCell(host.address ?? "-"),
                TextCell(host.clockBound.map { RigTable.bound($0) } ?? "-"),
                TextCell(host.status.map { ByteCount.text($0.freeBytes) } ?? "-"), TextCell(host.version ?? "-"),
            ])
        }
        return table
    }

    private static func state(_ host: RigView.Host) -> TextCell {
        if let problem = host.problem { return TextCell(word(problem), .red) }
        switch host.presence {
        case .absent: return TextCell("absent", .red)
        case .connecting: return TextCell("connecting", .yellow)
        case .lost: return TextCell("lost", .red)
        case .alive: return TextCell(host.status?.state.rawValue ?? "connected", .green)
        }
    }

    private static func word(_ problem: HostProblem) -> String {
        switch problem {
        case .stranger: "not joined"
        case .wrongKey: "wrong key"
        case .otherVersion: "other version"
        case .twin: "same name twice"
        case .leasedToOther: "leased to another"
        case .misidentified: "other machine"
        case .unreadable: "unreadable"
        }
    }

    static func json(_ host: RigView.Host) -> JSONValue {
        .object([
            "host_id": .string(host.host.rawValue), "host_uuid": host.uuid.map { .string($0.rawValue) } ?? .null,
            "state": .string(state(host).text), "address": host.address.map { .string($0) } ?? .null,
            "is_expected": .bool(host.isExpected), "problem": host.problem.map { .string($0.text) } ?? .null,
            "clock_bound_ns": host.clockBound.map { .integer($0.nanoseconds) } ?? .null,
            "free_bytes": host.status.map { .integer($0.freeBytes) } ?? .null,
            "episode": host.status?.episode.map { .string($0.rawValue) } ?? .null,
            "version": host.version.map { .string($0) } ?? .null,
            "streams": .array(
                (host.status?.streams ?? []).map { stream in
                    .object([
                        "id": .string(stream.id.rawValue), "kind": .string(stream.kind.rawValue),
                        "state": .string(stream.state.rawValue), "samples": .integer(stream.samples),
                        "rate": .number(stream.rate.isFinite ? stream.rate : 0), "dropped": .integer(stream.dropped),
                        "bytes": .integer(stream.bytes), "error": stream.error.map { .string($0) } ?? .null,
                    ])
                }),
        ])
    }
}
