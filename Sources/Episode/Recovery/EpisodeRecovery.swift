internal import Glibc
internal import Platform
package import Protocol
internal import Timing

/// Repairs an episode on a host whose program died in the take.
///
/// Torn ends are cut, heads are made true, and the manifest is made anew from what lies there, with the status
/// `recovered`. What is whole is never changed. Running it again changes nothing; dying in it does no harm.
package enum EpisodeRecovery {
    package struct Report: Sendable, Hashable {
        package var manifest: HostManifest
        /// One sentence for each thing that was done or found.
        package var sentences: [String]
    }

    /// Repairs the episode in a folder.
    ///
    /// Nil when there's nothing to do: its manifest says that it was finished or recovered before. `host` is used when
    /// neither manifest nor sync point says whose episode it is.
    ///
    /// - Throws: `SystemError` when the disk refuses.
    package static func recover(folder: String, host: HostID) throws -> Report? {
        let manifestPath = "\(folder)/\(EpisodeLayout.manifest)"
        var sentences: [String] = []
        let old: HostManifest?
        do {
            old = Files.exists(manifestPath) ? try HostManifest.read(manifestPath) : nil
        } catch let error as EpisodeError {
            sentences.append("\(error); it is kept as \(EpisodeLayout.manifest).broken and made anew")
            try Files.rename(manifestPath, to: "\(manifestPath).broken")
            old = nil
        }
        if let old, old.status != .recording { return nil }
        let names = try Files.list(folder)
        for name in names where name.hasSuffix(".part") {
            try Files.remove("\(folder)/\(name)")
            sentences.append("\(name) was never finished and is removed")
        }
        for name in names { try mend("\(folder)/\(name)", name, &sentences) }

        var manifest = try old ?? skeleton(folder: folder, host: host)
        for id in streams(in: names) where !manifest.streams.contains(where: { $0.id == id.id }) {
            manifest.streams.append(entry(id.id, id.kind))
            if old != nil { sentences.append("stream '\(id.id)' is on the disk and not in the manifest; it is added") }
        }
        for index in manifest.streams.indices {
            try complete(&manifest.streams[index], folder: folder, &sentences)
        }
        manifest.status = .recovered
        manifest.stopReason = manifest.stopReason ?? "the program died in the take"
        manifest.errors.append(contentsOf: ["the program died in the take; the files were repaired"] + sentences)
        let log = try SessionLog(path: "\(folder)/\(EpisodeLayout.sessionLog)")
        try log.append(
            kind: "recovery", detail: sentences.isEmpty ? "nothing was torn" : sentences.joined(separator: "; "))
        try manifest.write(to: manifestPath)
        return Report(manifest: manifest, sentences: sentences)
    }

    private static func mend(_ path: String, _ name: String, _ sentences: inout [String]) throws {
        guard let size = Files.size(path) else { return }
        if name.hasSuffix(".jsonl") || name == EpisodeLayout.sessionLog {
            let whole = try TornTail.wholeLength(ofLines: path)
            if whole < size { try cut(path, to: whole, "a torn last line", name, size, &sentences) }
        } else if name.hasSuffix(".mp4") {
            guard let whole = try TornTail.wholeLength(ofFragments: path) else { return }
            if whole < size { try cut(path, to: whole, "a torn last fragment", name, size, &sentences) }
            do {
                if try MovieFinisher.finish(path) != .untouched { sentences.append("\(name): it got its index") }
            } catch let error as EpisodeError {
                sentences.append("\(error); it stays in fragments")
            }
        } else if name.hasSuffix(".wav") {
            try mendSound(path, name, size, &sentences)
        }
    }

    private static func mendSound(_ path: String, _ name: String, _ size: Int64, _ sentences: inout [String]) throws {
        let sound: WAVFile
        do { sound = try WAVFile(path: path) } catch let error as EpisodeError {
            sentences.append("\(error)")
            return
        }
        guard let format = sound.format else { return }
        let header = WAVHeader(format)
        guard Int64(header.length) == sound.dataOffset else { return }
        // A padding byte after an odd number of bytes is no sample.
        let isWhole = sound.declaredBytes == sound.presentBytes
        guard !isWhole else { return }
        let file = try FileDescriptor(path: path, flags: O_RDWR)
        do throws(Errno) {
            try file.resize(to: sound.dataOffset + sound.presentBytes)
            if sound.presentBytes % 2 == 1 { try file.writeAll([0], at: sound.dataOffset + sound.presentBytes) }
            try file.writeAll(header.bytes(dataBytes: sound.presentBytes), at: 0)
            try file.synchronize()
        } catch {
            throw SystemError(error, "repairing \(path)")
        }
        sentences.append("\(name): its head says \(sound.presentBytes / Int64(sound.bytesPerFrame)) sample frames now")
    }

    private static func cut(
        _ path: String, to length: Int64, _ what: String, _ name: String, _ size: Int64, _ sentences: inout [String]
    ) throws {
        let file = try FileDescriptor(path: path, flags: O_RDWR)
        do throws(Errno) {
            try file.resize(to: length)
            try file.synchronize()
        } catch {
            throw SystemError(error, "cutting \(path)")
        }
        sentences.append("\(name): \(what) of \(size - length) bytes is cut off")
    }

    private static func skeleton(folder: String, host: HostID) throws -> HostManifest {
        let path = "\(folder)/\(EpisodeLayout.syncPoint)"
        let point = (try? Files.read(path, limit: 1 << 20)).flatMap { try? JSONText.decode(SyncPoint.self, from: $0) }
        var manifest = HostManifest(
            host: point.flatMap { HostID(rawValue: $0.host) } ?? host, role: point?.role ?? .follower, streams: [],
            status: .recording)
        manifest.session = point?.session.flatMap { SessionID(rawValue: $0) }
        manifest.episode = point?.episode.flatMap { EpisodeID(rawValue: $0) }
        manifest.take = point?.take
        manifest.start = point?.start
        manifest.startBound = point?.startBound
        return manifest
    }

    /// The streams that the names of files tell of.
    private static func streams(in names: [String]) -> [(id: StreamID, kind: StreamKind)] {
        names.compactMap { name in
            let kinds: [(String, StreamKind)] = [(".mp4", .video), (".wav", .audio), (".jsonl", .sensor)]
            guard !name.hasSuffix(".timestamps.jsonl"),
                let (suffix, kind) = kinds.first(where: { name.hasSuffix($0.0) }),
                !EpisodeReader.isNoStream(name), let id = StreamID(rawValue: String(name.dropLast(suffix.count)))
            else { return nil }
            return (id, kind)
        }
    }

    private static func entry(_ id: StreamID, _ kind: StreamKind) -> ManifestStream {
        var stream = ManifestStream(
            id: id, kind: kind, capabilities: StreamCapabilities(producesFile: kind != .sensor),
            filePath: EpisodeLayout.samples(id, kind), status: .recording)
        if kind != .sensor { stream.timestampsPath = EpisodeLayout.timestamps(id) }
        return stream
    }

    /// Fills in what the files say.
    private static func complete(_ stream: inout ManifestStream, folder: String, _ sentences: inout [String]) throws {
        guard stream.status == .recording else { return }
        let media = "\(folder)/\(stream.filePath)"
        let id = stream.id.rawValue
        let waits = [PendingClip.path(folder, id), PendingClip.tentativePath(folder, id)].contains { Files.exists($0) }
        if Files.size(media) == nil, waits {
            stream.status = .pending
            stream.errors.append(ClipPlacement.waiting)
            return
        }
        let rowsPath = stream.kind == .sensor ? media : "\(folder)/\(stream.timestampsPath ?? "")"
        let rows = Files.size(rowsPath) == nil ? nil : try RowFile.read(rowsPath)
        stream.first = rows?.first.map { Timestamp(nanoseconds: $0) }
        stream.last = rows?.last.map { Timestamp(nanoseconds: $0) }
        stream.rate = rows?.rate
        stream.bytes = Files.size(media) ?? 0
        switch stream.kind {
        case .sensor: stream.frameCount = rows?.rows ?? 0
        case .audio: stream.frameCount = (try? WAVFile(path: media))?.frames ?? 0
        case .video:
            let probe = try? ContainerProbe(path: media)
            stream.frameCount = probe?.videoPackets ?? 0
            if probe?.hasAudio == true { stream.capabilities.providesAudioTrack = true }
        }
        stream.status = stream.frameCount > 0 ? .recovered : .failed
        if stream.frameCount == 0 { stream.errors.append("nothing of it was on the disk when the program died") }
        guard stream.kind == .video, let rows, rows.rows != stream.frameCount else { return }
        if rows.rows > stream.frameCount, stream.frameCount > 0 {
            try cutRows(&stream, rowsPath, rows, &sentences)
        } else {
            let sentence =
                "\(stream.filePath) has \(stream.frameCount) frames and its time stamp file \(rows.rows) rows"
            stream.errors.append(sentence)
            sentences.append(sentence)
        }
    }

    /// Cuts off the rows of frames that were not on the disk yet: rows are written at once, frames once a second.
    private static func cutRows(
        _ stream: inout ManifestStream, _ path: String, _ rows: RowReport, _ sentences: inout [String]
    ) throws {
        guard let length = try RowFile.offset(ofRow: stream.frameCount, in: path), let size = Files.size(path),
            length < size
        else { return }
        let end = stream.last
        try cut(path, to: length, "rows without frames", FilePath.name(of: path), size, &sentences)
        stream.last = try RowFile.read(path).last.map { Timestamp(nanoseconds: $0) }
        var sentence =
            "\(stream.filePath) has \(stream.frameCount) frames; \(rows.rows - stream.frameCount) more had come and "
            + "were not on the disk when the program died"
        if let end, let last = stream.last {
            sentence += ": the last \((end - last).nanoseconds / 1_000_000) ms are lost"
        }
        stream.errors.append(sentence)
        sentences.append(sentence)
    }
}
