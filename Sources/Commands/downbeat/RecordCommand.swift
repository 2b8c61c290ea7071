internal import Coordinator
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// `downbeat record`: one take, from discovery to the verdict.
enum RecordCommand {
    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        let rig = surroundings.configuration
        let options = try RecordOptions(parsed, rig, now: HostClock.wall)
        let patience = try RigRun.patience(parsed, program: RecordOptions.syntax.program)
        guard let lock = try TakeLock(home: surroundings.home) else {
            throw CommandFailure(.refused, "another downbeat commands this rig now; wait for it, or stop it")
        }
        defer { lock.release() }
        let printer = LivePrinter(options.json ? .errors : .output)
        let coordinator = SessionCoordinator.Options(
            home: surroundings.home, configuration: rig, hosts: options.hosts, commands: true)
        let report = try await RigRun.with(coordinator, printer: printer) { rig in
            try await record(rig, options, surroundings, patience, printer)
        }
        if options.json {
            try RigRun.print(TakeSummary.json(report))
        } else {
            for line in TakeSummary.lines(report, color: Surroundings.hasColor) { StandardOutput.write(line + "\n") }
        }
        return TakeSummary.exitCode(report)
    }

    private static func record(
        _ rig: SessionCoordinator, _ options: RecordOptions, _ surroundings: Surroundings, _ patience: Interval,
        _ printer: LivePrinter
    ) async throws -> TakeReport {
        let expected = await rig.expected
        guard !expected.isEmpty else {
            _ = await rig.waitForHosts(min(patience, .seconds(1)))
            throw RigRun.nobody(await rig.view(), expected: expected)
        }
        if let leader = options.leader, !expected.contains(leader) {
            throw CommandFailure(
                .usage,
                "--leader is '\(leader)'; legal is one of \(expected.map(\.rawValue).joined(separator: ", "))")
        }
        let isTaking = Mutex(false)
        // Unstructured, so that Ctrl-C can end the waiting alone.
        let waiting = Task { await rig.waitForHosts(patience) }
        return try await RigRun.untilInterrupted {
            let ready = await waiting.value
            if waiting.isCancelled { throw CommandFailure(.failed, "stopped before the take began") }
            guard let first = ready.first else { throw RigRun.nobody(await rig.view(), expected: expected) }
            isTaking.withLock { $0 = true }
            let settings = options.settings(
                hosts: expected, firstReady: first, rig: surroundings.configuration, now: HostClock.wall)
            printer.line("\(settings.episode) on \(ready.map(\.rawValue).joined(separator: ", "))")
            return try await LiveTake.follow(rig, printer) { await rig.record(settings) }
        } interrupted: {
            if isTaking.withLock({ $0 }) { await rig.interrupt() } else { waiting.cancel() }
        }
    }
}

/// Shows a take while it lasts.
enum LiveTake {
    static func follow(
        _ rig: SessionCoordinator, _ printer: LivePrinter, _ work: @escaping @Sendable () async throws -> TakeReport
    ) async throws -> TakeReport {
        let loop = EventLoop(name: "screen")
        // Unstructured: the drawing is ended by the end of the take.
        let drawing = Task {
            var announced: Int64 = .max
            while (try? await loop.sleep(for: .milliseconds(250))) != nil {
                let view = await rig.view()
                // The last seconds before T0 are counted down.
                if let elapsed = view.take?.elapsed, elapsed < .zero, view.take?.phase == .starting {
                    let left = -elapsed.nanoseconds / 1_000_000_000 + 1
                    if left < announced { printer.line("\(left)…") }
                    announced = left
                }
                printer.show(view)
            }
        }
        defer { drawing.cancel() }
        let report = try await work()
        drawing.cancel()
        await drawing.value
        printer.leave()
        return report
    }
}
