import Devices
import Platform
import TestSupport
import Testing
import Timing

/// Expected bytes are from the tables of the Core specification (Vol 3 Part F 3.4), and from a dialogue between Linux 6.1
/// and another peripheral's implementation that was noted down on the wire.
@Suite struct ATTPacketTests {
    private static let service: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0x45, 0x4C, 0x42, 0x5F, 0x53, 0x52, 0x46]

    static let golden: [(String, ATTPacket)] = [
        ("01 10 12 00 0a", .errorResponse(request: 0x10, handle: 0x12, code: .attributeNotFound)),
        ("02 f7 00", .exchangeMTURequest(247)),
        ("03 05 02", .exchangeMTUResponse(517)),
        ("04 11 00 12 00", .findInformationRequest(first: 0x11, last: 0x12)),
        ("05 01 11 00 02 29", .findInformationResponse([.init(handle: 0x11, type: BluetoothUUID(0x2902))])),
        (
            "06 01 00 ff ff 00 28 0f 18",
            .findByTypeValueRequest(first: 1, last: 0xFFFF, type: 0x2800, value: [0x0F, 0x18])
        ),
        ("07 0e 00 11 00", .findByTypeValueResponse([.init(handle: 0x0E, end: 0x11, bytes: [])])),
        ("08 0e 00 11 00 03 28", .readByTypeRequest(first: 0x0E, last: 0x11, type: BluetoothUUID(0x2803))),
        (
            "09 07 0f 00 12 10 00 19 2a",
            .readByTypeResponse([.init(handle: 0x0F, bytes: [0x12, 0x10, 0x00, 0x19, 0x2A])])
        ),
        ("0a 10 00", .readRequest(0x10)),
        ("0b 64", .readResponse([0x64])),
        ("0c 10 00 16 00", .readBlobRequest(0x10, offset: 22)),
        ("0d 01 02", .readBlobResponse([1, 2])),
        ("10 01 00 ff ff 00 28", .readByGroupTypeRequest(first: 1, last: 0xFFFF, type: BluetoothUUID(0x2800))),
        (
            "11 06 01 00 05 00 00 18 06 00 0d 00 01 18",
            .readByGroupTypeResponse([
                .init(handle: 1, end: 5, bytes: [0x00, 0x18]), .init(handle: 6, end: 0x0D, bytes: [0x01, 0x18]),
            ])
        ),
        (
            "11 14 0e 00 11 00 01 00 00 00 00 00 00 00 00 45 4c 42 5f 53 52 46",
            .readByGroupTypeResponse([.init(handle: 0x0E, end: 0x11, bytes: service)])
        ),
        ("12 11 00 01 00", .writeRequest(0x11, [1, 0])),
        ("13", .writeResponse),
        ("16 10 00 05 00 aa bb", .prepareWriteRequest(0x10, offset: 5, [0xAA, 0xBB])),
        ("17 10 00 05 00 aa bb", .prepareWriteResponse(0x10, offset: 5, [0xAA, 0xBB])),
        ("18 01", .executeWriteRequest(commit: true)),
        ("19", .executeWriteResponse),
        ("1b 10 00 01 02 03", .notification(0x10, [1, 2, 3])),
        ("1d 10 00", .indication(0x10, [])),
        ("1e", .confirmation),
        (
            "23 10 00 01 00 07 12 00 02 00 08 09",
            .multipleNotification([.init(handle: 0x10, bytes: [7]), .init(handle: 0x12, bytes: [8, 9])])
        ),
        ("52 10 00 ff", .writeCommand(0x10, [0xFF])),
    ]

    @Test(arguments: golden) func goldenBytes(text: String, packet: ATTPacket) {
        let bytes = hex(text)
        #expect(packet.bytes == bytes)
        #expect(ATTPacket(bytes) == packet)
    }

    @Test func lengthsThatDoNotFitAreRefused() {
        let wrong = [
            "", "01 10 12 00", "02 f7", "02 f7 00 00", "04 11 00 12", "05 03 11 00 02 29", "05 01 11 00 02", "05 01",
            "08 0e 00 11 00 03", "08 0e 00 11 00 03 28 00", "09 01 00", "09 07 0f 00 12", "09 07", "0a 10", "11 03 01",
            "11 06 01 00 05 00 00", "13 00", "18 02", "1e 00", "23 10 00 05 00 07", "23", "7f",
        ]
        for text in wrong { #expect(ATTPacket(hex(text)) == nil, "\(text)") }
    }

    /// Any bytes are refused or give a packet that is written back as it was read.
    @Test func randomBytesAreReadOrRefused() {
        var noise = SeededGenerator(seed: 20)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0..<40, using: &noise)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &noise) }
            if count > 0 { bytes[0] = UInt8.random(in: 0..<0x25, using: &noise) }
            guard let packet = ATTPacket(bytes) else { continue }
            #expect(ATTPacket(packet.bytes) == packet)
        }
    }

    @Test func uuids() {
        #expect(BluetoothUUID(0x180F).description == "180f")
        #expect(BluetoothUUID("0000180f-0000-1000-8000-00805f9b34fb") == BluetoothUUID(0x180F))
        #expect(BluetoothUUID(littleEndian: Self.service)?.description == "4652535f-424c-4500-0000-000000000001")
        #expect(BluetoothUUID("4652535f-424c-4500-0000-000000000001")?.littleEndian == Self.service)
        #expect(BluetoothUUID("18") == nil && BluetoothUUID("zz0f") == nil)
        #expect(BluetoothAddress("c0:ff:ee:00:00:01")?.littleEndian == [1, 0, 0, 0xEE, 0xFF, 0xC0])
        #expect(BluetoothAddress("c0:ff:ee:00:01") == nil && BluetoothAddress("c0:ff:ee:00:00:0001") == nil)
    }

    /// The example of the Core Specification Supplement's format: length, type, value; the last structure is cut off.
    @Test func advertisingData() {
        let peer = LowEnergyPeer.socket("x")
        var heard = Advertisement(peer: peer, arrival: Timestamp(nanoseconds: 0))
        heard.add(data: hex("02 01 06 05 08 4f 47 4c 4f 03 03 0f 18 05 ff 4c 00 01 02"))
        #expect(heard.name == "OGLO" && heard.services == [BluetoothUUID(0x180F)])
        #expect(heard.manufacturer == [0x4C, 0, 1, 2])
        heard.add(data: hex("0a 09 4f 47 4c 4f 20 4c 45 46 54 09 09 41"))
        #expect(heard.name == "OGLO LEFT")
        heard.add(data: hex("05 08 4f 47 4c 4f 00 ff 09"))
        #expect(heard.name == "OGLO LEFT")
        var filter = AdvertisementFilter()
        filter.nameContains = "oglo"
        #expect(filter.admits(heard))
        filter.excluded = [peer]
        #expect(!filter.admits(heard))
    }
}

