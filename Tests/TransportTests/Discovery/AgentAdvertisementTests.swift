internal import Protocol
internal import Testing

@testable internal import Transport

@Suite struct AgentAdvertisementTests {
    private let key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
    private let uuid = "00112233445566778899aabbccddeeff"

    private var record: [String] {
        [
            "v=1", "uuid=\(uuid)", "host=Kamera links ß", "product=downbeat 0.1.0", "key=\(key)", "port=7711",
            "clock=7710", "join0=\(String(repeating: "0a", count: 32))",
        ]
    }

    @Test("the text record has these strings, and is read back")
    func readBack() throws {
        let found = try AgentAdvertisement(textRecord: record, addresses: [])
        #expect(found.host.rawValue == "Kamera links ß")
        #expect(found.hostUUID.rawValue == uuid)
        #expect((found.commandPort, found.clockPort, found.protocolVersion) == (7711, 7710, 1))
        // The key has equal signs and the like in it.
        #expect(found.key == key)
        #expect(found.textRecord == record)
        let again = try AgentAdvertisement(identifyText: found.identifyText, addresses: [])
        #expect(again == found)
    }

    @Test("unknown keys are ignored, names have no case, and the first of two counts (RFC 6763, 6.4)")
    func tolerant() throws {
        let found = try AgentAdvertisement(
            textRecord: ["V=2", "v=1", "=x", "flag", "new=thing"] + record, addresses: [])
        #expect(found.protocolVersion == 2)
    }

    @Test(
        "what is missing or wrong is named",
        arguments: [
            ("v=", "its 'v' is '', which is not legal"), ("v=300", "its 'v' is '300', which is not legal"),
            ("uuid=XY", "its 'uuid' is 'XY', which is not legal"),
            ("host=../x", "its 'host' is '../x', which is not legal"),
            ("key=short", "its 'key' is 'short', which is not legal"),
            ("port=0", "its 'port' is '0', which is not legal"),
            ("clock=-1", "its 'clock' is '-1', which is not legal"), ("clock", "it has no 'clock'"),
        ])
    func wrong(string: String, sentence: String) {
        let name = string.prefix { $0 != "=" }
        let changed = record.map { $0.hasPrefix("\(name)=") ? string : $0 }
        #expect(throws: (any Error).self) { try AgentAdvertisement(textRecord: changed, addresses: []) }
        do { _ = try AgentAdvertisement(textRecord: changed, addresses: []) } catch {
            #expect(error.description == sentence)
        }
    }

    @Test("with the longest names and all proofs the answer to the identify question still fits")
    func fits() throws {
        let host = try #require(HostID(rawValue: String(repeating: "h", count: 64)))
        let proofs = [String](repeating: String(repeating: "b", count: 64), count: 20)
        let value = AgentAdvertisement(
            hostUUID: .random(), host: host, key: key, joinProofs: proofs, commandPort: 65535, clockPort: 65535)
        #expect(value.textRecord.allSatisfy { $0.utf8.count <= 255 })
        #expect(value.identifyText.count <= IdentifyDatagram.textLimit)
        let again = try AgentAdvertisement(identifyText: value.identifyText, addresses: [])
        #expect(again.joinProofs.count == 8)
    }

    @Test("random text is refused, and never crashes")
    func garbage() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...400)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(throws: AdvertisementError.self) { try AgentAdvertisement(identifyText: bytes, addresses: []) }
        }
    }

    @Test("addresses: canonical form, the scope only where it means something, and ZeroMQ's form")
    func addresses() throws {
        let table: [(String, String?, String?)] = [
            ("10.8.0.1", "10.8.0.1", "10.8.0.1"), ("fe80::1%eth0", "fe80::1%eth0", "[fe80::1%eth0]"),
            ("[FE80:0:0::1%eth0]", "fe80::1%eth0", "[fe80::1%eth0]"),
            ("2001:DB8::1%eth0", "2001:db8::1", "[2001:db8::1]"),
            ("::1", "::1", "[::1]"), ("10.8.0", nil, nil), ("", nil, nil), ("cam-a", nil, nil), ("fe80::zz", nil, nil),
        ]
        for (text, description, zeroMQ) in table {
            let address = NetworkAddress(text)
            #expect(address?.description == description, "\(text)")
            #expect(address?.zeroMQ == zeroMQ, "\(text)")
        }
        let order = ["10.8.0.1", "2001:db8::1", "fe80::1%eth0", "127.0.0.1"]
        let shuffled = order.reversed().compactMap { NetworkAddress($0) }
        #expect(shuffled.sorted(by: NetworkAddress.isPreferred).map(\.description) == order)
        #expect(NetworkAddress("febf::1")?.isLinkLocal == true && NetworkAddress("fec0::1")?.isLinkLocal == false)
    }

    @Test("a long name is cut to 63 bytes between characters")
    func instanceName() {
        #expect(ServiceAdvertiser.instanceName(String(repeating: "ß", count: 32)) == String(repeating: "ß", count: 31))
        #expect(ServiceAdvertiser.instanceName("cam-a") == "cam-a")
    }
}
