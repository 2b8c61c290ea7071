internal import Foundation
internal import Platform
internal import Protocol
internal import Timing
internal import Transport

/// Both ends of discovery and clock, as the agents and the coordinator use them, and nothing else: the labs measure with it.
///
/// It is no part of the product.
@main struct LabPeer {
    static func main() async {
        Signals.block()
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case "agent": try await agent(arguments)
            case "matrix":
                exit(MatrixMeasurement.run(takes: arguments.dropFirst().first.flatMap { UInt64($0) } ?? 4000) ? 0 : 1)
            case "echoes": try await echoes(arguments)
            case "scale": exit(try await scale(arguments) ? 0 : 1)
            case "clock": exit(try await ClockMeasurement(arguments).run() ? 0 : 1)
            default: throw Usage()
            }
        } catch {
            StandardError.write("lab-peer: \(error)\n")
            exit(2)
        }
    }

    struct Usage: Error, CustomStringConvertible {
        var description: String {
            "usage: lab-peer agent NAME KEY | clock KEY SECONDS NAME=TRUTH_NS[=ADDRESS:PORT]… | matrix [TAKES] | echoes KEY COUNT | scale KEY SECONDS ADDRESS COUNT"
        }
    }

    private static func echoes(_ arguments: [String]) async throws {
        guard arguments.count == 3, let key = Hex.decode(arguments[1]), let count = Int(arguments[2]), count <= 1000
        else {
            throw Usage()
        }
        let all = try ScaleMeasurement.echoes(count: count, key: key)
        StandardOutput.write("ready\n")
        for await _ in try Signals.stream(on: EventLoop(name: "signals")) { break }
        for echo in all { echo.stop() }
    }

    private static func scale(_ arguments: [String]) async throws -> Bool {
        guard arguments.count == 5, let key = Hex.decode(arguments[1]), let seconds = Int64(arguments[2]),
            let address = NetworkAddress(arguments[3]), let count = Int(arguments[4]), count <= 1000
        else { throw Usage() }
        return try await ScaleMeasurement.run(key: key, seconds: seconds, address: address, count: count)
    }

    /// The coordinators of the labs: the agents let the first 64 in.
    static func coordinator(_ number: Int) -> UniqueID {
        UniqueID(bytes: [UInt8](repeating: 0xC0, count: 15) + [UInt8(truncatingIfNeeded: number)])
    }

    /// Advertises itself and answers clock requests until SIGTERM.
    private static func agent(_ arguments: [String]) async throws {
        guard arguments.count == 3, let host = HostID(rawValue: arguments[1]), let key = Hex.decode(arguments[2]),
            key.count == 32
        else { throw Usage() }
        let uuid = UniqueID.random()
        @Sendable func advertisement(_ port: UInt16) -> AgentAdvertisement {
            AgentAdvertisement(
                hostUUID: uuid, host: host, key: String(repeating: "a", count: 40), commandPort: 7711, clockPort: port)
        }
        let echo = try ClockEcho(port: StaticProbe.defaultPort) {
            advertisement(StaticProbe.defaultPort).identifyText
        }
        for number in 0..<ClockEcho.coordinatorLimit { echo.authorize(coordinator(number), key: key) }
        let advertiser = ServiceAdvertiser()
        await advertiser.publish(advertisement(echo.port))
        let signals = try Signals.stream(on: EventLoop(name: "signals"))
        for await event in await advertiser.events {
            StandardOutput.write("\(HostClock.wall.nanoseconds) \(event)\n")
            if case .published = event { break }
        }
        let events = Task {
            for await event in await advertiser.events {
                StandardOutput.write("\(HostClock.wall.nanoseconds) \(event)\n")
            }
        }
        for await _ in signals { break }
        events.cancel()
        StandardOutput.write("echo: \(echo.counts), real-time priority: \(echo.hasRealtimePriority)\n")
        await advertiser.withdraw()
        echo.stop()
    }
}
