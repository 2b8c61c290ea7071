internal import Platform
package import Timing

/// Clips in a folder: a card that is mounted, or one that a person has copied.
package enum ClipFolder {
    private static let depth = 4
    private static let mostFiles = 20_000

    /// All clips below a folder, previews left out.
    package static func list(_ folder: String) throws -> [ClipChooser.File] {
        var files: [ClipChooser.File] = []
        try collect(folder, depth, &files)
        return files
    }

    private static func collect(_ folder: String, _ depth: Int, _ files: inout [ClipChooser.File]) throws {
        for name in try Files.list(folder) where files.count < mostFiles && !name.hasPrefix(".") {
            let path = "\(folder)/\(name)"
            if ClipName(name) != nil, let size = Files.size(path) {
                files.append(ClipChooser.File(path: path, size: size))
            } else if depth > 0, Files.isFolder(path) {
                try collect(path, depth - 1, &files)
            }
        }
    }
}

/// Gives the pending clips of some episodes what a folder has of them.
package struct ClipIntake: Sendable {
    /// One clip of one episode.
    package struct Item: Sendable, Hashable {
        package var folder: String
        package var clip: PendingClip

        package init(folder: String, clip: PendingClip) {
            self.folder = folder
            self.clip = clip
        }

        package var id: String { "\(folder)/\(clip.stream)" }
    }

    package enum Outcome: Sendable, Hashable {
        case placed(files: [String], sources: [String], note: String?)
        case failed(String)
    }

    /// How far the host's zone is ahead of UTC, as its cameras may be.
    package var zone: Interval
    /// Names on the card that belong to other takes.
    package var taken: Set<String>

    package init(zone: Interval = .zero, taken: Set<String> = []) {
        self.zone = zone
        self.taken = taken
    }

    /// Chooses for all items of one camera together, so that no two get the same file, and brings each with `bring`.
    ///
    /// - Parameters:
    ///   - items: of one camera.
    ///   - files: what the camera has.
    ///   - only: which of the items are brought; nil is all of them.
    ///   - bring: copies one file to a place, whole or not at all.
    /// - Returns: what became of each, by the item's id.
    package func place(
        _ items: [Item], from files: [ClipChooser.File], only: Set<String>? = nil,
        bring: (ClipChooser.File, String) throws -> Void
    ) -> [String: Outcome] {
        var chooser = ClipChooser(taken: taken, zone: zone)
        let choices = chooser.choose(items.map { ClipChooser.Wanted($0.clip, id: $0.id) }, among: files)
        var outcomes: [String: Outcome] = [:]
        for item in items where only?.contains(item.id) ?? true {
            switch choices[item.id] {
            case .files(let files, let note)?: outcomes[item.id] = place(item, files, note, bring)
            case .none(let why)?: outcomes[item.id] = .failed(why)
            case nil: outcomes[item.id] = .failed("it was not looked for")
            }
        }
        return outcomes
    }

    private func place(
        _ item: Item, _ files: [ClipChooser.File], _ note: String?, _ bring: (ClipChooser.File, String) throws -> Void
    ) -> Outcome {
        do {
            var names: [String] = []
            for (index, file) in files.enumerated() {
                guard ClipPlacement.sizes.contains(file.size) else {
                    return .failed("\(file.path) has \(file.size) bytes: that is no clip of a take")
                }
                let name = ClipPlacement.fileName(item.clip.stream, index, of: files.count)
                // What an earlier try has brought whole isn't brought again.
                if Files.size("\(item.folder)/\(name)") != file.size {
                    try bring(file, "\(item.folder)/\(name)")
                }
                names.append(name)
            }
            try ClipPlacement.finish(item.clip, in: item.folder, files: names, notes: [note].compactMap { $0 })
            return .placed(files: names, sources: files.map(\.path), note: note)
        } catch {
            return .failed("\(error)")
        }
    }
}
