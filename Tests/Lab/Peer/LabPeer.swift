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
            case "clock": exit(try await ClockMeasurement(arguments).run() ? 0 : 1)
            default: throw Usage()
            }
        } catch {
            StandardError.write("lab-peer: \(error)\n")
            exit(2)
        }
    }

    struct Usage: Error, CustomStringConvertible {
        var description: String { "usage: lab-peer agent NAME KEY | lab-peer clock KEY SECONDS NAME=TRUTH_NS…" }
    }

    /// The coordinator of the labs.
    static let coordinator = UniqueID(bytes: [UInt8](repeating: 0xC0, count: 16))

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
        echo.authorize(coordinator, key: key)
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
