internal import Alignment
internal import Coordinator
internal import Episode
internal import Glibc
internal import Platform
internal import Protocol

/// `downbeat align`: brings the streams of an episode, of whatever program, to one clock.
enum AlignCommand {
    static let syntax = CommandSyntax(
        program: "downbeat align",
        summary:
            "Align an episode of ours or of SyncField: by the clock series, by sound, or by wall clocks when asked.",
        operands: "EPISODE|FOLDER…",
        options: [
            CommandOption("out", short: "o", value: "DIR", help: "where the results go (<episode>/synced)"),
            CommandOption(
                "method", value: "METHOD", help: "auto (clock series, then sound), sound, or clock"),
            CommandOption("wall-clock", help: "let the hosts' wall clocks count where nothing else is known"),
            CommandOption("primary", value: "STREAM", help: "the stream that the others are mapped to"),
            CommandOption("distance", value: "METRES", help: "between the hosts, where it was measured"),
            CommandOption("farthest", value: "METRES", help: "no two hosts are farther apart (8)"),
            CommandOption("confidence", value: "NUMBER", help: "chirps heard with less don't count, 0 to 1 (0)"),
            CommandOption("partial", help: "leave out hosts that can't be aligned, instead of refusing all"),
            CommandOption("json", help: "print the report as JSON"),
        ],
        example: "downbeat align ep_20260411_152930_a1b2c3")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        guard !parsed.operands.isEmpty else {
            throw UsageError(program: syntax.program, message: "name an episode, or a folder with one in it")
        }
        var options = try options(parsed)
        options.allowsPart = parsed.has("partial")
        let folders = try parsed.operands.map { try folder($0, surroundings) }
        guard folders.count == 1 || parsed.has("out") else {
            throw UsageError(program: syntax.program, message: "several folders need --out DIR for the results")
        }
        let out = parsed.value("out").map(absolute) ?? "\(folders[0])/synced"
        let loop = EventLoop(name: "align")
        let isSilent = parsed.has("json") || isatty(2) != 1
        let (primary, settings) = (parsed.value("primary"), options)
        do {
            let outcome = try await loop.run {
                try align(folders, out, primary: primary, settings, isSilent: isSilent)
            }
            if parsed.has("json") { try RigRun.print(outcome.report) } else { print(outcome, out) }
            return .good
        } catch let error as Aligner.Unaligned {
            throw CommandFailure(.refused, error.description)
        } catch let error as FrameMap.NoOverlap {
            throw CommandFailure(.refused, error.description)
        } catch let error as EpisodeInput.Unusable {
            throw CommandFailure(.notFound, error.description)
        }
    }

    /// The results are there as a whole, or not at all.
    private static func align(
        _ folders: [String], _ out: String, primary: String?, _ options: AlignmentSettings, isSilent: Bool
    ) throws -> AlignmentRun.Outcome {
        let scratch = "\(out).hosts"
        try Files.removeTree(scratch)
        defer { try? Files.removeTree(scratch) }
        let input = try EpisodeInput(folders, primary: primary, scratch: scratch)
        var run = AlignmentRun(input.job, options: options)
        if !isSilent {
            run.progress = { share, phase in
                StandardError.write("\r\(phase) \(Int(share * 100)) %   ")
            }
        }
        defer { if !isSilent { StandardError.write("\r                    \r") } }
        let part = "\(out).part"
        let outcome: AlignmentRun.Outcome
        do { outcome = try run.run(into: part) } catch {
            try? Files.removeTree(part)
            throw error
        }
        try Files.removeTree(out)
        try Files.rename(part, to: out)
        try AtomicFile.synchronizeFolder(of: out)
        return outcome
    }

    private static func folder(_ word: String, _ surroundings: Surroundings) throws -> String {
        let path = absolute(word)
        if Files.isFolder(path) { return path }
        return try RigRun.folder(word, home: surroundings.home)
    }

    private static func absolute(_ path: String) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return path == "." ? String(cString: folder) : "\(String(cString: folder))/\(path)"
    }

    // MARK: Options

    private static func options(_ parsed: CommandSyntax.Parsed) throws(UsageError) -> AlignmentSettings {
        var options = AlignmentSettings()
        options.usesWallClock = parsed.has("wall-clock")
        if let word = parsed.value("method") {
            guard let method = AlignmentSettings.Method(rawValue: word) else {
                throw wrong("method", word, AlignmentSettings.Method.allCases.map(\.rawValue).joined(separator: ", "))
            }
            options.method = method
        }
        options.distance = try number("distance", parsed, in: 0...1000)
        options.farthest = try number("farthest", parsed, in: 0.1...1000) ?? options.farthest
        options.leastConfidence = try number("confidence", parsed, in: 0...1) ?? 0
        return options
    }

    private static func number(
        _ name: String, _ parsed: CommandSyntax.Parsed, in range: ClosedRange<Double>
    ) throws(UsageError) -> Double? {
        guard let text = parsed.value(name) else { return nil }
        guard let value = Double(text), range.contains(value) else {
            throw wrong(name, text, "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    private static func wrong(_ name: String, _ text: String, _ legal: String) -> UsageError {
        UsageError(program: syntax.program, message: "--\(name) is '\(text)'; legal is \(legal)")
    }

    // MARK: Output

    private static func print(_ outcome: AlignmentRun.Outcome, _ out: String) {
        let report = outcome.report
        var table = TextTable([.left, .left, .right, .right, .right])
        table.add(["STREAM", "METHOD", "OFFSET", "KNOWN TO", "FRAMES"].map { TextCell($0, .dim) })
        for (id, stream) in (report["streams"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
            let uncertainty = stream["uncertainty_ms"]?.double
            table.add([
                TextCell(id), TextCell(stream["method"]?.string ?? ""),
                TextCell("\(tenths(stream["offset_ms"]?.double ?? 0)) ms"),
                TextCell(uncertainty.map { "±\(thousandths($0)) ms" } ?? "?"),
                TextCell("\(stream["original_frame_count"]?.integer ?? 0)"),
            ])
        }
        for line in table.lines(color: Surroundings.hasColor) { StandardOutput.write(line + "\n") }
        for hearing in outcome.heard {
            let words = hearing.chirps.isEmpty ? hearing.problem ?? "no chirp" : "\(hearing.chirps.count) chirps"
            StandardOutput.write("heard in \(hearing.source.id): \(words)\n")
        }
        for note in outcome.alignment.notes { StandardOutput.write("\(note)\n") }
        for note in report["left_out"]?.array ?? [] { StandardOutput.write("left out: \(note.string ?? "")\n") }
        let summary = report["summary"]
        let seconds = tenths(summary?["synced_duration_sec"]?.double ?? 0)
        StandardOutput.write(
            "\(summary?["total_synced_frames"]?.integer ?? 0) frames of \(summary?["primary_stream"]?.string ?? "") in "
                + "\(seconds) s: \(out)/\(AlignmentRun.mapName)\n")
    }

    private static func tenths(_ value: Double) -> String { ((value * 10).rounded() / 10).description }

    private static func thousandths(_ value: Double) -> String { ((value * 1000).rounded() / 1000).description }
}
