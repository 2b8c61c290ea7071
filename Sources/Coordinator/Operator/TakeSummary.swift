internal import Episode
package import Platform
package import Protocol
internal import Timing

/// What is said at the end of a take, to a person and to a program; pure.
package enum TakeSummary {
    /// The exit code of a take.
    package static func exitCode(_ report: TakeReport) -> ExitCode {
        switch report.outcome {
        case .sealed: report.seal?.verdict.color == .red ? .failed : .good
        case .notIngested: .good
        case .incomplete, .sealFailed: .failed
        case .aborted(_, let isRefusal): isRefusal ? .refused : .failed
        }
    }

    /// Verdict, where the files are, and what to do next.
    package static func lines(_ report: TakeReport, color: Bool) -> [String] {
        let settings = report.record.settings
        let episode = settings.episode
        switch report.outcome {
        case .sealed:
            var lines: [String] = []
            if let seal = report.seal {
                let word = seal.verdict.color.rawValue
                let shade: TextColor =
                    switch seal.verdict.color {
                    case .green: .green
                    case .amber: .yellow
                    case .red: .red
                    }
                lines.append("verdict: \(color ? TextTable.paint(word, shade) : word)")
                lines += seal.verdict.sentences.prefix(12).map { "  \($0)" }
                if seal.verdict.sentences.count > 12 { lines.append("  and \(seal.verdict.sentences.count - 12) more") }
                lines.append("files:   \(report.folder) (\(seal.files) files, \(ByteCount.text(seal.bytes)))")
                lines.append(
                    seal.hasRequest
                        ? "next:    downbeat upload \(episode)"
                        : "next:    nothing can be aligned; read \(report.folder)/report.html")
            }
            return lines
        case .notIngested:
            return [
                "the take is whole, and its files are on \(hosts(report)); next: downbeat ingest \(episode)"
            ]
        case .incomplete(let missing):
            let names = missing.map(\.rawValue).joined(separator: ", ")
            return [
                "the files of \(names) aren't home; next: downbeat ingest \(episode) when they can be reached, or "
                    + "downbeat merge \(episode) to do without them"
            ]
        case .sealFailed(let reason):
            return ["the episode can't be merged: \(reason); its files are in \(report.folder)"]
        case .aborted(let reason, _): return ["no take: \(reason)"]
        }
    }

    private static func hosts(_ report: TakeReport) -> String {
        let hosts = report.record.hosts.filter(\.hasCommitted).count
        return hosts == 1 ? "1 host" : "\(hosts) hosts"
    }

    /// The same for a program.
    package static func json(_ report: TakeReport) -> JSONValue {
        let settings = report.record.settings
        let outcome: String
        var reason: JSONValue = .null
        switch report.outcome {
        case .sealed: outcome = "sealed"
        case .notIngested: outcome = "not_ingested"
        case .incomplete(let hosts):
            outcome = "incomplete"
            reason = .string("files aren't home from \(hosts.map(\.rawValue).joined(separator: ", "))")
        case .sealFailed(let text): (outcome, reason) = ("seal_failed", .string(text))
        case .aborted(let text, let isRefusal): (outcome, reason) = (isRefusal ? "refused" : "aborted", .string(text))
        }
        let hosts = report.record.hosts.map { host -> JSONValue in
            .object([
                "host_id": .string(host.host.rawValue), "state": .string(host.phase.rawValue),
                "error": host.error.map { .string($0) } ?? .null,
                "start_bound_ns": host.bound.map { .integer($0.nanoseconds) } ?? .null,
            ])
        }
        return .object([
            "outcome": .string(outcome), "reason": reason, "episode": .string(settings.episode.rawValue),
            "session": .string(settings.session.rawValue), "folder": .string(report.folder),
            "verdict": report.seal.map { .string($0.verdict.color.rawValue) } ?? .null,
            "sentences": .array((report.seal?.verdict.sentences ?? []).map { .string($0) }), "hosts": .array(hosts),
            "start_rig_ns": report.record.start.map { .integer($0.nanoseconds) } ?? .null,
            "stop_rig_ns": report.record.stop.map { .integer($0.nanoseconds) } ?? .null,
            "notes": .array(report.record.notes.map { .string("\($0.level.rawValue): \($0)") }),
        ])
    }
}
