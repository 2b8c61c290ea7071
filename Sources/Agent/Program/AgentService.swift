internal import Platform
package import Protocol
internal import Synchronization
internal import Timing
internal import Transport

/// A running agent: capture, the two sockets, the clock echo and the advertisement, tied together.
package struct AgentService: Sendable {
    private static let log = Log("agent")

    private let configuration: AgentConfiguration
    private let home: AgentHome
    private let say: @Sendable (String) -> Void

    /// - Parameters:
    ///   - configuration: its devices are used by this service alone.
    ///   - home: the folder of state and episodes; the caller holds its lock.
    ///   - say: takes a line for a person at each step.
    package init(_ configuration: AgentConfiguration, home: AgentHome, say: @escaping @Sendable (String) -> Void) {
        self.configuration = configuration
        self.home = home
        self.say = say
    }

    /// Serves until the first value of `end`, which is the reason; a running take is stopped properly before it returns.
    package func run(until end: AsyncStream<String>) async throws {
        let hostUUID = try home.hostUUID()
        let trust = try LiveAgentTrust(home: home.path)
        let keys = trust.current.keys
        let agent = CaptureAgent(configuration, home: home, hostUUID: hostUUID, tell: say)
        try await agent.start()
        let listen = configuration.listen
        let server = try await CommandServer(
            options: CommandServer.Options(
                bindAddress: listen.address, commandPort: listen.commandPort, bulkPort: listen.bulkPort, keys: keys,
                host: configuration.host),
            allows: { trust.name(of: $0) }, report: say)
        let told = Told()
        let echo = try ClockEcho(port: listen.clockPort) { told.text }
        await agent.open(
            CaptureAgent.Ports(bulk: server.bulkPort, clock: echo.port) { coordinator, key in
                echo.authorize(coordinator, key: key)
            })
        let advertising = Advertising(
            host: configuration.host, hostUUID: hostUUID, trust: trust, commandPort: server.commandPort,
            clockPort: echo.port, told: told)
        // Read before it is advertised: who joins from here on is seen as a change.
        let entries = trust.current.entries
        await advertising.renew()
        let names = entries.map { "'\($0.name)'" }.joined(separator: ", ")
        say(
            "host \(configuration.host) ready on port \(server.commandPort) (clock \(echo.port), "
                + "\(configuration.devices.count) streams, key \(keys.publicKey.fingerprint), coordinators: "
                + "\(names.isEmpty ? "none yet; 'downbeat-agent join TOKEN' adds one" : names))")

        say(
            "clock stamps: \(echo.stamps); real-time priority: "
                + (echo.hasRealtimePriority && agent.gate.hasRealtimePriority
                    ? "granted"
                    : "not granted; when the machine is busy, bounds are wider and starts later (give it CAP_SYS_NICE or "
                        + "LimitRTPRIO=70, as configs/systemd does)"))

        await withTaskGroup(of: Void.self) { group in
            group.addTask { await serve(agent, server) }
            group.addTask { for await event in agent.events { await server.publish(event) } }
            group.addTask { await watchTrust(trust, since: entries, advertising) }
            group.addTask { await tellDiscovery(advertising.advertiser) }
            var reasons = end.makeAsyncIterator()
            let reason = await reasons.next() ?? "the end"
            say("ending: \(reason)")
            await agent.shutDown(reason: reason)
            await advertising.advertiser.withdraw()
            // What was answered and told last is still sent.
            await server.close()
            echo.stop()
            group.cancelAll()
        }
    }

    private func serve(_ agent: CaptureAgent, _ server: CommandServer) async {
        do {
            try await server.run(
                command: { envelope, peer in
                    await agent.answer(
                        envelope,
                        from: CaptureAgent.Caller(identity: peer.key?.z85 ?? "loopback", name: peer.coordinator))
                },
                bulk: { envelope, _ in await agent.bulk(envelope) })
        } catch {
            Self.log.error("the command sockets failed: \(error)")
            say("the command sockets failed: \(error)")
        }
    }

    /// Advertises anew when `join` has added a coordinator beside the running agent.
    private func watchTrust(
        _ trust: LiveAgentTrust, since entries: [AgentTrust.Entry], _ advertising: Advertising
    ) async {
        let loop = EventLoop(name: "trust")
        var known = entries
        while (try? await loop.sleep(for: .milliseconds(500))) != nil {
            guard let entries = try? await loop.run({ trust.current.entries }), entries != known else { continue }
            for entry in entries where !known.contains(entry) {
                say("coordinator '\(entry.name)' is trusted from now on")
            }
            known = entries
            await advertising.renew()
        }
    }

    private func tellDiscovery(_ advertiser: ServiceAdvertiser) async {
        for await event in await advertiser.events {
            switch event {
            case .published(let name): say("the network can find this host as '\(name)'")
            case .daemonAway(let why): say("this host can't be found on the network: \(why)")
            case .renamed(let name): say("another host has this name already; advertised as '\(name)'")
            }
        }
    }
}

/// What the clock port answers to the question who this is; read on the echo's thread.
private final class Told: Sendable {
    private let state = Mutex<[UInt8]>([])
    var text: [UInt8] {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

/// What is told to the network about this agent.
private struct Advertising: Sendable {
    let host: HostID
    let hostUUID: UniqueID
    let trust: LiveAgentTrust
    let commandPort: UInt16
    let clockPort: UInt16
    let told: Told
    let advertiser = ServiceAdvertiser()

    /// Advertises what is true now.
    func renew() async {
        let trust = trust.current
        let advertisement = AgentAdvertisement(
            hostUUID: hostUUID, host: host, key: trust.keys.publicKey.z85,
            joinProofs: trust.joinProofs(hostUUID: hostUUID), commandPort: commandPort, clockPort: clockPort)
        told.text = advertisement.identifyText
        await advertiser.publish(advertisement)
    }
}

/// What the other commands of the agent do.
package enum AgentTasks {
    /// Trusts the coordinator of a token; gives back a sentence.
    package static func join(_ token: String, home: AgentHome) throws -> String {
        let token = try JoinToken(parsing: token)
        try home.make()
        _ = try home.hostUUID()
        var trust = try AgentTrust.load(home: home.path)
        try trust.add(token)
        return
            "this host trusts the coordinator '\(token.name)' (key \(token.key.fingerprint)); its own key is "
            + "\(trust.keys.publicKey.fingerprint)"
    }

    /// Repairs the episodes that a dead agent left; gives back one sentence for each.
    package static func recover(home: AgentHome, host: HostID) async throws -> [String] {
        await ClipIngest(home: home, reserve: 0, tell: { _ in }).restoreNetwork()
        let store = TakeStore(home: home, host: host)
        try await store.load()
        return try await store.recover()
    }

    /// What is attached, and what the configuration makes of it.
    package static func devices(_ configuration: AgentConfiguration, home: AgentHome) async throws -> DeviceList {
        try await CaptureAgent(configuration, home: home, hostUUID: .random()).devices()
    }
}
