import Devices
import Platform
import Testing
import Timing

/// The virtual controller against HCI's tables (Vol 4 Part E 7); the kernel's host meets it in the Bluetooth lab.
@Suite struct VirtualControllerTests {
    private final class Output {
        var packets: [[UInt8]] = []
        func drain() -> [[UInt8]] {
            defer { packets = [] }
            return packets
        }
    }

    private final class Echo: EmulatedPeripheral {
        let name = "echo"
        let advertising: [UInt8] = [3, 0x03, 0x0F, 0x18]
        var link: (any PeripheralLink)?
        var heard: [[UInt8]] = []
        func isAdvertising(at now: Timestamp<HostTime>) -> Bool { link == nil }
        func connected(_ link: any PeripheralLink, at now: Timestamp<HostTime>) { self.link = link }
        func received(_ packet: [UInt8], at now: Timestamp<HostTime>) {
            heard.append(packet)
            link?.send(packet)
        }
        func disconnected(at now: Timestamp<HostTime>) { link = nil }
        func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>? { nil }
    }

    private func at(_ milliseconds: Double) -> Timestamp<HostTime> {
        Timestamp(nanoseconds: 1_000_000_000) + .seconds(milliseconds / 1e3)
    }

    @Test func aConnectionsLife() throws {
        let output = Output()
        let echo = Echo()
        let own = try #require(BluetoothAddress("00:AA:01:00:00:42"))
        let address = try #require(BluetoothAddress("C0:FF:EE:00:00:01", .random))
        let controller = VirtualController(own: own, devices: [(address, echo)]) { output.packets.append($0) }

        controller.receive(hex("01 03 0c 00"), at: at(0))
        #expect(output.drain() == [hex("04 0e 04 01 03 0c 00")])
        controller.receive(hex("01 09 10 00"), at: at(0))
        #expect(output.drain() == [hex("04 0e 0a 01 09 10 00 42 00 00 01 aa 00")])
        controller.receive(hex("01 ff fc 00"), at: at(0))
        #expect(output.drain() == [hex("04 0e 04 01 ff fc 01")])

        // An active scan hears the advertisement and the answer to the scan.
        controller.receive(hex("01 0b 20 07 01 60 00 60 00 00 00"), at: at(0))
        controller.receive(hex("01 0c 20 02 01 00"), at: at(0))
        _ = output.drain()
        _ = controller.step(at: at(1))
        let reports = output.drain().compactMap { HCIEvent($0.dropFirst()) }
        guard case .reports(let first) = reports.first, case .reports(let second) = reports.last else {
            Issue.record("\(reports)")
            return
        }
        #expect(first[0].address == address && first[0].data == hex("02 01 06 05 09 65 63 68 6f"))
        #expect(second[0].data == echo.advertising && second[0].signal == -50)

        // Create connection: interval at most 40 units of 1.25 ms, time-out 42 units of 10 ms.
        controller.receive(
            hex("01 0d 20 19 60 00 60 00 00 01 01 00 00 ee ff c0 00 18 00 28 00 00 00 2a 00 00 00 00 00"), at: at(2))
        let events = output.drain().compactMap { HCIEvent($0.dropFirst()) }
        #expect(
            events == [
                .commandResult(opcode: 0x200D, status: 0),
                .connected(
                    handle: 0x40, address: address,
                    ConnectionParameters(interval: .milliseconds(50), latency: 0, timeout: .milliseconds(420))),
            ])

        // ATT in two pieces, answered at the next meeting of 50 ms after the connection.
        controller.receive(hex("02 40 00 06 00 03 00 04 00 02 f7"), at: at(3))
        controller.receive(hex("02 40 10 01 00 00"), at: at(3))
        #expect(echo.heard == [hex("02 f7 00")])
        #expect(output.drain() == [hex("04 13 05 01 40 00 01 00"), hex("04 13 05 01 40 00 01 00")])
        #expect(controller.step(at: at(4)) == at(52))
        #expect(output.drain().isEmpty)
        _ = controller.step(at: at(52))
        #expect(output.drain() == [hex("02 40 20 07 00 03 00 04 00 02 f7 00")])

        controller.receive(hex("01 13 20 0e 40 00 09 00 09 00 00 00 c8 00 00 00 00 00"), at: at(60))
        #expect(
            output.drain().compactMap { HCIEvent($0.dropFirst()) } == [
                .commandResult(opcode: 0x2013, status: 0),
                .parametersChanged(
                    handle: 0x40,
                    ConnectionParameters(interval: .microseconds(11_250), latency: 0, timeout: .seconds(2))),
            ])
        // The device ends it.
        echo.link?.disconnect()
        _ = controller.step(at: at(70))
        #expect(
            output.drain().compactMap { HCIEvent($0.dropFirst()) }.first == .disconnected(handle: 0x40, reason: 0x13))
        #expect(echo.link == nil)
    }
}
