internal import Glibc
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Transport

@Suite("Who trusts whom")
struct TrustTests {
    private let folder: TemporaryFolder
    private let now = Timestamp<WallTime>(nanoseconds: 1_700_000_000_000_000_000)
    private let host = HostID(unchecked: "cam-1")
    private let uuid = UniqueID.random()
    private let key = CurveKeyPair.generate().publicKey

    init() throws { folder = try TemporaryFolder() }

    private var rigHome: String { "\(folder.path)/rig" }
    private var agentHome: String { "\(folder.path)/agent" }

    // MARK: The agent

    @Test("A host that never joined trusts nobody, and keeps its key")
    func nobody() throws {
        let trust = try AgentTrust.load(home: agentHome)
        #expect(trust.entries.isEmpty)
        #expect(trust.coordinator(for: key) == nil)
        #expect(try AgentTrust.load(home: agentHome).keys.publicKey == trust.keys.publicKey)
    }

    @Test("Joining is kept; joining again replaces; two coordinators stand side by side")
    func join() throws {
        var trust = try AgentTrust.load(home: agentHome)
        let first = try RigTrust.load(home: rigHome)
        let second = try RigTrust.load(home: "\(folder.path)/rig2")
        let tokens = [try first.invite(), try second.invite(), try first.invite()]
        for token in tokens { try trust.add(JoinToken(parsing: token.text)) }
        let found = try AgentTrust.load(home: agentHome)
        #expect(found.entries == trust.entries && found.entries.count == 2)
        #expect(found.coordinator(for: first.keys.publicKey)?.secret == Hex.encode(tokens[2].secret))
        #expect(found.coordinator(for: second.keys.publicKey)?.name == second.name)
        #expect(found.joinProofs(hostUUID: uuid).count == 2)
        try trust.remove(first.coordinator)
        #expect(try AgentTrust.load(home: agentHome).entries.map(\.coordinator) == [second.coordinator])
        #expect(mode("\(agentHome)/trust/coordinators.json") == 0o600)
    }

    @Test("A running agent sees at once what another program wrote")
    func live() throws {
        let live = try LiveAgentTrust(home: agentHome)
        let rig = try RigTrust.load(home: rigHome)
        #expect(live.name(of: rig.keys.publicKey) == nil)
        var other = try AgentTrust.load(home: agentHome)
        try other.add(rig.invite())
        #expect(live.name(of: rig.keys.publicKey) == rig.name)
        try AtomicFile.write("garbage", to: "\(agentHome)/trust/coordinators.json")
        #expect(live.name(of: rig.keys.publicKey) == rig.name, "what was known stays")
        try AtomicFile.write("[]", to: "\(agentHome)/trust/coordinators.json")
        #expect(live.name(of: rig.keys.publicKey) == nil)
    }

    // MARK: The coordinator

    @Test("The coordinator's identity is made once")
    func identity() throws {
        let rig = try RigTrust.load(home: rigHome)
        let again = try RigTrust.load(home: rigHome)
        #expect(again.coordinator == rig.coordinator && again.keys.publicKey == rig.keys.publicKey)
        #expect(try rig.invite().coordinator == rig.coordinator)
        for name in ["coordinator.json", "curve_key.json", "invites.json"] {
            #expect(mode("\(rigHome)/trust/\(name)") == 0o600, "\(name)")
        }
    }

    @Test("An invited host is admitted, is known then, and stays known in the file")
    func admitted() throws {
        var rig = try RigTrust.load(home: rigHome)
        let proofs = [try rig.invite(now: now).proof(hostUUID: uuid, agentKey: key)]
        #expect(try judge(&rig, proofs) == .admitted)
        #expect(try judge(&rig, proofs) == .known)
        var again = try RigTrust.load(home: rigHome)
        #expect(try judge(&again, []) == .known)
        #expect(again.host(uuid)?.key == key && again.host(uuid)?.host == host)
        #expect(mode("\(rigHome)/trust/hosts.json") == 0o600)
    }

    @Test("An invite is good for one host")
    func usedUp() throws {
        var rig = try RigTrust.load(home: rigHome)
        let token = try rig.invite(now: now)
        #expect(try judge(&rig, [token.proof(hostUUID: uuid, agentKey: key)]) == .admitted)
        let second = UniqueID.random()
        let proof = token.proof(hostUUID: second, agentKey: key)
        #expect(try rig.judge(hostUUID: second, host: host, key: key, joinProofs: [proof], now: now) == .stranger)
    }