@Suite struct HCIEventTests {
    @Test func events() throws {
        // Vol 4 Part E 7.7.5, 7.7.65.1 and 7.7.65.3.
        #expect(HCIEvent(hex("05 04 00 40 00 08")) == .disconnected(handle: 0x40, reason: 0x08))
        let address = try #require(BluetoothAddress("C0:FF:EE:00:00:01", .random))
        let fast = ConnectionParameters(interval: .microseconds(7_500), latency: 0, timeout: .seconds(2))
        #expect(
            HCIEvent(hex("3e 13 01 00 40 00 00 01 01 00 00 ee ff c0 06 00 00 00 c8 00 00"))
                == .connected(handle: 0x40, address: address, fast))
        #expect(HCIEvent(hex("3e 0a 03 00 40 00 06 00 00 00 c8 00")) == .parametersChanged(handle: 0x40, fast))
        #expect(HCIEvent(hex("0f 04 0c 01 0b 20")) == .commandResult(opcode: 0x200B, status: 0x0C))
        #expect(HCIEvent(hex("05 04 00 40 00")) == nil)
    }

    @Test func reports() throws {
        let address = try #require(BluetoothAddress("C0:FF:EE:00:00:01", .random))
        let data = hex("05 09 4f 47 4c 4f")
        let report = HCIEvent.Report(address: address, data: data, signal: -60, isConnectable: true)
        // Vol 4 Part E 7.7.65.2: one report; 7.7.65.13: one extended report.
        #expect(
            HCIEvent(hex("3e 12 02 01 00 01 01 00 00 ee ff c0 06 05 09 4f 47 4c 4f c4")) == .reports([report]))
        #expect(
            HCIEvent(
                hex(
                    "3e 20 0d 01 13 00 01 01 00 00 ee ff c0 01 00 ff 7f c4 00 00 00 00 00 00 00 00 00 06 05 09 4f 47 4c 4f"
                )) == .reports([report]))
    }

    @Test func reasonsAreWords() {
        #expect(DisconnectReason.hci(0x13).description == "the device ended it")
        #expect(DisconnectReason.hci(0x08).description.contains("out of range"))
        #expect(DisconnectReason.hci(0x77).description == "reason 0x77")
        #expect(DisconnectReason.local.isIntended && !DisconnectReason.hci(0x13).isIntended)
    }
}

func hex(_ text: String) -> [UInt8] {
    text.split(whereSeparator: \.isWhitespace).compactMap { UInt8($0, radix: 16) }
}
