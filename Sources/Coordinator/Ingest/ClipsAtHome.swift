internal import Episode
internal import Platform
package import Protocol
internal import Timing

/// Clips that are still to come of an episode that is home already.
package enum ClipsAtHome {
    /// What became of clips that were looked for in a folder, a sentence each.
    package struct Report: Sendable, Hashable {
        package var placed: [String] = []
        package var failed: [String] = []
    }

    /// The hosts of an episode's folder that wait for a clip.
    package static func waiting(in folder: String) -> [HostID] {
        ((try? Files.list("\(folder)/hosts")) ?? []).compactMap { name in
            guard let host = HostID(rawValue: name), !clips(folder, host).isEmpty else { return nil }
            return host
        }
    }

    /// Takes the clips that fit out of a folder, by their names and times; two streams never get one file.
    ///
    /// Blocking. The episode has to be merged again after it.
    package static func place(from source: String, in folder: String) throws -> Report {
        var report = Report()
        let files = try ClipFolder.list(source)
        let items = waiting(in: folder).flatMap { host in
            clips(folder, host).map { (host, ClipIntake.Item(folder: "\(folder)/hosts/\(host)", clip: $0)) }
        }
        // The camera's name isn't in a file's: what belongs together is told by the cameras' identities.
        let cameras = Dictionary(grouping: items) { $0.1.clip.cameraID.isEmpty ? $0.1.id : $0.1.clip.cameraID }
        var taken: Set<String> = []
        for (_, group) in cameras.sorted(by: { $0.key < $1.key }) {
            let zone = group.first?.1.clip.acknowledgedWall.map { HostClock.zone(at: $0) } ?? .zero
            let outcomes = ClipIntake(zone: zone, taken: taken).place(group.map(\.1), from: files) { file, path in
                try ClipCopy.copy(file.path, to: path)
            }
            for (host, item) in group {
                switch outcomes[item.id] {
                case .placed(let names, let sources, let note)?:
                    taken.formUnion(sources.map { FilePath.name(of: $0) })
                    report.placed.append(
                        "\(host).\(item.clip.stream): \(names.joined(separator: ", "))" + (note.map { "; \($0)" } ?? "")
                    )
                case .failed(let why)?: report.failed.append("\(host).\(item.clip.stream): \(why)")
                case nil: report.failed.append("\(host).\(item.clip.stream): it wasn't found")
                }
            }
        }
        return report
    }

    private static func clips(_ folder: String, _ host: HostID) -> [PendingClip] {
        (try? PendingClip.all(in: "\(folder)/hosts/\(host)").clips) ?? []
    }
}
