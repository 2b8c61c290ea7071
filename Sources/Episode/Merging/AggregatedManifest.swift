internal import Platform
package import Protocol

/// `aggregated_manifest.json`: which files came from which host, with SyncField's keys.
///
/// A file's path is relative to its host's folder, `hosts/<host_id>/`.
package struct AggregatedManifest: Codable, Sendable, Hashable {
    package enum Status: String, Codable, Sendable, CaseIterable {
        case ok
        /// It had no such episode.
        case missing
        case unreachable
        case error
        case checksumMismatch = "checksum_mismatch"
    }

    package struct Host: Codable, Sendable, Hashable {
        package var id: String
        package var status: Status
        package var files: [FileEntry]
        package var error: String?

        package init(id: String, status: Status, files: [FileEntry], error: String?) {
            self.id = id
            self.status = status
            self.files = files
            self.error = error
        }

        /// The error is written as null where there is none, as SyncField does.
        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(status, forKey: .status)
            try container.encode(files, forKey: .files)
            try container.encode(error, forKey: .error)
        }

        private enum CodingKeys: String, CodingKey {
            case id = "host_id"
            case status, files, error
        }
    }

    package var session: String
    package var leader: String?
    /// The episode's name; all hosts use the same.
    package var leaderEpisode: String
    package var hosts: [Host]

    package init(session: String, leader: String?, leaderEpisode: String, hosts: [Host]) {
        self.session = session
        self.leader = leader
        self.leaderEpisode = leaderEpisode
        self.hosts = hosts
    }

    package func write(to path: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(self), to: path)
    }

    package static func read(_ path: String) throws -> AggregatedManifest {
        do {
            return try JSONText.decode(AggregatedManifest.self, from: try Files.read(path, limit: 64 << 20))
        } catch let error as JSONText.Malformed {
            throw EpisodeError(path, "no aggregated manifest: \(error)")
        }
    }

    private enum CodingKeys: String, CodingKey {
        case session = "session_id"
        case leader = "leader_host_id"
        case leaderEpisode = "leader_episode"
        case hosts
    }
}
