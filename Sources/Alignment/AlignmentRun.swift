internal import Episode
internal import Glibc
internal import Platform
package import Protocol

/// One alignment from the files to the results: load, listen, align, map, report.
///
/// Blocking, on the caller's thread; memory is that of the rows' stamps.
package struct AlignmentRun {
    /// The caller wants no result any more.
    package struct Stopped: Error {
        package init() {}
    }

    /// What was made.
    package struct Outcome: Sendable {
        package var alignment: Alignment
        package var report: JSONValue
        package var heard: [SoundHearing]
    }

    /// The files that are made in the folder of results.
    package static let reportName = "sync_report.json"
    package static let mapName = "frame_map.jsonl"
    package static let pictureName = "heard.svg"

    package var job: AlignmentJob
    package var options: AlignmentSettings
    package var aligner = Aligner.standard
    package var isStopping: @Sendable () -> Bool = { false }
    /// 0…1, and the phase: loading, listening, aligning, mapping, reporting.
    package var progress: @Sendable (Double, String) -> Void = { _, _ in }

    package init(_ job: AlignmentJob, options: AlignmentSettings = AlignmentSettings()) {
        self.job = job
        self.options = options
    }

    /// Writes the results into a folder that is made anew, each file fsynced.
    ///
    /// - Throws: `Aligner.Unaligned` and `FrameMap.NoOverlap` with the reason in one sentence, `Stopped`, and the errors
    ///   of the files.
    package func run(into folder: String) throws -> Outcome {
        let points = self.points()
        var input = AlignmentInput(streams: try load())
        input.points = points
        input.heard = try listen(points)
        input.clockSeries = job.clockSeries
        input.manifest = job.manifest
        input.options = options
        progress(0.6, "aligning")
        let alignment = try aligner.align(input)
        try checkStop()
        progress(0.62, "mapping")
        let leftOut = job.leftOut + leaveOut(alignment, &input)
        let map = try FrameMap(streams: input.streams, alignment: alignment)
        try Files.removeTree(folder)
        try Files.makeFolder(folder)
        let facts = try map.write(to: "\(folder)/\(Self.mapName)") { share in
            try checkStop()
            progress(0.62 + 0.33 * share, "mapping")
        }
        progress(0.96, "reporting")
        let report = SyncReport(
            streams: input.streams, alignment: alignment, map: map, facts: facts, heard: input.heard,
            leftOut: leftOut
        ).json
        if !input.heard.isEmpty {
            let picture = HeardPicture(
                streams: input.streams, alignment: alignment, map: map, heard: input.heard, points: points)
            try AtomicFile.write(picture.svg, to: "\(folder)/\(Self.pictureName)")
        }
        try AtomicFile.write(try JSONText.encodePretty(report), to: "\(folder)/\(Self.reportName)")
        return Outcome(alignment: alignment, report: report, heard: input.heard)
    }

    /// Takes out the streams of clocks that have no place; a sentence for each.
    private func leaveOut(_ alignment: Alignment, _ input: inout AlignmentInput) -> [String] {
        let out = input.streams.filter { alignment.placements[$0.stream.clock] == nil }.map(\.stream)
        input.streams.removeAll { alignment.placements[$0.stream.clock] == nil }
        return out.map { "stream '\($0.id)' can't be aligned: \(alignment.unplaced[$0.clock] ?? "no clock")" }
    }

    private func points() -> [HostPoint] {
        job.syncPoints.compactMap { path in
            guard let point = SyncPointFile.read(path) else { return nil }
            return HostPoint(host: point.host, anchor: point.anchor, chirps: point.chirps)
        }
    }

    // MARK: Loading

    private func load() throws -> [LoadedStream] {
        var streams: [LoadedStream] = []
        for (place, stream) in job.streams.enumerated() {
            try checkStop()
            progress(0.2 * Double(place) / Double(job.streams.count), "loading")
            streams.append(LoadedStream(stream: stream, rows: try rows(stream)))
        }
        return streams
    }

    private func rows(_ stream: AlignmentStream) throws -> SampleRows {
        guard stream.rows.isEmpty else {
            return job.isForgiving
                ? try SampleRows.read(stream.rows, stream: stream) : try SampleRows.load(stream.rows, stream: stream)
        }
        // A clip without stamps: its frames on the file's own time line.
        let times = try stream.media.map { try VideoTimes.read($0) } ?? []
        guard !times.isEmpty else {
            throw SampleRows.LoadError(
                description: "Timestamps load failed for \(stream.id): it has neither stamps nor frames; leave it out")
        }
        return SampleRows(clip: times)
    }

    // MARK: Listening

    /// Only where it can help: one clock needs no sound.
    private func listen(_ points: [HostPoint]) throws -> [SoundHearing] {
        guard Set(job.streams.map(\.clock)).count > 1, options.method != .clock else { return [] }
        let ear = Ear(points: points, leastConfidence: options.leastConfidence)
        let sizes = job.sounds.map { Double(max(Files.size($0.path) ?? 0, 1)) }
        let whole = max(sizes.reduce(0, +), 1)
        var done = 0.0
        var heard: [SoundHearing] = []
        for (source, size) in zip(job.sounds, sizes) {
            try checkStop()
            progress(0.2 + 0.4 * done / whole, "listening")
            heard.append(try ear.listen(source) { _ in try checkStop() })
            done += size
        }
        return heard
    }

    private func checkStop() throws {
        if isStopping() { throw Stopped() }
    }
}
