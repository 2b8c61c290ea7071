internal import Platform
internal import Protocol
internal import Testing
internal import Timing

@testable internal import Transport

/// Advertiser and browser through a real avahi-daemon.
///
/// One test, since there is one system bus for the process; it goes through a day in the life of a rig.
@Suite(.serialized, .timeLimit(.minutes(2))) struct AvahiTests {
    private func advertisement(_ byte: UInt8, host: String = "cam-a") throws -> AgentAdvertisement {
        AgentAdvertisement(
            hostUUID: UniqueID(bytes: [UInt8](repeating: byte, count: 16)), host: try #require(HostID(rawValue: host)),
            key: String(repeating: "a", count: 40), commandPort: 7711, clockPort: 7710)
    }

    @Test(
        "found, changed, daemon restarted and republished within 2 s, name taken, withdrawn",
        .enabled(if: PrivateAvahi.isPossible, "needs root, dbus-daemon and avahi-daemon"))
    func life() async throws {
        let avahi = try PrivateAvahi()
        let browser = ServiceBrowser()
        let advertiser = ServiceAdvertiser()
        var found = await browser.start().makeAsyncIterator()
        var published = await advertiser.events.makeAsyncIterator()

        // Nothing is there: one clear sentence, and it goes on.
        var mine = try advertisement(1)
        await advertiser.publish(mine)
        guard case .daemonAway(let why)? = await found.next() else { return #expect(Bool(false), "no sentence") }
        #expect(why.contains("avahi-daemon") && why.contains("static list"))
        guard case .daemonAway? = await published.next() else { return #expect(Bool(false), "no sentence") }

        try avahi.startBus()
        try avahi.startDaemon()
        #expect(await published.next() == .published("cam-a"))
        #expect(await found.next() == .daemonBack)
        var agent = try await nextFound(&found) { $0.addresses.contains { $0.text == "10.9.0.1" } }
        #expect(agent.hostUUID == mine.hostUUID)
        // The loopback address is of use on this machine only, and comes last.
        #expect(agent.addresses.first?.text == "10.9.0.1")

        // A changed record is seen by the browser at the same daemon too.
        mine.joinProofs = [String(repeating: "c", count: 64)]
        await advertiser.publish(mine)
        agent = try await nextFound(&found) { !$0.joinProofs.isEmpty }
        #expect(agent.joinProofs == mine.joinProofs)

        // The daemon dies and comes back.
        avahi.stopDaemon()
        guard case .daemonAway? = await published.next() else { return #expect(Bool(false), "not noticed") }
        try await next(&found) { if case .daemonAway = $0 { true } else { false } }
        try avahi.startDaemon()
        try await next(&found) { $0 == .daemonBack }
        let back = HostClock.now
        #expect(await published.next() == .published("cam-a"))
        #expect(HostClock.now - back < .milliseconds(2000))

        // A second host with the same name.
        let other = ServiceAdvertiser()
        var names = await other.events.makeAsyncIterator()
        await other.publish(try advertisement(2))
        #expect(await names.next() == .renamed("cam-a #2"))
        #expect(await names.next() == .published("cam-a #2"))
        agent = try await nextFound(&found) { $0.hostUUID.rawValue.hasPrefix("02") }
        #expect(agent.host == mine.host)

        await advertiser.withdraw()
        try await next(&found) { $0 == .lost(mine.hostUUID) }
        #expect(await browser.agents.map(\.hostUUID.rawValue.first) == ["0"])
        await other.withdraw()
        await browser.stop()
    }

    private func nextFound(
        _ events: inout AsyncStream<BrowseEvent>.Iterator, where fits: (AgentAdvertisement) -> Bool
    ) async throws -> AgentAdvertisement {
        while let event = await events.next(isolation: #isolation) {
            if case .found(let agent) = event, fits(agent) { return agent }
        }
        throw CancellationError()
    }

    private func next(
        _ events: inout AsyncStream<BrowseEvent>.Iterator, where fits: (BrowseEvent) -> Bool
    ) async throws {
        while let event = await events.next(isolation: #isolation) { if fits(event) { return } }
        throw CancellationError()
    }
}
