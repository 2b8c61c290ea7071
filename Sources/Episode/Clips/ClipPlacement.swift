internal import Platform
internal import Protocol
internal import Timing

/// Gives a clip that has come home its place in the episode: the files' names, the manifest's entry, and no pending file.
package enum ClipPlacement {
    /// Clips beyond these are no clips of a take.
    package static let sizes: ClosedRange<Int64> = 10_000...(16 << 30)
    /// A clip that lacks more of the take than this was cut.
    private static let tolerance = Interval.seconds(3)

    /// What the manifest says of a clip that is still to come.
    package static let waiting = "its clip is still on the camera"

    /// `<id>.mp4`, or `<id>_seg01.mp4` and so on.
    package static func fileName(_ stream: String, _ index: Int, of count: Int) -> String {
        guard count > 1 else { return "\(stream).mp4" }
        let number = String(index + 1)
        return "\(stream)_seg\(number.utf8.count < 2 ? "0" : "")\(number).mp4"
    }

    /// The clip's files that are in the folder already, whole.
    package static func present(_ stream: String, in names: [String]) -> [String] {
        let record = StreamRecord(id: stream, kind: .video)
        let files = StreamFiles(folder: "", names: names, stream: record)
        return ([files.media].compactMap { $0 } + files.segments)
    }

    /// Writes into the manifest what came, and removes the pending file: from here on the clip is part of the episode.
    ///
    /// Doing it again changes nothing.
    ///
    /// - Parameters:
    ///   - clip: what was waited for.
    ///   - folder: the episode's.
    ///   - files: the names in the folder, in order.
    ///   - notes: sentences for the operator.
    /// - Throws: `SystemError` when the manifest can't be written; the pending file is there still.
    package static func finish(_ clip: PendingClip, in folder: String, files: [String], notes: [String]) throws {
        let path = "\(folder)/\(EpisodeLayout.manifest)"
        // An episode of another program has no manifest of ours; its files speak for themselves.
        if var manifest = try? HostManifest.read(path) {
            let index = manifest.streams.firstIndex { $0.id.rawValue == clip.stream }
            let old = index.map { manifest.streams[$0] } ?? skeleton(clip)
            guard let entry = describe(old, clip, manifest, folder, files, notes) else { return }
            if let index { manifest.streams[index] = entry } else { manifest.streams.append(entry) }
            try manifest.write(to: path)
        }
        try PendingClip.remove(clip.stream, from: folder)
    }

    /// Writes into the manifest why a clip didn't come yet.
    package static func postpone(_ stream: String, in folder: String, why: String) throws {
        let path = "\(folder)/\(EpisodeLayout.manifest)"
        guard var manifest = try? HostManifest.read(path),
            let index = manifest.streams.firstIndex(where: { $0.id.rawValue == stream })
        else { return }
        let sentence = "\(waiting): \(why)"
        guard manifest.streams[index].errors.last != sentence else { return }
        manifest.streams[index].errors.removeAll { $0.hasPrefix(waiting) }
        manifest.streams[index].errors.append(sentence)
        try manifest.write(to: path)
    }

    private static func skeleton(_ clip: PendingClip) -> ManifestStream {
        ManifestStream(
            id: StreamID(unchecked: clip.stream), kind: .video,
            capabilities: StreamCapabilities(
                producesFile: true, providesAudioTrack: true, requiresIngest: true, supportsPreciseTimestamps: false),
            filePath: "\(clip.stream).mp4", status: .pending)
    }

    private static func describe(
        _ old: ManifestStream, _ clip: PendingClip, _ manifest: HostManifest, _ folder: String, _ files: [String],
        _ notes: [String]
    ) -> ManifestStream? {
        guard let first = files.first else { return nil }
        var entry = old
        var (frames, bytes, span, problems): (Int64, Int64, Interval, [String]) = (0, 0, .zero, [])
        var hasSound = true
        for file in files {
            bytes += Files.size("\(folder)/\(file)") ?? 0
            do {
                let probe = try ContainerProbe(path: "\(folder)/\(file)")
                frames += probe.videoPackets
                span = span + probe.span
                hasSound = hasSound && probe.hasAudio
                if probe.tornPackets > 0 {
                    problems.append("\(file) is torn: \(probe.tornPackets) frames can't be read")
                }
                if !probe.hasVideo { problems.append("\(file) has no video") }
            } catch {
                problems.append("\(file) can't be read: the camera was cut off while it wrote it")
            }
        }
        if !hasSound { problems.append("it has no sound: nothing but the camera's acknowledgement can align it") }
        // That it waited is over.
        entry.errors.removeAll { $0.hasPrefix(waiting) }
        entry.acknowledgedStart = clip.acknowledged ?? entry.acknowledgedStart
        entry.acknowledgedUncertainty = clip.uncertainty ?? entry.acknowledgedUncertainty
        entry.filePath = first
        entry.timestampsPath = nil
        (entry.frameCount, entry.bytes) = (frames, bytes)
        entry.rate = frames > 1 && span > .zero ? Double(frames - Int64(files.count)) / span.seconds : nil
        entry.status = frames == 0 ? .failed : problems.isEmpty ? .completed : .partial
        if let start = clip.acknowledged, let stop = manifest.stop, frames > 0, start + span < stop - tolerance {
            entry.status = .truncated
            entry.truncatedAt = start + span
            let lacking = ((stop - start - span).seconds * 10).rounded() / 10
            problems.append("it ends about \(lacking) s before the take")
        }
        for text in notes + problems where !entry.errors.contains(text) { entry.errors.append(text) }
        return entry
    }
}
