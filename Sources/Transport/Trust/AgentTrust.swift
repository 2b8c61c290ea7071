internal import Platform
package import Protocol

/// The coordinators that this host may be commanded by: `<home>/trust/coordinators.json`, and the host's own key.
///
/// Its operations touch the disk; another program (`join` beside a running agent) may change the file too.
package struct AgentTrust: Sendable {
    /// One coordinator.
    package struct Entry: Codable, Sendable, Hashable {
        package var coordinator: UniqueID
        /// For a person.
        package var name: String
        package var key: CurveKey
        /// Hexadecimal; from the token that this host joined with.
        package var secret: String

        /// What this host advertises, so that the coordinator admits it.
        package func proof(hostUUID: UniqueID, agentKey: CurveKey) -> String {
            JoinToken.proof(secret: Hex.decode(secret) ?? [], hostUUID: hostUUID, agentKey: agentKey)
        }
    }

    package let home: String
    /// This host's own key, from `<home>/trust/curve_key.json`.
    package let keys: CurveKeyPair
    /// Sorted by coordinator.
    package private(set) var entries: [Entry]

    /// Reads what is there; a host that never joined trusts nobody.
    package static func load(home: String) throws -> AgentTrust {
        AgentTrust(
            home: home, keys: try CurveKeyPair.load(orCreateAt: TrustFile.keys(home: home)),
            entries: try TrustFile.read(file(home), default: []))
    }

    /// Trusts the coordinator of a token; one that is known already gets the new key and secret.
    package mutating func add(_ token: JoinToken) throws {
        let entry = Entry(
            coordinator: token.coordinator, name: token.name, key: token.key, secret: Hex.encode(token.secret))
        entries = try change { entries in
            entries.removeAll { $0.coordinator == token.coordinator || $0.key == token.key }
            entries.append(entry)
        }
    }

    /// Trusts a coordinator no more.
    package mutating func remove(_ coordinator: UniqueID) throws {
        entries = try change { entries in entries.removeAll { $0.coordinator == coordinator } }
    }

    /// Whose key it is; nil when nobody's whom this host trusts.
    package func coordinator(for key: CurveKey) -> Entry? { entries.first { $0.key == key } }

    /// One proof for each coordinator, for the advertisement.
    package func joinProofs(hostUUID: UniqueID) -> [String] {
        entries.map { $0.proof(hostUUID: hostUUID, agentKey: keys.publicKey) }
    }

    static func file(_ home: String) -> String { "\(TrustFile.folder(home: home))/coordinators.json" }

    private func change(_ body: (inout [Entry]) -> Void) throws -> [Entry] {
        try TrustFile.locked(home: home) {
            var entries: [Entry] = try TrustFile.read(Self.file(home), default: [])
            body(&entries)
            entries.sort { $0.coordinator < $1.coordinator }
            try TrustFile.write(entries, Self.file(home))
            return entries
        }
    }
}
