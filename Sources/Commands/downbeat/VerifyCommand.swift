internal import Coordinator
internal import Episode
internal import Platform
internal import Protocol

/// `downbeat verify`: reads every byte of an episode at home.
enum VerifyCommand {
    static let syntax = CommandSyntax(
        program: "downbeat verify",
        summary: "Check an episode at home: sizes, sha256, as many stamps as frames, and the clocks computed anew.",
        operands: "EPISODE…",
        options: [CommandOption("json", help: "print one JSON object for each episode")],
        example: "downbeat verify ep_20260411_152930_a1b2c3")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        guard !parsed.operands.isEmpty else {
            throw UsageError(program: syntax.program, message: "name at least one episode")
        }
        let loop = EventLoop(name: "verify")
        var isGood = true
        for word in parsed.operands {
            let folder = try RigRun.folder(word, home: surroundings.home)
            let report = try await loop.run { try EpisodeVerifier.verify(folder: folder) }
            isGood = isGood && report.isGood
            let name = FilePath.name(of: folder)
            if parsed.has("json") {
                try RigRun.print(
                    .object([
                        "episode": .string(name), "good": .bool(report.isGood), "files": .integer(Int64(report.files)),
                        "bytes": .integer(report.bytes),
                        "clock_rows": report.clock.map { .integer(Int64($0.rows)) } ?? .null,
                        "clock_exchanges": report.clock.map { .integer(Int64($0.exchanges)) } ?? .null,
                        "findings": .array(report.findings.map { .string($0) }),
                    ]))
                continue
            }
            let size = "\(report.files) files, \(ByteCount.text(report.bytes))"
            let clock =
                report.clock.map { "; \($0.rows) clock rows computed anew from \($0.exchanges) exchanges" } ?? ""
            StandardOutput.write("\(name): \(report.isGood ? "good" : "not good"): \(size)\(clock)\n")
            for finding in report.findings { StandardOutput.write("  \(finding)\n") }
        }
        return isGood ? .good : .failed
    }
}

/// `downbeat merge`: merges and judges again what is at home.
enum MergeCommand {
    static let syntax = CommandSyntax(
        program: "downbeat merge",
        summary: "Merge and judge again what is at home of an episode, without the hosts that are missing.",
        operands: "EPISODE…", options: [CommandOption("json", help: "print one JSON object for each episode")],
        example: "downbeat merge ep_20260411_152930_a1b2c3")

    static func run(_ parsed: CommandSyntax.Parsed, _ surroundings: Surroundings) async throws -> ExitCode {
        guard !parsed.operands.isEmpty else {
            throw UsageError(program: syntax.program, message: "name at least one episode")
        }
        let loop = EventLoop(name: "merge")
        var code = ExitCode.good
        for word in parsed.operands {
            let folder = try RigRun.folder(word, home: surroundings.home)
            let journal = TakeJournal(home: surroundings.home)
            let record = EpisodeID(rawValue: FilePath.name(of: folder)).flatMap { journal.record(of: $0) }
            let seal = try await loop.run {
                try EpisodeSealer.mergeAgain(folder: folder, record: record, journal: journal)
            }
            if seal.verdict.color == .red { code = .failed }
            if parsed.has("json") {
                try RigRun.print(
                    .object([
                        "episode": .string(FilePath.name(of: folder)), "verdict": .string(seal.verdict.color.rawValue),
                        "sentences": .array(seal.verdict.sentences.map { .string($0) }),
                        "has_request": .bool(seal.hasRequest), "folder": .string(folder),
                    ]))
                continue
            }
            StandardOutput.write("\(FilePath.name(of: folder)): \(seal.verdict.color.rawValue)\n")
            for sentence in seal.verdict.sentences { StandardOutput.write("  \(sentence)\n") }
        }
        return code
    }
}
