import Devices
import Platform
import Synchronization
import TestSupport
import Testing
import Timing

/// Links against a device's side of our own over a real socket: what crosses is bytes.
@Suite(.serialized) struct BluetoothLinkTests {
    /// A device with a long value, one that can be written, and notifications; its packets are short.
    private final class Thing: EmulatedPeripheral {
        static let service = BluetoothUUID(0x1815)
        static let long = BluetoothUUID(0x2A56)
        static let writable = BluetoothUUID(0x2A58)
        static let source = BluetoothUUID(0x2A5A)

        let name = "thing"
        let advertising: [UInt8] = []
        var server: ATTServer
        var link: (any PeripheralLink)?
        var isMute = false

        init(packetSize: Int, long: [UInt8]) {
            server = ATTServer(
                [
                    .init(BluetoothUUID(0x1800), [.init(GATTNumbers.deviceName, .read, value: Array("thing".utf8))]),
                    .init(
                        Self.service,
                        [
                            .init(Self.long, .read, value: long), .init(Self.writable, [.read, .write]),
                            .init(Self.source, [.notify, .read]),
                        ]),
                ], ownMTU: packetSize)
        }

        func isAdvertising(at now: Timestamp<HostTime>) -> Bool { link == nil }
        func connected(_ link: any PeripheralLink, at now: Timestamp<HostTime>) { self.link = link }
        func received(_ packet: [UInt8], at now: Timestamp<HostTime>) {
            guard !isMute else { return }
            let (answers, events) = server.receive(packet)
            for event in events {
                // field.md 74: data that comes before the answer to its subscription.
                if event == .subscribed(Self.source, true), let first = server.notification(of: Self.source, [1]) {
                    link?.send(first)
                }
            }
            for answer in answers { link?.send(answer) }
        }
        func disconnected(at now: Timestamp<HostTime>) {
            link = nil
            server.disconnected()
        }
        func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>? { nil }
    }

    private final class Heard: Sendable {
        let events = Mutex<[LinkEvent]>([])
        let ended = AsyncStream<DisconnectReason>.makeStream()
        let values = AsyncStream<[UInt8]>.makeStream()

        func take(_ event: LinkEvent) {
            events.withLock { $0.append(event) }
            switch event {
            case .ended(let reason): ended.continuation.yield(reason)
            case .value(_, let bytes, _): values.continuation.yield(bytes)
            case .parameters: break
            }
        }
    }

    private func connect(
        packetSize: Int = 23, long: [UInt8] = [], folder: TemporaryFolder, loop: EventLoop, _ heard: Heard
    ) async throws -> (LowEnergyLink, SocketPeripheral) {
        let path = "\(folder.path)/thing.sock"
        let device = SocketPeripheral(path: path) { Thing(packetSize: packetSize, long: long) }
        try await device.begin()
        let central = LowEnergyCentral(radios: [SocketRadio(folder: folder.path)])
        var filter = AdvertisementFilter()
        filter.nameContains = "THING"
        let found = try await central.find(filter, within: .seconds(5))
        let link = try await central.connect(to: found.peer, within: .seconds(5), on: loop) { heard.take($0) }
        return (link, device)
    }

    @Test(.timeLimit(.minutes(1)), arguments: [23, 64, 517]) func discoversReadsAndWrites(packetSize: Int) async throws
    {
        let (folder, loop, heard) = (try TemporaryFolder(), EventLoop(name: "test-link"), Heard())
        // Ends exactly on a packet's end, which only one more request can tell.
        let long = (0..<22 * 20).map { UInt8($0 & 0xFF) }
        let (link, device) = try await connect(
            packetSize: packetSize, long: long, folder: folder, loop: loop, heard)
        #expect(try await link.exchangeMTU() == packetSize)
        let services = try await link.discover()
        #expect(services.map(\.uuid) == [BluetoothUUID(0x1800), Thing.service])
        #expect(services[1].characteristics.map(\.uuid) == [Thing.long, Thing.writable, Thing.source])
        let value = try #require(services.characteristic(Thing.long))
        #expect(value.properties == .read && value.configuration == nil)
        #expect(try await link.read(value) == long)
        let writable = try #require(services.characteristic(Thing.writable, in: Thing.service))
        for size in [0, 5, 20, 21, 300] {
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            try await link.write(bytes, to: writable)
            #expect(try await link.read(writable) == bytes)
        }
        await #expect(throws: LowEnergyError.self) { try await link.write([1], to: value) }
        await link.disconnect()
        #expect(heard.events.withLock { $0.last } == .ended(.local))
        await device.end()
    }

    @Test(.timeLimit(.minutes(1))) func field74_dataBeforeTheSubscriptionsAnswerIsKept() async throws {
        let (folder, loop, heard) = (try TemporaryFolder(), EventLoop(name: "test-link"), Heard())
        let (link, device) = try await connect(folder: folder, loop: loop, heard)
        let source = try #require(try await link.discover().characteristic(Thing.source))
        #expect(source.configuration != nil)
        try await link.subscribe(to: source)
        var values = heard.values.stream.makeAsyncIterator()
        #expect(await values.next() == [1])
        await link.disconnect()
        await device.end()
    }

    @Test(.timeLimit(.minutes(1))) func field73_aDeviceThatNeverAnswers() async throws {
        let (folder, loop, heard) = (try TemporaryFolder(), EventLoop(name: "test-link"), Heard())
        let path = "\(folder.path)/mute.sock"
        let device = SocketPeripheral(path: path) {
            let thing = Thing(packetSize: 23, long: [])
            thing.isMute = true
            return thing
        }
        try await device.begin()
        let channel = try SocketChannel(path: path)
        let link = LowEnergyLink(
            peer: .socket(path), channel: channel, patience: .milliseconds(200), on: loop
        ) { heard.take($0) }
        try await link.begin()
        await #expect(throws: LowEnergyError.noAnswer(to: "the read of handle 3", after: 0.2)) {
            try await link.read(handle: 3)
        }
        await link.disconnect()
        await #expect(throws: LowEnergyError.disconnected(.local)) { try await link.read(handle: 3) }
        await device.end()
    }

    @Test(.timeLimit(.minutes(1))) func theDevicesEndIsToldAndFailsWhatWaits() async throws {
        let (folder, loop, heard) = (try TemporaryFolder(), EventLoop(name: "test-link"), Heard())
        let (link, device) = try await connect(folder: folder, loop: loop, heard)
        await device.end()
        var ended = heard.ended.stream.makeAsyncIterator()
        let reason = await ended.next()
        #expect(reason?.description == "the device closed the connection")
        await #expect(throws: LowEnergyError.self) { try await link.read(handle: 3) }
    }

    @Test(.timeLimit(.minutes(1))) func nobodyThere() async throws {
        let folder = try TemporaryFolder()
        let central = LowEnergyCentral(radios: [SocketRadio(folder: folder.path)])
        await #expect(throws: LowEnergyError.self) {
            _ = try await central.find(AdvertisementFilter(), within: .milliseconds(120))
        }
        await #expect(throws: LowEnergyError.self) {
            _ = try await central.connect(
                to: .socket("\(folder.path)/none.sock"), within: .seconds(1), on: EventLoop(name: "x")
            ) { _ in }
        }
    }
}
