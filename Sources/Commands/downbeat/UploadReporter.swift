internal import Coordinator
internal import Platform
internal import Protocol
internal import Synchronization

/// Prints how uploads go: one line that is written over on a terminal, a line for each new phase elsewhere.
///
/// Concurrency: called from the uploader's thread and the command's.
final class UploadReporter: Sendable {
    private struct State {
        var lastPhase = ""
        var isLineOpen = false
    }

    private let json: Bool
    private let isTerminal = StandardOutput.isTerminal
    private let state = Mutex(State())

    init(json: Bool) { self.json = json }

    func progress(_ episode: String, _ progress: UploadProgress) {
        if json { return }
        let phase: String
        var detail = ""
        switch progress {
        case .hashing: phase = "hashing"
        case .sending(let sent, let total):
            phase = "uploading"
            let percent = total > 0 ? min(100, Int(Double(sent) / Double(total) * 100)) : 0
            detail = " \(percent) % of \(UploadReporter.size(total))"
        case .processing(let share, let name):
            phase = "processing"
            detail = " \(Int(max(0, min(1, share.isNaN ? 0 : share)) * 100)) %\(name.isEmpty ? "" : " (\(name))")"
        case .fetching(let name): phase = "fetching \(name)"
        case .retrying(let reason, let seconds):
            phase = "\(reason); trying again in \(seconds) s"
        }
        state.withLock { state in
            if isTerminal {
                let columns = StandardOutput.columns
                StandardOutput.write("\r\u{1B}[K" + String("\(episode): \(phase)\(detail)".prefix(columns - 1)))
                state.isLineOpen = true
            } else if state.lastPhase != "\(episode) \(phase)" {
                StandardOutput.write("\(episode): \(phase)\n")
            }
            state.lastPhase = "\(episode) \(phase)"
        }
    }

    func ended(_ outcome: UploadOutcome) {
        let entry = outcome.entry
        if json {
            return print(json: [
                "episode": .string(entry.episode), "session": .string(entry.session), "server": .string(entry.server),
                "state": .string(entry.state.rawValue), "job_id": entry.job.map { .string($0) } ?? .null,
                "hashes_confirmed": .bool(entry.isConfirmed), "attempts": .integer(Int64(entry.attempts)),
                "error": entry.lastError.map { .string($0) } ?? .null, "was_there": .bool(outcome.wasThere),
            ])
        }
        let proof = entry.isConfirmed ? ", the server has confirmed every sha256" : ""
        let job = entry.job ?? "-"
        switch entry.state {
        case .complete where outcome.wasThere: line("\(entry.episode): was uploaded before (job \(job)\(proof))")
        case .complete: line("\(entry.episode): complete (job \(job)\(proof)); results are in its folder synced/")
        case .processing: line("\(entry.episode): sent (job \(job)\(proof)); the server is at work")
        default: error("\(entry.episode): failed: \(entry.lastError ?? "no reason is known")")
        }
    }

    func refused(_ episode: String, _ sentence: String) {
        if json {
            return print(json: [
                "episode": .string(episode), "state": .string("refused"), "error": .string(sentence),
            ])
        }
        error(sentence)
    }

    private func line(_ text: String) {
        closeLine()
        StandardOutput.write(text + "\n")
    }

    private func error(_ text: String) {
        closeLine()
        StandardError.write("downbeat upload: \(text)\n")
    }

    private func closeLine() {
        let isOpen = state.withLock { state in
            defer { state.isLineOpen = false }
            return state.isLineOpen
        }
        if isOpen { StandardOutput.write("\r\u{1B}[K") }
    }

    private func print(json members: [String: JSONValue]) {
        let text = (try? JSONText.encode(JSONValue.object(members))) ?? []
        StandardOutput.write(String(decoding: text, as: UTF8.self) + "\n")
    }

    private static func size(_ bytes: Int64) -> String {
        bytes < 10_000_000 ? "\(bytes / 1000) kB" : "\(bytes / 1_000_000) MB"
    }
}
