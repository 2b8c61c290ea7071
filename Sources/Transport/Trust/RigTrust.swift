internal import Platform
package import Protocol
package import Timing

/// The hosts that this coordinator knows, and its open invites: `<home>/trust/hosts.json`, `invites.json`.
///
/// It also holds who the coordinator is: `coordinator.json` and `curve_key.json` beside them, made when they are
/// absent. Its operations touch the disk; another program (`invite` beside a running coordinator) may change the files.
package struct RigTrust: Sendable {
    /// One host.
    package struct Host: Codable, Sendable, Hashable {
        package var hostUUID: UniqueID
        package var host: HostID
        package var key: CurveKey
        /// When it was admitted, ns of CLOCK_REALTIME.
        package var since: Timestamp<WallTime>

        private enum CodingKeys: String, CodingKey {
            case host, key
            case hostUUID = "host_uuid"
            case since = "since_ns"
        }
    }

    /// What becomes of a host that shows itself.
    package enum Judgement: Sendable, Hashable {
        /// Its key is the one that it is known by.
        case known
        /// It proved an open invite: it is known from now on, and the invite is used up.
        case admitted
        /// A host of this uuid is known by another key.
        case wrongKey(expected: CurveKey)
        /// Nobody has invited it.
        case stranger
    }

    /// How long an invite can be used.
    package static let inviteLife = Interval.seconds(24 * 3600)
    /// More open invites than any rig needs; the oldest goes when another one comes.
    private static let maximumInvites = 256

    package let home: String
    /// Who the coordinator is.
    package let coordinator: UniqueID
    /// For a person: the coordinator's machine, or what it was named.
    package private(set) var name: String
    /// The coordinator's own key.
    package let keys: CurveKeyPair
    /// Sorted by uuid.
    package private(set) var hosts: [Host]

    /// Reads what is there, and makes the coordinator's identity when it is absent.
    package static func load(home: String) throws -> RigTrust {
        let keys = try CurveKeyPair.load(orCreateAt: TrustFile.keys(home: home))
        let identity = try TrustFile.locked(home: home) { () throws -> Identity in
            let path = "\(TrustFile.folder(home: home))/coordinator.json"
            if let known: Identity = try TrustFile.read(path, default: nil) { return known }
            let new = Identity(coordinator: .random(), name: StateFolder.machineName)
            try TrustFile.write(new, path)
            return new
        }
        return RigTrust(
            home: home, coordinator: identity.coordinator, name: identity.name, keys: keys,
            hosts: try TrustFile.read(hostsFile(home), default: []))
    }

    /// Names the coordinator for people; what was invited before keeps the old name.
    package mutating func rename(_ name: String) throws {
        try TrustFile.locked(home: home) {
            try TrustFile.write(
                Identity(coordinator: coordinator, name: name), "\(TrustFile.folder(home: home))/coordinator.json")
        }
        self.name = name
    }

    /// A new token, good for one host within 24 h.
    package func invite(now: Timestamp<WallTime> = HostClock.wall) throws -> JoinToken {
        let secret = SecureRandom.bytes(16)
        try TrustFile.locked(home: home) {
            var invites = try openInvites(now)
            invites.append(Invite(secret: Hex.encode(secret), until: now + Self.inviteLife))
            try TrustFile.write(Array(invites.suffix(Self.maximumInvites)), Self.invitesFile(home))
        }
        return JoinToken(coordinator: coordinator, name: name, key: keys.publicKey, secret: secret)
    }

    /// Decides about a host that shows itself with its key; whether it holds the key is CURVE's to prove.
    package mutating func judge(
        hostUUID: UniqueID, host: HostID, key: CurveKey, joinProofs: [String],
        now: Timestamp<WallTime> = HostClock.wall
    ) throws -> Judgement {
        // The common case doesn't touch the disk.
        if let known = self.host(hostUUID), known.key == key, known.host == host { return .known }
        let shown = Host(hostUUID: hostUUID, host: host, key: key, since: now)
        let (judgement, hosts) = try TrustFile.locked(home: home) {
            try decide(shown, joinProofs: joinProofs, now: now)
        }
        self.hosts = hosts
        return judgement
    }

    /// Knows a host no more; it needs another invite.
    package mutating func forget(_ hostUUID: UniqueID) throws {
        hosts = try TrustFile.locked(home: home) {
            var hosts: [Host] = try TrustFile.read(Self.hostsFile(home), default: [])
            hosts.removeAll { $0.hostUUID == hostUUID }
            try TrustFile.write(hosts, Self.hostsFile(home))
            return hosts
        }
    }

    /// The host of a uuid; nil when it isn't known.
    package func host(_ hostUUID: UniqueID) -> Host? { hosts.first { $0.hostUUID == hostUUID } }

    private func decide(_ shown: Host, joinProofs: [String], now: Timestamp<WallTime>) throws -> (Judgement, [Host]) {
        var hosts: [Host] = try TrustFile.read(Self.hostsFile(home), default: [])
        let place = hosts.firstIndex { $0.hostUUID == shown.hostUUID }
        if let place, hosts[place].key == shown.key {
            if hosts[place].host != shown.host {
                hosts[place].host = shown.host
                try TrustFile.write(hosts, Self.hostsFile(home))
            }
            return (.known, hosts)
        }
        var invites = try openInvites(now)
        guard let invite = invites.firstIndex(where: { $0.isProved(by: joinProofs, for: shown) }) else {
            return (place.map { .wrongKey(expected: hosts[$0].key) } ?? .stranger, hosts)
        }
        // The invite goes first: what is cut off between the two needs another invite, but none is good for two hosts.
        invites.remove(at: invite)
        try TrustFile.write(invites, Self.invitesFile(home))
        if let place { hosts.remove(at: place) }
        hosts.append(shown)
        hosts.sort { $0.hostUUID < $1.hostUUID }
        try TrustFile.write(hosts, Self.hostsFile(home))
        return (.admitted, hosts)
    }

    /// Those whose time isn't over; one from the future (the wall clock was set back) is over too.
    private func openInvites(_ now: Timestamp<WallTime>) throws -> [Invite] {
        let invites: [Invite] = try TrustFile.read(Self.invitesFile(home), default: [])
        return invites.filter { now < $0.until && $0.until - now <= Self.inviteLife }
    }

    private static func hostsFile(_ home: String) -> String { "\(TrustFile.folder(home: home))/hosts.json" }
    private static func invitesFile(_ home: String) -> String { "\(TrustFile.folder(home: home))/invites.json" }
}

private struct Identity: Codable {
    var coordinator: UniqueID
    var name: String
}

private struct Invite: Codable {
    /// Hexadecimal.
    var secret: String
    var until: Timestamp<WallTime>

    private enum CodingKeys: String, CodingKey {
        case secret
        case until = "until_ns"
    }

    func isProved(by proofs: [String], for host: RigTrust.Host) -> Bool {
        guard let secret = Hex.decode(secret), secret.count == 16 else { return false }
        let right = JoinToken.proof(secret: secret, hostUUID: host.hostUUID, agentKey: host.key)
        return proofs.contains { HMACSHA256.equal(Array($0.utf8), Array(right.utf8)) }
    }
}
