internal import Glibc
internal import Platform
internal import Protocol

/// One run of one job: load, align, map, report.
///
/// Blocking; on the worker's thread.
struct JobRun {
    /// The server ends.
    struct Stopped: Error {}

    let id: String
    let job: SyncJob
    let folder: String
    let aligner: Aligner
    let isStopping: @Sendable () -> Bool
    let progress: @Sendable (Double, String) -> Void

    func run() throws {
        let part = "\(folder)/result.part"
        try Files.removeTree(part)
        try Files.removeTree("\(folder)/result")
        let streams = try load()
        progress(0.4, "aligning")
        let alignment = try aligner.align(
            AlignmentInput(
                streams: streams, clockSeries: job.clockSeries.map { SyncJob.resolve($0, in: folder) },
                manifest: job.manifest.map { SyncJob.resolve($0, in: folder) },
                syncPoints: job.syncPoints.map { SyncJob.resolve($0, in: folder) }, folder: folder))
        try checkStop()
        progress(0.5, "mapping")
        let map = try FrameMap(streams: streams, alignment: alignment)
        try Files.makeFolder(part)
        let facts = try map.write(to: "\(part)/frame_map.jsonl") { share in
            try checkStop()
            progress(0.5 + 0.45 * share, "mapping")
        }
        progress(0.96, "reporting")
        let report = SyncReport(streams: streams, alignment: alignment, map: map, facts: facts)
        try AtomicFile.write(try JSONText.encodePretty(report.json), to: "\(part)/sync_report.json")
        try Files.rename(part, to: "\(folder)/result")
        try AtomicFile.synchronizeFolder(of: "\(folder)/result")
    }

    private func load() throws -> [LoadedStream] {
        var streams: [LoadedStream] = []
        for (place, stream) in job.streams.enumerated() {
            try checkStop()
            progress(0.4 * Double(place) / Double(job.streams.count), "loading")
            streams.append(
                LoadedStream(
                    stream: stream, rows: try SampleRows.load(SyncJob.resolve(stream.rows, in: folder), stream: stream),
                    media: stream.media.map { SyncJob.resolve($0, in: folder) }))
        }
        return streams
    }

    private func checkStop() throws {
        if isStopping() { throw Stopped() }
    }
}
