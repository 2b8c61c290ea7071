internal import Coordinator
internal import Platform
internal import Protocol
internal import Timing

/// `downbeat check`: whether a take would begin now.
enum CheckCommand {
    static let syntax = CommandSyntax(
        program: "downbeat check",
        summary: "Open all devices, look at clocks, disks and speakers, and say whether a take would begin.",
        options: [
            CommandOption("duration", short: "d", value: "SECONDS", help: "of the take that the disks must hold"),
            CommandOption("policy", value: "POLICY", help: "strict, warn or allow"),
            CommandOption("hosts", value: "A,B", help: "only these hosts"),
            CommandOption("leader", value: "HOST", help: "the host that plays the chirps"),
            CommandOption("chirp", value: "PRESET", help: "ultrasonic, audible, custom or off"),
            CommandOption("no-sound", help: "don't play the quiet sweeps that the microphones are asked about"),
            CommandOption("wait", value: "SECONDS", help: "how long hosts are waited for (5)"),
            CommandOption("json", help: "print JSON"),
        ],
        example: "downbeat check --duration 600")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let record = try RecordOptions(parsed, surroundings.configuration, now: HostClock.wall)
        let patience = try RigRun.patience(parsed, program: syntax.program)
        guard let lock = try TakeLock(home: surroundings.home) else {
            throw CommandFailure(.refused, "another downbeat commands this rig now; wait for it, or stop it")
        }
        defer { lock.release() }
        let options = SessionCoordinator.Options(
            home: surroundings.home, configuration: surroundings.configuration, hosts: record.hosts, commands: true)
        let check = try await RigRun.with(options, printer: LivePrinter(.nowhere)) { rig in
            let expected = await rig.expected
            let ready = await rig.waitForHosts(patience)
            guard let first = ready.first else { throw RigRun.nobody(await rig.view(), expected: expected) }
            return await rig.check(
                record.settings(
                    hosts: expected, firstReady: first, rig: surroundings.configuration, now: HostClock.wall),
                playsSound: !parsed.has("no-sound"))
        }
        let checks = check.hosts
        let problems = checks.flatMap(\.problems)
        if parsed.has("json") {
            try RigRun.print(.array(checks.map(json)))
        } else {
            for check in checks { for line in lines(check) { StandardOutput.write(line + "\n") } }
            if let advice = check.advice { StandardOutput.write("advice: \(advice)\n") }
            let would = record.policy == .strict ? "a strict take would be refused" : "a take would go on without them"
            StandardOutput.write(problems.isEmpty ? "ready\n" : "not ready: \(would)\n")
        }
        return problems.isEmpty || record.policy != .strict ? .good : .failed
    }

    private static func lines(_ check: HostCheck) -> [String] {
        let isGood = check.problems.isEmpty
        let word = TextCell(isGood ? "good" : "bad", isGood ? .green : .red)
        var facts = ["clock \(RigTable.bound(check.clockBound))"]
        if let report = check.report {
            facts.append("\(ByteCount.text(report.freeBytes)) free")
            facts.append("\(ByteCount.text(report.bytesPerSecond))/s")
            facts.append(report.canPlayChirps ? "plays chirps" : "no speaker")
        }
        let shown = Surroundings.hasColor ? TextTable.paint(word.text, word.color) : word.text
        var lines = ["host \(check.host): \(shown): \(facts.joined(separator: ", "))"]
        for outcome in check.report?.streams ?? [] {
            lines.append("  \(outcome.stream.id): \(outcome.error ?? outcome.stream.label)")
        }
        lines += check.sound.map { "  \($0)" }
        return lines + check.problems.map { "  problem: \($0)" }
    }

    private static func json(_ check: HostCheck) -> JSONValue {
        .object([
            "host_id": .string(check.host.rawValue), "problems": .array(check.problems.map { .string($0) }),
            "clock_bound_ns": check.clockBound.map { .integer($0.nanoseconds) } ?? .null,
            "free_bytes": check.report.map { .integer($0.freeBytes) } ?? .null,
            "bytes_per_second": check.report.map { .integer($0.bytesPerSecond) } ?? .null,
            "can_play_chirps": check.report.map { .bool($0.canPlayChirps) } ?? .null,
            "sound": .array(check.sound.map { .string($0) }),
            "streams": .array((check.report?.streams ?? []).map { .string($0.stream.id.rawValue) }),
        ])
    }
}