    @Test("Another program's invite counts, and an invite that it used up doesn't")
    func twoPrograms() throws {
        var running = try RigTrust.load(home: rigHome)
        var beside = try RigTrust.load(home: rigHome)
        let token = try beside.invite(now: now)
        let proof = token.proof(hostUUID: uuid, agentKey: key)
        #expect(try judge(&running, [proof]) == .admitted)
        let second = UniqueID.random()
        let other = token.proof(hostUUID: second, agentKey: key)
        #expect(try beside.judge(hostUUID: second, host: host, key: key, joinProofs: [other], now: now) == .stranger)
        #expect(try judge(&beside, []) == .known)
    }

    @Test("A proof for another host, another key or of another invite proves nothing")
    func wrongProofs() throws {
        var rig = try RigTrust.load(home: rigHome)
        let token = try rig.invite(now: now)
        let other = CurveKeyPair.generate().publicKey
        let foreign = JoinToken(
            coordinator: rig.coordinator, name: "x", key: rig.keys.publicKey, secret: SecureRandom.bytes(16))
        let proofs = [
            token.proof(hostUUID: .random(), agentKey: key), token.proof(hostUUID: uuid, agentKey: other),
            foreign.proof(hostUUID: uuid, agentKey: key), "", "zz", Hex.encode(token.secret),
        ]
        #expect(try judge(&rig, proofs) == .stranger)
        #expect(try judge(&rig, proofs + [token.proof(hostUUID: uuid, agentKey: key)]) == .admitted)
    }

    @Test(
        "An invite lives 24 hours, also when the wall clock is set back",
        arguments: [(0.0, true), (86_399, true), (86_400, false), (1e6, false), (-1, false), (-1e6, false)])
    func expiry(_ seconds: Double, _ isOpen: Bool) throws {
        var rig = try RigTrust.load(home: rigHome)
        let proof = try rig.invite(now: now).proof(hostUUID: uuid, agentKey: key)
        let later = now + .seconds(seconds)
        let judgement = try rig.judge(hostUUID: uuid, host: host, key: key, joinProofs: [proof], now: later)
        #expect(judgement == (isOpen ? .admitted : .stranger))
    }

    @Test("A known host with another key is a wrong key, until it is invited again")
    func wrongKey() throws {
        var rig = try RigTrust.load(home: rigHome)
        _ = try judge(&rig, [try rig.invite(now: now).proof(hostUUID: uuid, agentKey: key)])
        let other = CurveKeyPair.generate().publicKey
        func show(_ proofs: [String]) throws -> RigTrust.Judgement {
            try rig.judge(hostUUID: uuid, host: host, key: other, joinProofs: proofs, now: now)
        }
        #expect(try show([]) == .wrongKey(expected: key))
        #expect(try show([try rig.invite(now: now).proof(hostUUID: uuid, agentKey: other)]) == .admitted)
        #expect(try judge(&rig, []) == .wrongKey(expected: other))
    }

    @Test("A known host may change its name; a forgotten one is a stranger")
    func renamed() throws {
        var rig = try RigTrust.load(home: rigHome)
        _ = try judge(&rig, [try rig.invite(now: now).proof(hostUUID: uuid, agentKey: key)])
        let name = HostID(unchecked: "Kamera links")
        #expect(try rig.judge(hostUUID: uuid, host: name, key: key, joinProofs: [], now: now) == .known)
        #expect(try RigTrust.load(home: rigHome).host(uuid)?.host == name)
        try rig.forget(uuid)
        #expect(try judge(&rig, []) == .stranger)
    }

    @Test("Invites from many programs at once are all kept", .timeLimit(.minutes(1)))
    func manyInvites() async throws {
        let rig = try RigTrust.load(home: rigHome)
        let now = now
        let tokens = try await withThrowingTaskGroup(of: JoinToken.self) { group in
            for _ in 0..<20 { group.addTask { try rig.invite(now: now) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        var judging = rig
        for token in tokens {
            let uuid = UniqueID.random()
            let proof = token.proof(hostUUID: uuid, agentKey: key)
            #expect(
                try judging.judge(hostUUID: uuid, host: host, key: key, joinProofs: [proof], now: now) == .admitted)
        }
        #expect(judging.hosts.count == 20)
    }

    @Test("A broken file is named with its cure", arguments: ["hosts.json", "invites.json", "coordinator.json"])
    func broken(_ name: String) throws {
        _ = try RigTrust.load(home: rigHome)
        let path = "\(rigHome)/trust/\(name)"
        try AtomicFile.write("{]", to: path)
        let error = #expect(throws: TrustError.self) {
            var rig = try RigTrust.load(home: rigHome)
            _ = try judge(&rig, [])
        }
        #expect(error?.description.contains(path) == true)
    }

    private func judge(_ rig: inout RigTrust, _ proofs: [String]) throws -> RigTrust.Judgement {
        try rig.judge(hostUUID: uuid, host: host, key: key, joinProofs: proofs, now: now)
    }

    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }
}
