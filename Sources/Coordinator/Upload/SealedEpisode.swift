internal import Platform
internal import Protocol

/// An episode at home that may be uploaded.
package struct SealedEpisode: Sendable, Hashable {
    package let session: String
    package let episode: String
    package let folder: String

    /// One sentence: what is missing, and what to do.
    package struct Refusal: Error, Sendable, CustomStringConvertible {
        package let description: String
        /// Whether there is no such episode at all.
        package let isMissing: Bool
    }

    /// Opens the folder of an episode, and makes sure that it is sealed.
    package init(folder: String) throws(Refusal) {
        var folder = folder
        while folder.count > 1 && folder.hasSuffix("/") { folder.removeLast() }
        let episode = FilePath.name(of: folder)
        guard Files.isFolder(folder) else {
            throw Refusal(
                description: "\(episode): there is no such episode; 'downbeat episodes' lists them", isMissing: true)
        }
        for name in ["sync_request.json", "verdict.json", "manifest.json"] where Files.size("\(folder)/\(name)") == nil
        {
            throw Refusal(
                description: "\(episode): it isn't sealed (\(name) is missing); run 'downbeat ingest \(episode)' first",
                isMissing: false)
        }
        let state: String?
        do {
            let bytes = try Files.read("\(folder)/manifest.json", limit: 256 << 20)
            state = try JSONText.decode(JSONValue.self, from: bytes)["state"]?.string
        } catch {
            throw Refusal(
                description: "\(episode): manifest.json can't be read (\(error)); run 'downbeat merge \(episode)'",
                isMissing: false)
        }
        guard state == "sealed" else {
            throw Refusal(
                description: "\(episode): its state is '\(state ?? "unknown")', and only sealed episodes are uploaded; "
                    + "run 'downbeat ingest \(episode)' first", isMissing: false)
        }
        self.folder = folder
        self.episode = episode
        session = FilePath.name(of: FilePath.parent(of: folder))
    }

    /// The folders that are meant by the words of a command: ids of episodes, or paths to their folders.
    package static func folders(home: String, session: String?, names: [String]) -> [String] {
        names.flatMap { name -> [String] in
            if name.contains("/") { return [name] }
            let found = sessions(home, session).map { "\(home)/sessions/\($0)/\(name)" }.filter { Files.isFolder($0) }
            return found.isEmpty ? ["\(home)/sessions/\(session ?? "*")/\(name)"] : found
        }
    }

    /// Every folder of an episode, the oldest first; those that aren't sealed are among them.
    package static func allFolders(home: String, session: String?) -> [String] {
        sessions(home, session).flatMap { session -> [String] in
            let base = "\(home)/sessions/\(session)"
            return ((try? Files.list(base)) ?? []).filter { EpisodeID.isLegal($0) }.map { "\(base)/\($0)" }
        }
    }

    private static func sessions(_ home: String, _ session: String?) -> [String] {
        if let session { return FilePath.staysInside(session) ? [session] : [] }
        return ((try? Files.list("\(home)/sessions")) ?? []).filter { Files.isFolder("\(home)/sessions/\($0)") }
    }
}
