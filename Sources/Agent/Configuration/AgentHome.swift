package import Devices
internal import Glibc
package import Platform
package import Protocol

/// The folders of an agent's state, all below `DOWNBEAT_HOME`.
package struct AgentHome: Sendable, Hashable {
    package let path: String

    package init(_ path: String) { self.path = path }

    package var episodes: String { "\(path)/episodes" }
    package var takes: String { "\(path)/takes" }
    package var host: String { "\(path)/host.json" }

    /// Which camera each stream had in its last take.
    package var cameras: CameraMemory { CameraMemory(path: "\(path)/cameras.json") }

    /// What these streams' names mean now is meant, or what all of them do.
    package func acceptCameras(of streams: [String]?) throws { try cameras.forget(streams) }

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

    /// The right to be the one agent of this home, for as long as the descriptor lives, also when the program is killed.
    ///
    /// The corresponding C function is `flock`.
    package func lock() throws -> FileDescriptor {
        try make()
        let file = try FileDescriptor(path: "\(path)/agent.lock", flags: O_RDWR | O_CREAT, mode: 0o600)
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            throw HomeInUse(path: path)
        }
        return file
    }
}

/// Another agent runs with the same home.
package struct HomeInUse: Error, Sendable, CustomStringConvertible {
    package let path: String

    package var description: String {
        "another agent runs with the home \(path); stop it, or give this one another DOWNBEAT_HOME"
    }
}
