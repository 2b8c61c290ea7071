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

    private func run(_ id: String) {
        guard let record = store.record(id), record.status == .processing else { return }
        do {
            try JobRun(
                id: id, job: record.job, folder: store.path(id), aligner: aligner,
                isStopping: { self.isStopping.load(ordering: .acquiring) },
                progress: { self.store.progress(id, $0, phase: $1) }
            ).run()
            try store.finish(id) { record in
                record.status = .complete
                record.progress = 1
                record.phase = "complete"
                record.error = nil
                record.result = JobRecord.Result(
                    syncReport: "sync_report.json", frameMap: "frame_map.jsonl", syncedVideos: [])
            }
            log.info("job \(id): complete")
        } catch is JobRun.Stopped {
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
