internal import Platform
package import Protocol

/// The folders of an agent's state, all below `DOWNBEAT_HOME`.
package struct AgentHome: Sendable, Hashable {
    package let path: String

    package init(_ path: String) { self.path = path }

    package var episodes: String { "\(path)/episodes" }
    package var takes: String { "\(path)/takes" }
    package var host: String { "\(path)/host.json" }

    package func episode(_ id: EpisodeID) -> String { "\(episodes)/\(id)" }

    package func make() throws {
        for folder in [path, episodes, takes] { try Files.makeFolder(folder) }
    }

    /// The identity of this host, made once and kept in `host.json`.
    ///
    /// It stays when the host gets another name; a copied home is the same host, so a home must not be cloned.
    package func hostUUID() throws -> UniqueID {
        struct Identity: Codable {
            var host_uuid: UniqueID
        }
        if Files.exists(host) {
            do {
                return try JSONText.decode(Identity.self, from: try Files.read(host, limit: 1 << 16)).host_uuid
            } catch let error as JSONText.Malformed {
                throw ConfigReader.Invalid(
                    description: "\(host) can't be read (\(error)); restore it, or remove it to become a new host")
            }
        }
        try make()
        let identity = Identity(host_uuid: .random())
        try AtomicFile.write(try JSONText.encodePretty(identity), to: host)
        return identity.host_uuid
    }
}
