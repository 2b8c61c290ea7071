internal import Protocol
internal import Testing

@testable internal import Transport

@Suite struct BrowseTableTests {
    private let a = UniqueID(bytes: [UInt8](repeating: 0xAA, count: 16))
    private let b = UniqueID(bytes: [UInt8](repeating: 0xBB, count: 16))

    private func sighting(_ name: String, interface: Int32 = 2, proto: Int32 = 0) -> Sighting {
        Sighting(interface: interface, proto: proto, name: name, type: "_downbeat._tcp", domain: "local")
    }

    private func text(_ uuid: UniqueID, port: Int = 7711) -> [String] {
        ["v=1", "uuid=\(uuid)", "host=cam", "key=\(String(repeating: "a", count: 40))", "port=\(port)", "clock=7710"]
    }

    private func found(_ uuid: UniqueID, _ address: String, port: Int = 7711, isLocal: Bool = false) -> ResolvedSighting
    {
        ResolvedSighting(address: NetworkAddress(address), text: text(uuid, port: port), isLocal: isLocal)
    }

    private func addresses(_ events: [BrowseEvent]) -> [String]? {
        guard events.count == 1, case .found(let agent)? = events.first else { return nil }
        return agent.addresses.map(\.description)
    }

    @Test("sightings of one host uuid are one agent with all its addresses, IPv4 first")
    func merges() {
        var table = BrowseTable()
        #expect(addresses(table.resolve(sighting("cam", proto: 1), found(a, "fe80::1%eth0"))) == ["fe80::1%eth0"])
        #expect(addresses(table.resolve(sighting("cam"), found(a, "10.8.0.1"))) == ["10.8.0.1", "fe80::1%eth0"])
        let again = table.resolve(sighting("cam"), found(a, "10.8.0.1"))
        #expect(again.isEmpty)
        #expect(addresses(table.remove(sighting("cam"))) == ["fe80::1%eth0"])
        let gone = table.remove(sighting("cam", proto: 1))
        #expect(gone == [.lost(a)])
        let nothing = table.remove(sighting("cam"))
        #expect(nothing.isEmpty)
    }

    @Test("two hosts with one name are two agents")
    func twoHosts() {
        var table = BrowseTable()
        _ = table.resolve(sighting("cam"), found(a, "10.8.0.1"))
        _ = table.resolve(sighting("cam #2"), found(b, "10.8.0.2"))
        #expect(table.agents.map(\.hostUUID) == [a, b])
        #expect(table.agents.map(\.host.rawValue) == ["cam", "cam"])
    }

    @Test("another machine's loopback address is never taken; our own is, as the last one")
    func loopback() {
        var table = BrowseTable()
        let remote = table.resolve(sighting("cam", interface: 1), found(a, "127.0.0.1"))
        #expect(remote.isEmpty)
        let scopeless = table.resolve(sighting("cam", interface: 9, proto: 1), found(a, "fe80::1"))
        #expect(scopeless.isEmpty)
        #expect(
            addresses(table.resolve(sighting("own", interface: 1), found(b, "127.0.0.1", isLocal: true))) == [
                "127.0.0.1"
            ])
        #expect(
            addresses(table.resolve(sighting("own"), found(b, "10.8.0.2", isLocal: true))) == ["10.8.0.2", "127.0.0.1"])
    }

    @Test("a changed record is found anew; one that can't be read is said once, with its name")
    func changes() {
        var table = BrowseTable()
        _ = table.resolve(sighting("cam"), found(a, "10.8.0.1"))
        #expect(addresses(table.resolve(sighting("cam"), found(a, "10.8.0.1", port: 9))) == ["10.8.0.1"])
        #expect(table.agents.first?.commandPort == 9)
        let broken = ResolvedSighting(address: NetworkAddress("10.8.0.1"), text: ["v=1"], isLocal: false)
        let events = table.resolve(sighting("cam"), broken)
        #expect(events == [.lost(a), .unreadable("cam", "it has no 'uuid'")])
        let repeated = table.resolve(sighting("cam"), broken)
        #expect(repeated.isEmpty)
        // The identity under one name changes: the machine was replaced.
        _ = table.resolve(sighting("cam"), found(a, "10.8.0.1"))
        let replaced = table.resolve(sighting("cam"), found(b, "10.8.0.1"))
        #expect(replaced.first == .lost(a))
        #expect(table.agents.map(\.hostUUID) == [b])
    }

    @Test("after a restart of the daemon, what isn't seen again is lost, and the rest is not told twice")
    func stale() {
        var table = BrowseTable()
        _ = table.resolve(sighting("cam"), found(a, "10.8.0.1"))
        _ = table.resolve(sighting("other"), found(b, "10.8.0.2"))
        table.markStale()
        let again = table.resolve(sighting("cam"), found(a, "10.8.0.1"))
        #expect(again.isEmpty)
        let lost = table.dropStale()
        #expect(lost == [.lost(b)])
        let nothing = table.dropStale()
        #expect(nothing.isEmpty)
    }
}
