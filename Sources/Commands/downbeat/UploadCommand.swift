internal import Coordinator
internal import Glibc
internal import Platform
internal import Protocol

/// `downbeat upload`: brings sealed episodes to a sync server, and fetches what it made of them.
enum UploadCommand {
    static let syntax = CommandSyntax(
        program: "downbeat upload",
        summary: "Upload sealed episodes to a sync server, wait for its jobs, and fetch the results.",
        operands: "EPISODE…",
        options: [
            CommandOption("server", short: "s", value: "URL", help: "the sync server (http://127.0.0.1:8080)"),
            CommandOption("session", value: "NAME", help: "all episodes of this session; with names, those of it"),
            CommandOption("all", short: "a", help: "every sealed episode that the server hasn't confirmed yet"),
            CommandOption("no-wait", help: "don't wait for the jobs; a later upload fetches the results"),
            CommandOption("json", help: "print one JSON object for each episode"),
        ],
        example: "downbeat upload ep_20260411_152930_a1b2c3 --server http://sync.local:8080")

    static let defaultServer = "http://127.0.0.1:8080"

    static func run(_ parsed: CommandSyntax.Parsed) async -> ExitCode {
        let server = EpisodeUploader.normalized(parsed.value("server") ?? defaultServer)
        guard server.hasPrefix("http://") || server.hasPrefix("https://") else {
            return fail(.usage, "--server is '\(server)'; legal is a URL that begins with http:// or https://")
        }
        // A session alone means all that is in it.
        let isAll = parsed.has("all") || parsed.has("session") && parsed.operands.isEmpty
        guard isAll != !parsed.operands.isEmpty else {
            return fail(
                .usage,
                isAll
                    ? "--all and the names of episodes exclude each other"
                    : "name the episodes, or give --session or --all")
        }
        let home = StateFolder.path
        let session = parsed.value("session")
        let folders =
            isAll
            ? SealedEpisode.allFolders(home: home, session: session)
            : SealedEpisode.folders(home: home, session: session, names: parsed.operands)
        do {
            guard let lock = try UploadLock(home: home) else {
                return fail(.refused, "another 'downbeat upload' is running here; wait for it, or stop it")
            }
            defer { lock.release() }
            let reporter = UploadReporter(json: parsed.has("json"))
            let uploader = EpisodeUploader(queue: UploadQueue(home: home), server: server)
            return try await withInterruption(uploader) {
                await upload(
                    folders, isAll: parsed.has("all"), waits: !parsed.has("no-wait"), uploader: uploader,
                    reporter: reporter)
            }
        } catch {
            return fail(.failed, "\(error)")
        }
    }

    private static func upload(
        _ folders: [String], isAll: Bool, waits: Bool, uploader: EpisodeUploader, reporter: UploadReporter
    ) async -> ExitCode {
        var found = 0
        var isGood = true
        for folder in folders {
            let episode: SealedEpisode
            do throws(SealedEpisode.Refusal) { episode = try SealedEpisode(folder: folder) } catch {
                // With --all an episode that isn't sealed yet is simply not meant.
                if isAll { continue }
                if !error.isMissing { found += 1 }
                reporter.refused(FilePath.name(of: folder), error.description)
                isGood = false
                continue
            }
            found += 1
            do {
                let outcome = try await uploader.upload(episode, waits: waits) {
                    reporter.progress(episode.episode, $0)
                }
                reporter.ended(outcome)
                isGood = isGood && outcome.isGood
            } catch is CancellationError {
                reporter.refused(episode.episode, "\(episode.episode): interrupted; the next upload goes on from here")
                return .failed
            } catch {
                reporter.refused(episode.episode, "\(episode.episode): \(error)")
                isGood = false
            }
        }
        if found == 0 {
            if isAll { StandardError.write("downbeat upload: there is no sealed episode here\n") }
            return .notFound
        }
        return isGood ? .good : .failed
    }

    /// Ends the transfer on SIGINT and SIGTERM.
    private static func withInterruption(_ uploader: EpisodeUploader, _ work: @escaping @Sendable () async -> ExitCode)
        async throws -> ExitCode
    {
        let loop = EventLoop(name: "signals")
        let signals = try Signals.stream(on: loop)
        return await withTaskGroup(of: ExitCode?.self) { group in
            // Unstructured, because the signal's task must be able to cancel it alone.
            let task = Task { await work() }
            group.addTask { await task.value }
            group.addTask {
                for await _ in signals {
                    uploader.cancel()
                    task.cancel()
                }
                return nil
            }
            var code = ExitCode.failed
            for await result in group {
                if let result {
                    code = result
                    group.cancelAll()
                }
            }
            return code
        }
    }

    private static func fail(_ code: ExitCode, _ sentence: String) -> ExitCode {
        StandardError.write("downbeat upload: \(sentence)\n")
        return code
    }
}

/// Keeps a second upload of the same home away; the kernel lets go of it when the program dies.
private final class UploadLock {
    private let file: FileDescriptor

    /// Nil when another program has it.
    init?(home: String) throws {
        try Files.makeFolder(home)
        file = try FileDescriptor(path: "\(home)/upload.lock", flags: O_RDWR | O_CREAT)
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else { return nil }
    }

    func release() { _ = flock(file.rawValue, LOCK_UN) }
}
