internal import Episode
internal import Glibc
internal import Platform

/// Finds the folders of the hosts' episodes in what a person names.
enum HostFolders {
    static func find(_ folder: String, scratch: String) throws -> [String] {
        guard Files.isFolder(folder) else { throw EpisodeInput.Unusable("there is no folder \(folder)") }
        if Files.isFolder("\(folder)/hosts") {
            // An episode at home.
            return try subfolders("\(folder)/hosts")
        }
        let names = try Files.list(folder)
        if let collected = try collected(folder, names, scratch) { return collected }
        if isEpisode(names) { return [folder] }
        // A session: a folder for each host, with its episodes in it.
        var found: [String] = []
        for host in try subfolders(folder) {
            if isEpisode(try Files.list(host)) {
                found.append(host)
                continue
            }
            let episodes = try subfolders(host).filter { path in
                guard FilePath.name(of: path).hasPrefix("ep_") else { return false }
                return isEpisode(try Files.list(path))
            }
            guard episodes.count <= 1 else {
                throw EpisodeInput.Unusable(
                    "host '\(FilePath.name(of: host))' has \(episodes.count) episodes in \(folder); name those of one take: "
                        + episodes.prefix(3).joined(separator: " "))
            }
            found += episodes
        }
        guard !found.isEmpty else {
            throw EpisodeInput.Unusable(
                "\(folder) is no episode: it has neither manifest.json nor sync_point.json, nor hosts with episodes in it"
            )
        }
        return found
    }

    private static func subfolders(_ folder: String) throws -> [String] {
        try Files.list(folder).filter { !$0.hasPrefix(".") }.map { "\(folder)/\($0)" }.filter { Files.isFolder($0) }
            .sorted()
    }

    private static func isEpisode(_ names: [String]) -> Bool {
        names.contains {
            $0 == EpisodeLayout.manifest || $0 == EpisodeLayout.syncPoint || $0.hasSuffix(".timestamps.jsonl")
        }
    }

    /// SyncField's Python collects all hosts' files into the leader's episode, as `<host_id>.<file>`.
    ///
    /// Each host gets a folder of links, in which its files have their own names again. Nil when it isn't such a folder.
    private static func collected(_ folder: String, _ names: [String], _ scratch: String) throws -> [String]? {
        guard let aggregated = try? AggregatedManifest.read("\(folder)/aggregated_manifest.json") else { return nil }
        var found: [String] = []
        // A longer name first: 'a.b' before 'a', whose files would seem to be b's.
        let hosts = aggregated.hosts.map(\.id).sorted { ($0.utf8.count, $0) > ($1.utf8.count, $1) }
        var taken: Set<String> = []
        for host in hosts {
            guard FilePath.staysInside(host), !host.contains("/") else { continue }
            let own = names.filter { $0.hasPrefix("\(host).") && !taken.contains($0) }
            guard
                own.contains("\(host).\(EpisodeLayout.manifest)") || own.contains("\(host).\(EpisodeLayout.syncPoint)")
            else { continue }
            taken.formUnion(own)
            let view = "\(scratch)/\(found.count)-\(host)"
            try Files.makeFolder(view)
            for name in own {
                guard symlink("\(folder)/\(name)", "\(view)/\(name.dropFirst(host.count + 1))") == 0 else {
                    throw SystemError(.current, "linking \(name) in \(view)")
                }
            }
            found.append(view)
        }
        return found.count > 1 ? found : nil
    }
}
