internal import Alignment
internal import Platform
internal import Synchronization

/// Runs the jobs one after the other on its own thread.
///
/// Concurrency: `submit` from any thread; the work is on the loop. A job that is stopped by the server's end stays
/// `processing` on the disk, and is run from its beginning by the next server.
final class JobWorker: Sendable {
    private let store: JobStore
    private let aligner: Aligner
    private let loop = EventLoop(name: "sync-worker")
    private let isStopping = Atomic(false)
    private let log = Log("syncserver")

    init(store: JobStore, aligner: Aligner) {
        self.store = store
        self.aligner = aligner
    }

    func submit(_ id: String) {
        loop.perform { [self] in
            if !isStopping.load(ordering: .acquiring) { run(id) }
        }
    }

    /// Ends the running job at its next step, and returns when the thread is idle.
    func stop() async {
        isStopping.store(true, ordering: .releasing)
        try? await loop.run {}
        loop.stop()
    }

    /// The results are there as a whole, or not at all.
    private func align(_ id: String, _ record: JobRecord) throws -> JobRecord.Result {
        let folder = store.path(id)
        var options = AlignmentSettings()
        options.leastConfidence = record.job.confidenceThreshold
        var run = AlignmentRun(record.job.alignment(in: folder), options: options)
        run.aligner = aligner
        run.isStopping = { self.isStopping.load(ordering: .acquiring) }
        run.progress = { self.store.progress(id, $0, phase: $1) }
        let (part, whole) = ("\(folder)/result.part", "\(folder)/result")
        try Files.removeTree(whole)
        let outcome = try run.run(into: part)
        try Files.rename(part, to: whole)
        try AtomicFile.synchronizeFolder(of: whole)
        return JobRecord.Result(
            syncReport: AlignmentRun.reportName, frameMap: AlignmentRun.mapName, syncedVideos: [],
            picture: outcome.heard.isEmpty ? nil : AlignmentRun.pictureName)
    }

    private func run(_ id: String) {
        guard let record = store.record(id), record.status == .processing else { return }
        do {
            let result = try align(id, record)
            try store.finish(id) { record in
                record.status = .complete
                record.progress = 1
                record.phase = "complete"
                record.error = nil
                record.result = result
            }
            log.info("job \(id): complete")
        } catch is AlignmentRun.Stopped {
            log.info("job \(id): stopped with the server; the next start runs it again")
        } catch {
            log.warning("job \(id): \(error)")
            do {
                try store.finish(id) { record in
                    record.status = .failed
                    record.error = "\(error)"
                }
            } catch {
                log.error("job \(id): its failure can't be written: \(error)")
            }
        }
    }
}
