internal import Devices
internal import Glibc
internal import Platform
internal import Protocol
internal import Timing

/// The measuring end of the Bluetooth lab: emulated gloves behind the kernel's virtual adapter, and our devices on the
/// kernel's other side.
///
/// It prints one line "figure NAME VALUE" for each thing measured.
@main
struct BluetoothLab {
    static let own = "00:AA:01:00:00:42"
    static let left = "C0:FF:EE:00:00:01"
    static let right = "C0:FF:EE:00:00:02"

    static func main() async {
        Signals.block()
        let words = CommandLine.arguments.dropFirst()
        do {
            switch words.first {
            // The adapter with both gloves, until it is killed.
            case "adapter": try await serve()
            // Connects to both gloves of an adapter in this process, and compares with the truth.
            case "capture": try await CaptureProof(seconds: Double(words.dropFirst().first ?? "") ?? 60).run()
            // What is heard, or why nothing is.
            case "scan": try await scan()
            default:
                StandardError.write("bluetooth-lab adapter | capture SECONDS | scan\n")
                exit(2)
            }
        } catch {
            StandardOutput.write("error \(error)\n")
            exit(1)
        }
    }

    static func adapter(_ scripts: [GloveScript], truth: [Truth]) throws -> VirtualAdapter {
        guard let own = BluetoothAddress(own) else { throw Failure("no address") }
        let places = [left, right].compactMap { BluetoothAddress($0, .random) }
        return VirtualAdapter(
            own: own,
            onDelivery: { address, packet, instant in
                // Notification: opcode, handle, then the glove's packet: count, flags, number of the first sample.
                var reader = ByteReader(packet)
                guard reader.u8() == 0x1B, reader.u16() != nil, let count = reader.u8(), reader.u8() != nil,
                    let first = reader.u32()
                else { return }
                let index = places.firstIndex(of: address) ?? 0
                truth[index].delivered(Int(first) + Int(count) - 1, instant)
            }
        ) {
            zip(zip(places, scripts), truth).map { place, truth in
                let glove = GlovePeripheral(place.1, at: HostClock.now)
                glove.onSample = { index, _, taken in truth.note(index, taken) }
                return (place.0, glove)
            }
        }
    }

    private static func serve() async throws {
        let scripts = [GloveScript(side: .left), GloveScript(side: .right)]
        let adapter = try adapter(scripts, truth: [Truth(), Truth()])
        try await adapter.begin()
        StandardOutput.write("adapter is there\n")
        let loop = EventLoop(name: "signals")
        for await _ in try Signals.stream(on: loop) { break }
        await adapter.end()
    }

    private static func scan() async throws {
        try await LowEnergyCentral().scan(AdvertisementFilter(), for: .seconds(3)) { heard in
            StandardOutput.write("heard \(heard.peer) \(heard.name ?? "") \(heard.signal ?? 0)\n")
            return true
        }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }
}
