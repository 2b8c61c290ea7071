internal import Platform
internal import Protocol

/// Which files in an episode's folder belong to a stream; by names only.
struct StreamFiles {
    let media: String?
    let stamps: String?
    /// `<id>_seg01.mp4` and so on, in order.
    let segments: [String]

    var all: [String] { [media, stamps].compactMap { $0 } + segments }

    /// A manifest's path may be absolute and of another machine, and may name a file that never came: its last part is
    /// tried, then the usual names.
    init(folder: String, names: [String], stream: StreamRecord) {
        let present = Set(names)
        let declared = stream.declaredPath.map { path in
            FilePath.name(of: path.replacingBackslashes)
        }
        func first(_ candidates: [String?]) -> String? {
            candidates.compactMap { $0 }.first { present.contains($0) && FilePath.staysInside($0) }
        }
        let id = stream.id
        // Python's file is named by the stream's alias, which may be another word than its id.
        let stem = declared.map { name in name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name }
        switch stream.kind {
        case .video: media = first([declared, "\(id).mp4"])
        case .audio: media = first([declared, "\(id).wav", "\(id).mp4", "\(id).m4a"])
        case .sensor: media = nil
        }
        if stream.kind == .sensor {
            let named = declared.flatMap { $0.hasSuffix(".jsonl") ? $0 : nil }
            stamps = first([named, "\(id).jsonl", "\(id).timestamps.jsonl"])
        } else {
            stamps = first(["\(id).timestamps.jsonl", stem.map { "\($0).timestamps.jsonl" }])
        }
        let prefix = "\(id)_seg"
        segments = names.filter { name in
            guard name.hasPrefix(prefix), name.hasSuffix(".mp4") else { return false }
            let number = name.dropFirst(prefix.count).dropLast(4)
            return !number.isEmpty && number.utf8.allSatisfy { (48...57).contains($0) }
        }
        .sorted { ($0.utf8.count, $0) < ($1.utf8.count, $1) }
    }

    /// What the names in a folder tell of streams, in the order of names; each stream once.
    static func candidates(_ names: [String]) -> [(id: String, kind: StreamKind, file: String)] {
        var found: [(id: String, kind: StreamKind, file: String)] = []
        func add(_ suffix: String, _ kind: StreamKind) {
            for name in names where name.hasSuffix(suffix) && name.utf8.count > suffix.utf8.count {
                let id = String(name.dropLast(suffix.count))
                guard !EpisodeReader.isNoStream(name), !name.hasSuffix(".part") else { continue }
                if kind == .sensor && name.hasSuffix(".timestamps.jsonl") { continue }
                if !found.contains(where: { $0.id == id }) { found.append((id, kind, name)) }
            }
        }
        add(".mp4", .video)
        add(".wav", .audio)
        add(".timestamps.jsonl", .video)
        add(".jsonl", .sensor)
        return found
    }
}

extension String {
    /// A path of another system as one of ours.
    fileprivate var replacingBackslashes: String { String(map { $0 == "\\" ? "/" : $0 }) }
}
