internal import Platform
internal import Protocol
internal import Synchronization
internal import Testing
internal import Timing

@testable internal import Transport

/// Real sockets on loopback; both ends read the same clock, so the true offset is zero.
@Suite(.timeLimit(.minutes(1))) struct ClockEchoTests {
    private let key = SecureRandom.bytes(32)
    private let coordinator = UniqueID.random()

    /// Looks again and again, and lets the others run meanwhile; ends with the test's time limit.
    private func until(_ condition: () -> Bool) async throws {
        while !condition() {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    private func host() throws -> HostID { try #require(HostID(rawValue: "cam-a")) }

    private func advertisement(clockPort: UInt16) throws -> AgentAdvertisement {
        AgentAdvertisement(
            hostUUID: UniqueID(bytes: [UInt8](repeating: 5, count: 16)), host: try host(),
            key: String(repeating: "a", count: 40),
            joinProofs: [String](repeating: String(repeating: "b", count: 64), count: 8),
            commandPort: 7711, clockPort: clockPort)
    }

    @Test("a probe and an echo: the error is within the bound, within a second", arguments: ["127.0.0.1", "::1"])
    func exchange(address: String) async throws {
        let echo = try ClockEcho(port: 0) { [] }
        echo.authorize(coordinator, key: key)
        // The first address can't be reached: the probe has to go on to the next.
        let addresses = try [#require(NetworkAddress("fe80::1%nosuch")), #require(NetworkAddress(address))]
        let probe = try ClockProbe(
            host: try host(), addresses: addresses, port: echo.port, coordinator: coordinator, key: key)
        let task = Task { await probe.run() }
        var estimator = ClockEstimator()
        var first: Timestamp<RigTime>?
        var taken = 0
        for await burst in probe.bursts {
            first = first ?? burst.first?.sent
            for exchange in burst {
                let outcome = estimator.add(exchange)
                #expect(outcome == .used || outcome == .notNeeded)
                // Both ends are this machine: what they say of its oscillator is the same.
                let (here, there) = (
                    try #require(exchange.localDiscipline), try #require(exchange.remoteDiscipline)
                )
                #expect((here.difference - there.difference).magnitude < .microseconds(100))
            }
            let now = HostClock.rigNow
            let mapping = try #require(estimator.mapping(at: now))
            let error = (mapping.map(now) - Timestamp(nanoseconds: now.nanoseconds)).magnitude
            #expect(error <= mapping.bound(at: now))
            taken += 1
            if taken >= 3, let first, now - first > .milliseconds(500) { break }
        }
        task.cancel()
        await task.value
        let mapping = try #require(estimator.mapping(at: HostClock.rigNow))
        #expect(mapping.bound < .milliseconds(2))
        let answering = await probe.answering
        #expect(answering?.text == address)
        let counts = await probe.counts
        #expect(counts.foreign == 0 && counts.dropped == 0)
        #expect(echo.counts.answered == counts.answered)
        echo.stop()
    }

    @Test("a stranger, a wrong key, a revoked coordinator and a replay get no answer")
    func refused() async throws {
        let echo = try ClockEcho(port: 0) { [] }
        echo.authorize(coordinator, key: key)
        let loopback = try #require(NetworkAddress("127.0.0.1"))
        var socket = try DatagramSocket(port: 0)
        let target = try #require(SocketAddress(loopback, port: echo.port, family: socket.family))
        let good = ClockDatagram(kind: .request, coordinator: coordinator, sequence: 5)
        let wrong = DatagramKey(SecureRandom.bytes(32))
        let right = DatagramKey(key)
        let stranger = ClockDatagram(kind: .request, coordinator: .random(), sequence: 5)
        let reflected = ClockDatagram(kind: .answer, coordinator: coordinator, sequence: 6)
        let datagrams = [
            good.encode(key: wrong), stranger.encode(key: right), reflected.encode(key: right), Array("hello".utf8), [],
            good.encode(key: right), good.encode(key: right),
        ]
        for bytes in datagrams { try socket.send(bytes, to: target) }
        try await until { echo.counts.replayed + echo.counts.answered == 2 }
        #expect(echo.counts.unauthorized == 3)
        #expect(echo.counts.foreign == 2)
        #expect(echo.counts.answered == 1)
        #expect(echo.counts.replayed == 1)
        echo.revoke(coordinator)
        try socket.send(
            ClockDatagram(kind: .request, coordinator: coordinator, sequence: 9).encode(key: right), to: target
        )
        try await until { echo.counts.unauthorized == 4 }
        let only = socket.receive()
        let sequence = only.flatMap { ClockDatagram($0.bytes, key: right)?.sequence }
        #expect(sequence == 5)
        let isEmpty = socket.receive() == nil
        #expect(isEmpty)
        echo.stop()
    }

    @Test("10,000 random datagrams: nothing is answered, nothing crashes")
    func garbage() async throws {
        let echo = try ClockEcho(port: 0) { [] }
        echo.authorize(coordinator, key: key)
        let loopback = try #require(NetworkAddress("127.0.0.1"))
        let socket = try DatagramSocket(port: 0)
        let target = try #require(SocketAddress(loopback, port: echo.port, family: socket.family))
        var generator = SystemRandomNumberGenerator()
        let noise = SecureRandom.bytes(3400)
        for round in 0..<10_000 {
            let start = Int.random(in: 0...2000, using: &generator)
            var bytes = Array(noise[start..<(start + Int.random(in: 0...1400, using: &generator))])
            if round % 2 == 0 { bytes = Array((round % 4 == 0 ? ClockDatagram.magic : IdentifyDatagram.magic) + bytes) }
            try? socket.send(bytes, to: target)
            if round % 50 == 0 { await Task.yield() }
        }
        let probe = try ClockProbe(
            host: try host(), addresses: [loopback], port: echo.port, coordinator: coordinator, key: key)
        let task = Task { await probe.run() }
        for await _ in probe.bursts { break }
        task.cancel()
        #expect(echo.counts.foreign + echo.counts.unauthorized > 1000)
        echo.stop()
    }

    @Test("a named host says who it is, by IPv4, by IPv6 and by name", arguments: ["127.0.0.1", "[::1]", "localhost"])
    func identify(name: String) async throws {
        let wanted = try advertisement(clockPort: 4711)
        let echo = try ClockEcho(port: 0) { wanted.identifyText }
        let found = try await StaticProbe().identify("\(name):\(echo.port)", timeout: .milliseconds(5000))
        #expect(found.addresses.count == 1)
        #expect(found.addresses.first?.isLoopback == true)
        var plain = found
        plain.addresses = []
        #expect(plain == wanted)
        echo.stop()
    }

    @Test("a host that is silent, one that is something else, a wrong name and a wrong form each have their sentence")
    func identifyFails() async throws {
        let probe = StaticProbe()
        let silent = try DatagramSocket(port: 0)
        let port = silent.port
        await #expect(throws: IdentifyError.silent("127.0.0.1:\(port)", after: .milliseconds(300))) {
            try await probe.identify("127.0.0.1:\(port)", timeout: .milliseconds(300))
        }
        let other = try ClockEcho(port: 0) { Array("v=1\nuuid=xyz".utf8) }
        await #expect(
            throws: IdentifyError.unreadable("127.0.0.1:\(other.port)", "its 'uuid' is 'xyz', which is not legal")
        ) {
            try await probe.identify("127.0.0.1:\(other.port)", timeout: .milliseconds(3000))
        }
        for bad in ["", ":1", "a:b", "a:0", "a:70000", "::1:", "[10.0.0.1]:5", "[::1", "x:y:z"] {
            await #expect(throws: IdentifyError.badEndpoint(bad)) {
                try await probe.identify(bad, timeout: .milliseconds(300))
            }
        }
        await #expect(throws: IdentifyError.self) {
            try await probe.identify("[fe80::1%nosuch]:5", timeout: .milliseconds(300))
        }
        other.stop()
    }

    @Test("a cancelled question ends at once")
    func identifyCancelled() async throws {
        let silent = try DatagramSocket(port: 0)
        let port = silent.port
        let task = Task { try await StaticProbe().identify("127.0.0.1:\(port)", timeout: .milliseconds(60_000)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("endpoints in all their forms")
    func endpoints() {
        let table: [(String, String, UInt16)] = [
            ("10.8.0.1", "10.8.0.1", 7710), ("10.8.0.1:99", "10.8.0.1", 99), ("cam-a.local:1", "cam-a.local", 1),
            ("[fe80::1%eth0]:7", "fe80::1%eth0", 7), ("[::1]", "::1", 7710), ("::1", "::1", 7710), ("lab", "lab", 7710),
        ]
        for (endpoint, name, port) in table {
            let parsed = StaticProbe.parse(endpoint)
            #expect(parsed?.name == name, "\(endpoint)")
            #expect(parsed?.port == port, "\(endpoint)")
        }
    }

    @Test("the port that is taken is said")
    func portTaken() throws {
        let first = try ClockEcho(port: 0) { [] }
        #expect(throws: SystemError.self) { try ClockEcho(port: first.port) { [] } }
    }

    @Test("questions that come too often are not answered")
    func limited() async throws {
        let asked = Mutex(0)
        let echo = try ClockEcho(port: 0) {
            asked.withLock { $0 += 1 }
            return []
        }
        let loopback = try #require(NetworkAddress("127.0.0.1"))
        let socket = try DatagramSocket(port: 0)
        let target = try #require(SocketAddress(loopback, port: echo.port, family: socket.family))
        for _ in 0..<40 { try socket.send(IdentifyDatagram.question(nonce: SecureRandom.bytes(16)), to: target) }
        try await until { echo.counts.identified + echo.counts.limited == 40 }
        #expect((10...15).contains(echo.counts.identified))
        #expect(asked.withLock { $0 } == echo.counts.identified)
        echo.stop()
    }
}
