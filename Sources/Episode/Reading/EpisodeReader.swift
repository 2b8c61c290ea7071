internal import Platform
internal import Protocol
internal import Timing

/// Reads one host's episode of any known dialect: SyncField Swift, Kotlin and Python, and our own.
///
/// Whatever is wrong with it becomes a note; only a folder that can't be listed is an error. Nothing is written.
package struct EpisodeReader {
    private let folder: String
    private let names: [String]
    private var record: EpisodeRecord
    private var claimed: Set<String> = []

    /// Reads all of it; the rows of each stream are gone through once.
    ///
    /// - Throws: `SystemError` when the folder can't be listed.
    package static func read(_ folder: String) throws -> EpisodeRecord {
        var reader = try EpisodeReader(folder)
        reader.readAll()
        return reader.record
    }

    /// Whether a file of lines is a log and no stream.
    package static func isNoStream(_ name: String) -> Bool {
        [
            "events.jsonl", "session_log.jsonl", "incidents.jsonl", "clock_sync.jsonl", "clock_exchanges.jsonl",
            "frame_map.jsonl",
        ].contains(name)
    }

    private init(_ folder: String) throws {
        self.folder = folder
        names = try Files.list(folder)
        record = EpisodeRecord(
            folder: folder, dialect: .bare, host: FilePath.name(of: folder), role: nil, session: nil, leader: nil,
            task: nil, sdkVersion: nil, state: .crashed, anchor: nil, chirps: [], streams: [], notes: [])
    }

    private mutating func readAll() {
        let point = object(EpisodeLayout.syncPoint)
        let manifest = object(EpisodeLayout.manifest)
        readAnchor(point)
        if let manifest { readManifest(manifest) }
        addUndeclared()
        for index in record.streams.indices {
            var stream = record.streams[index]
            readFiles(&stream)
            record.streams[index] = stream
        }
        if let point { readChirps(point) }
        judgeState(hasManifest: manifest != nil, hasAnchor: point != nil)
        judgeDialect()
    }

    // MARK: Top level

    private mutating func readAnchor(_ point: JSONValue?) {
        guard let point else {
            if names.contains(EpisodeLayout.syncPoint) { return }
            return note(.warning, "there is no \(EpisodeLayout.syncPoint): its clock has no anchor")
        }
        if let host = point["host_id"]?.string, !host.isEmpty { record.host = host }
        record.role = point["role"]?.string
        record.session = point["session_id"]?.string
        record.sdkVersion = point["sdk_version"]?.string
        guard let monotonic = point["monotonic_ns"]?.integer else {
            return note(.warning, "\(EpisodeLayout.syncPoint) has no whole monotonic_ns: its clock has no anchor")
        }
        record.anchor = EpisodeRecord.Anchor(monotonic: monotonic, wall: point["wall_clock_ns"]?.integer)
    }

    private mutating func readManifest(_ manifest: JSONValue) {
        if let host = manifest["host_id"]?.string, !host.isEmpty {
            if let other = record.anchor.map({ _ in record.host }), other != host {
                note(.warning, "\(EpisodeLayout.syncPoint) is of host '\(other)', the manifest of host '\(host)'")
            }
            record.host = host
        }
        record.role = manifest["role"]?.string ?? record.role
        record.session = manifest["session_id"]?.string ?? record.session
        record.leader = manifest["leader_host_id"]?.string
        record.task = manifest["task"]?.string
        record.sdkVersion = manifest["sdk_version"]?.string ?? record.sdkVersion
        let isOurs = manifest["events"]?.array != nil && manifest["status"]?.string != nil
        switch manifest["streams"] {
        case .array(let entries)?:
            record.dialect = isOurs ? .downbeat : .swift
            for entry in entries.prefix(10_000) { add(entry, key: nil) }
        case .object(let entries)?:
            let hasKinds = entries.values.contains { $0["kind"] != nil }
            record.dialect = hasKinds || entries.isEmpty ? .python : .pythonOld
            for (key, entry) in entries.sorted(by: { Array($0.key.utf8).lexicographicallyPrecedes($1.key.utf8) }) {
                add(entry, key: key)
            }
        default:
            note(.warning, "\(EpisodeLayout.manifest) has no streams that are an array or an object")
        }
        guard isOurs else { return }
        do { record.manifest = try HostManifest.read("\(folder)/\(EpisodeLayout.manifest)") } catch {
            note(.warning, "\(error)")
        }
        for index in record.streams.indices {
            let entry = record.manifest?.streams.first { $0.id.rawValue == record.streams[index].id }
            record.streams[index].entry = entry
            record.streams[index].acknowledgedStart = entry?.acknowledgedStart
            record.streams[index].acknowledgedUncertainty = entry?.acknowledgedUncertainty
            record.streams[index].nominalRate = record.streams[index].entry?.description?.nominalRate
        }
    }

    /// One entry of `streams`, whichever of the three shapes it has.
    private mutating func add(_ entry: JSONValue, key: String?) {
        guard let id = entry["stream_id"]?.string ?? key, !id.isEmpty else {
            return note(.warning, "an entry of \(EpisodeLayout.manifest) has no stream_id")
        }
        guard !record.streams.contains(where: { Array($0.id.utf8) == Array(id.utf8) }) else {
            return note(.warning, "the manifest has it twice; the first entry is taken", stream: id)
        }
        let word = entry["kind"]?.string ?? entry["type"]?.string ?? ""
        let path = entry["file_path"]?.string ?? entry["path"]?.string ?? entry["sensor_path"]?.string
        var stream = StreamRecord(id: id, kind: Self.kind(word, path: path))
        stream.declaredPath = path
        stream.declaredFrames = entry["frame_count"]?.integer
        stream.status = entry["status"]?.string
        stream.truncatedAt = entry["truncated_at_ns"]?.integer.map { Timestamp(nanoseconds: $0) }
        stream.nominalRate = entry["capabilities"]?["target_hz"]?.double
        if let text = entry["capabilities"], let capabilities = Self.capabilities(text) {
            stream.capabilities = capabilities
        }
        if let error = entry["error"]?.string { note(.warning, error, stream: id) }
        record.streams.append(stream)
    }

    private static func kind(_ word: String, path: String?) -> StreamKind {
        if let kind = StreamKind(rawValue: word) { return kind }
        let path = path?.lowercased() ?? ""
        if path.hasSuffix(".mp4") || path.hasSuffix(".insv") { return .video }
        return path.hasSuffix(".wav") ? .audio : .sensor
    }

    private static func capabilities(_ value: JSONValue) -> StreamCapabilities? {
        guard value.object != nil else { return nil }
        return StreamCapabilities(
            producesFile: value["produces_file"]?.bool ?? false,
            providesAudioTrack: value["provides_audio_track"]?.bool ?? false,
            requiresIngest: value["requires_ingest"]?.bool ?? false,
            supportsPreciseTimestamps: value["supports_precise_timestamps"]?.bool ?? false)
    }

    // MARK: Files

    private mutating func readFiles(_ stream: inout StreamRecord) {
        let finder = StreamFiles(folder: folder, names: names, stream: stream)
        stream.media = stream.kind == .sensor ? nil : finder.media
        stream.stamps = finder.stamps
        stream.segments = finder.segments
        readPending(&stream)
        if let media = stream.media { stream.mediaBytes = Files.size("\(folder)/\(media)") ?? 0 }
        if stream.kind == .audio, let media = stream.media, media.hasSuffix(".wav") { readSound(&stream, media) }
        readRows(&stream)
        if stream.kind != .sensor, stream.media == nil, stream.segments.isEmpty {
            let what = stream.declaredPath.map { "its file '\($0)'" } ?? "its media file"
            let why = stream.isPending ? "the clip is still on the camera: ingest it" : "it isn't in the folder"
            note(.warning, "\(what) is missing: \(why)", stream: stream.id)
        }
        if !stream.segments.isEmpty {
            note(.information, "the camera cut its clip into \(stream.segments.count) pieces", stream: stream.id)
        }
        if stream.status == ManifestStream.Status.truncated.rawValue {
            note(.warning, "it ended before the take did", stream: stream.id)
        }
    }

    private mutating func readSound(_ stream: inout StreamRecord, _ media: String) {
        do {
            let sound = try WAVFile(path: "\(folder)/\(media)")
            stream.sound = sound
            if sound.declaredBytes != sound.presentBytes {
                note(.warning, "its head and its length disagree, as after a crash", stream: stream.id)
            }
        } catch {
            note(.warning, "\(error)", stream: stream.id)
        }
    }

    private mutating func readRows(_ stream: inout StreamRecord) {
        guard let stamps = stream.stamps else {
            if !stream.isPending {
                note(
                    stream.isClip ? .information : .warning,
                    "it has no time stamp file: only its sound can align it", stream: stream.id)
            }
            return
        }
        do {
            let report = try RowFile.read("\(folder)/\(stamps)")
            stream.rows = report
            for text in RowNotes.sentences(report, stream: stream) { note(text.weight, text.text, stream: stream.id) }
        } catch {
            note(.warning, "\(error)", stream: stream.id)
        }
    }

    private mutating func readPending(_ stream: inout StreamRecord) {
        let tentative = "\(stream.id).pending.tentative.json"
        let name = names.contains("\(stream.id).pending.json") ? "\(stream.id).pending.json" : tentative
        guard names.contains(name) else { return }
        stream.isPending = stream.media == nil && stream.segments.isEmpty
        let value = object(name)
        let clip = (try? Files.read("\(folder)/\(name)", limit: 1 << 20))
            .flatMap { try? PendingClip(reading: $0, stream: stream.id) }
        stream.acknowledgedStart = clip?.acknowledged
        stream.acknowledgedUncertainty = clip?.uncertainty
        if value?["ble_ack_monotonic_ns"] != nil, record.dialect == .swift { record.dialect = .kotlin }
        if name == tentative {
            note(.warning, "the camera was told to start, and that it stopped is written nowhere", stream: stream.id)
        }
    }

    /// Streams that have files and no entry: a manifest that is missing, and the side streams of some adapters.
    private mutating func addUndeclared() {
        let declared = record.streams.map { StreamFiles(folder: folder, names: names, stream: $0) }
        let known = Set(declared.flatMap { $0.all })
        for candidate in StreamFiles.candidates(names) where !known.contains(candidate.file) {
            guard !record.streams.contains(where: { $0.id == candidate.id }) else { continue }
            var stream = StreamRecord(id: candidate.id, kind: candidate.kind)
            stream.isUndeclared = true
            record.streams.append(stream)
            if record.dialect != .bare { note(.information, "it isn't in the manifest", stream: candidate.id) }
        }
    }

    // MARK: Judgement

    private mutating func readChirps(_ point: JSONValue) {
        let last = record.streams.compactMap { $0.rows?.last }.max()
        let (chirps, notes) = ChirpFacts.read(point, anchor: record.anchor?.monotonic, lastSample: last)
        record.chirps = chirps
        record.notes += notes
    }

    private mutating func judgeState(hasManifest: Bool, hasAnchor: Bool) {
        if let status = record.manifest?.status {
            record.state = status == .finished ? .finished : status == .recovered ? .recovered : .crashed
        } else {
            record.state = hasManifest ? .finished : .crashed
        }
        guard record.state == .crashed else { return }
        let what = hasManifest ? "its manifest is that of a take that still runs" : "it has no manifest"
        note(.warning, "\(what): the program died in the take, or it was aborted")
    }

    private mutating func judgeDialect() {
        guard record.streams.contains(where: { $0.rows?.hasOldKeys == true }) else { return }
        if record.dialect == .swift || record.dialect == .bare { record.dialect = .swiftOld }
    }

    // MARK: Helpers

    private mutating func note(_ weight: EpisodeNote.Weight, _ text: String, stream: String? = nil) {
        if record.notes.count < 1_000 { record.notes.append(EpisodeNote(weight, text, stream: stream)) }
    }

    /// A small JSON file; nil with a note when it is there and can't be read.
    private mutating func object(_ name: String) -> JSONValue? {
        guard names.contains(name) else { return nil }
        do {
            var bytes = try Files.read("\(folder)/\(name)", limit: 16 << 20)
            if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
            let value = try JSONText.decode(JSONValue.self, from: bytes)
            if value.object != nil { return value }
            note(.warning, "\(name) is \(value.kindName); an object is needed")
        } catch {
            note(.warning, "\(name) can't be read: \(error)")
        }
        return nil
    }
}
