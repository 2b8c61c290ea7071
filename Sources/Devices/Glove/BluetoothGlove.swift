package import Platform
internal import Synchronization
package import Timing

/// A glove over the air: its service is notifications of samples, a configuration, and a battery.
///
/// The command characteristic is never written, since writes made links unstable in the field.
package struct BluetoothGlove: GloveTransport {
    /// The service and its characteristics, from "FRS_BLE" read as a number.
    package enum UUIDs {
        package static let service = number(0)
        package static let data = number(1)
        package static let configuration = number(2)
        package static let command = number(3)
        package static let log = number(4)
        package static let battery = number(5)

        private static func number(_ part: UInt8) -> BluetoothUUID {
            let bytes: [UInt8] = [0x46, 0x52, 0x53, 0x5F, 0x42, 0x4C, 0x45, 0, 0, part, 0, 0, 0, 0, 0, 1]
            return BluetoothUUID(littleEndian: bytes.reversed()) ?? BluetoothUUID(0)
        }
    }

    /// After this a glove whose name says nothing, or the other side, is asked for its configuration.
    private static let namePatience = Interval.seconds(2)
    /// 8.75 ms: packets come each 30 or 12 ms.
    ///
    /// An interval of which these are multiples would let each packet wait as long as the one before it, and nobody could
    /// tell how long. 30 ms are 24 steps of 1.25 ms and this is 7 of them, so the waits go around in seven steps.
    private static let wish = ConnectionWish(interval: .microseconds(8_750)...(.microseconds(8_750)))
    private static let connectPatience = Interval.seconds(6)

    private let central: LowEnergyCentral
    /// Nil: the first one whose configuration says the right side.
    private let peers: Set<LowEnergyPeer>

    /// `peers` are those of one glove (its address as public and as random); empty when any will do.
    package init(central: LowEnergyCentral, peers: Set<LowEnergyPeer>) {
        self.central = central
        self.peers = peers
    }

    package var label: String { peers.first.map { "\($0)" } ?? "any glove in range" }

    package func connect(
        as side: GloveSide, claims: any GloveClaims, within patience: Interval, on loop: EventLoop,
        _ handler: @escaping @Sendable (GloveEvent) -> Void
    ) async throws(GloveFault) -> GloveConnection {
        let deadline = HostClock.now + patience
        var wrong: Set<LowEnergyPeer> = []
        while true {
            let left = max(deadline - HostClock.now, .milliseconds(100))
            let (peer, name) = try await find(side, claims, wrong, within: left)
            do throws(GloveFault) {
                return try await connect(peer, name, as: side, claims: claims, on: loop, handler)
            } catch {
                // Another one may be the right one, when none was named.
                if error.code == .unsupported { claims.release("\(peer)") }
                guard peers.isEmpty, HostClock.now < deadline else { throw error }
                switch error.code {
                case .unsupported: wrong.insert(peer)
                // Another stream was quicker; it may turn out to be the wrong one for it.
                case .busy: break
                default: throw error
                }
            }
        }
    }

    // MARK: Finding

    private func find(
        _ side: GloveSide, _ claims: any GloveClaims, _ wrong: Set<LowEnergyPeer>, within patience: Interval
    ) async throws(GloveFault) -> (LowEnergyPeer, String?) {
        if peers.count == 1, let only = peers.first, case .socket = only { return (only, nil) }
        var filter = AdvertisementFilter()
        filter.excluded = wrong
        if peers.isEmpty { filter.nameContains = "oglo" } else { filter.peers = peers }
        let choice = GloveChoice(side, claims: claims, isNamed: !peers.isEmpty)
        let start = HostClock.now
        do throws(LowEnergyError) {
            try await central.scan(filter, for: patience) { advertisement in
                !choice.take(advertisement, isPatient: advertisement.arrival - start < Self.namePatience)
            }
        } catch {
            // Without the right to scan, a named glove can still be connected to.
            guard let direct = Self.likely(peers) else { throw Self.fault(error) }
            return (direct, nil)
        }
        if let found = choice.result { return (found.peer, found.name) }
        let taken = claims.taken.isEmpty ? "" : " that no other stream has"
        throw GloveFault(
            .notFound,
            peers.isEmpty
                ? "no \(side.rawValue) glove\(taken) was heard within \(patience.seconds) s"
                : "the glove \(label) wasn't heard within \(patience.seconds) s",
            cure: "switch it on, bring it near, and see that no other host is connected to it")
    }

    /// A static random address has its two highest bits set (Vol 6 Part B 1.3.2.1); a public one may, and rarely does.
    private static func likely(_ peers: Set<LowEnergyPeer>) -> LowEnergyPeer? {
        let addresses = peers.compactMap { peer -> BluetoothAddress? in
            if case .radio(let address) = peer { address } else { nil }
        }
        return addresses.first { $0.kind == (($0.bytes.first ?? 0) >= 0xC0 ? .random : .public) }.map { .radio($0) }
    }

    // MARK: Connecting

    private func connect(
        _ peer: LowEnergyPeer, _ name: String?, as side: GloveSide, claims: any GloveClaims, on loop: EventLoop,
        _ handler: @escaping @Sendable (GloveEvent) -> Void
    ) async throws(GloveFault) -> GloveConnection {
        let identity = "\(peer)"
        guard claims.claim(identity) else {
            throw GloveFault(
                .busy, "the glove \(identity) is in use as another stream of this host",
                cure: "give each glove its own address in the configuration", isFinal: true)
        }
        let receiver = GloveReceiver(handler)
        do {
            let link = try await central.connect(to: peer, within: Self.connectPatience, on: loop) { event in
                receiver.take(event)
            }
            do {
                return try await prepare(link, identity, name, as: side, receiver)
            } catch {
                await link.disconnect()
                throw error
            }
        } catch let error as GloveFault {
            throw error
        } catch let error as LowEnergyError {
            throw Self.fault(error)
        } catch {
            throw GloveFault(.inputOutput, "\(identity): \(error)", cure: "switch the glove off and on")
        }
    }

    private func prepare(
        _ link: LowEnergyLink, _ identity: String, _ name: String?, as side: GloveSide, _ receiver: GloveReceiver
    ) async throws -> GloveConnection {
        // Without the right to ask, the link stays as it is.
        try? await link.ask(for: Self.wish)
        try await link.exchangeMTU()
        let services = try await link.discover()
        guard let data = services.characteristic(UUIDs.data, in: UUIDs.service),
            let source = services.characteristic(UUIDs.configuration, in: UUIDs.service)
        else {
            throw GloveFault(
                .unsupported, "\(identity) isn't an OGLO glove: it lacks the glove's service",
                cure: "correct its address in the configuration", isFinal: true)
        }
        let configuration: GloveConfiguration
        do {
            configuration = try GloveConfiguration(
                try await link.read(source), hint: name.flatMap { GloveSide(name: $0) })
        } catch let error as GloveConfiguration.Invalid {
            throw GloveFault(
                .unsupported, "\(identity): \(error)", cure: "write its side with the maker's tool", isFinal: true)
        }
        try Self.check(configuration, identity, side)
        let battery = try? await Self.battery(link, services)
        receiver.begin(configuration, handle: data.handle)
        try await link.subscribe(to: data)
        return await connection(link, identity, configuration, battery)
    }

    static func check(_ configuration: GloveConfiguration, _ identity: String, _ side: GloveSide) throws(GloveFault) {
        guard configuration.side != side else { return }
        throw GloveFault(
            .unsupported,
            "the glove \(identity) is a \(configuration.side.rawValue) one, and the configuration says \(side.rawValue)",
            cure: "exchange the addresses of the two gloves in the configuration, or correct 'side'", isFinal: true)
    }

    private static func battery(_ link: LowEnergyLink, _ services: [GATTService]) async throws -> Int? {
        guard let level = services.characteristic(UUIDs.battery, in: UUIDs.service) else { return nil }
        return try await link.read(level).first.flatMap { $0 <= 100 ? Int($0) : nil }
    }

    private func connection(
        _ link: LowEnergyLink, _ identity: String, _ configuration: GloveConfiguration, _ battery: Int?
    ) async -> GloveConnection {
        let (parameters, mtu) = (await link.parameters, await link.mtu)
        let words = parameters.map { "\($0)" } ?? "connection parameters unknown"
        var path = DeviceClock.Path(leastDelay: .zero ... .milliseconds(1), burst: Self.unknownInterval)
        if case .radio = link.peer {
            path = .bluetooth(connectionInterval: parameters?.interval ?? Self.unknownInterval)
        }
        return GloveConnection(
            configuration: configuration, identity: identity, link: "packets of \(mtu) bytes, \(words)",
            battery: battery,
            path: path,
            rate: { modality in
                switch modality {
                case .tactile: configuration.rate
                case .imu: configuration.hasIMU ? configuration.rate : nil
                case .mag:
                    configuration.hasIMU && !(configuration.schema.map { $0 < 6 } ?? false) ? configuration.rate : nil
                }
            },
            close: { await link.disconnect() })
    }

    /// What a central of Linux takes by itself: 30 to 50 ms.
    private static let unknownInterval = Interval.milliseconds(50)

    static func fault(_ error: LowEnergyError) -> GloveFault {
        switch error {
        case .unavailable(let cause, let cure): GloveFault(.accessDenied, cause, cure: cure, isFinal: true)
        case .notFound(let what):
            GloveFault(
                .notFound, what, cure: "switch the glove on, bring it near, and see that no other host has it")
        case .noAnswer: GloveFault(.timedOut, "the glove: \(error)", cure: "switch it off and on")
        default: GloveFault(.disconnected, "the glove: \(error)", cure: "bring it nearer, or switch it off and on")
        }
    }
}

/// Turns a link's events into a glove's; on the loop's thread.
private final class GloveReceiver: Sendable {
    private let source = Mutex<(configuration: GloveConfiguration, handle: UInt16)?>(nil)
    private let handler: @Sendable (GloveEvent) -> Void
    /// Above this a link hardly carries a glove's packets.
    private static let slow = Interval.milliseconds(50)

    init(_ handler: @escaping @Sendable (GloveEvent) -> Void) { self.handler = handler }

    /// Before the subscription, so that the first packet is not lost.
    func begin(_ configuration: GloveConfiguration, handle: UInt16) {
        source.withLock { $0 = (configuration, handle) }
    }

    func take(_ event: LinkEvent) {
        switch event {
        case .value(let handle, let bytes, let arrival):
            guard let source = source.withLock({ $0 }), source.handle == handle else { return }
            do throws(GlovePacket.Malformed) {
                handler(.readings(try GlovePacket.readings(bytes, source.configuration), arrival: arrival))
            } catch {
                handler(.malformed("\(error)"))
            }
        case .parameters(let parameters):
            handler(.path(.bluetooth(connectionInterval: parameters.interval)))
            guard parameters.interval > Self.slow else { return }
            handler(.note("its link is slow: \(parameters)"))
        case .ended(let reason):
            // While the link is made, whoever makes it is told by the requests that fail.
            guard source.withLock({ $0 != nil }) else { return }
            handler(.ended("\(reason)"))
        }
    }
}
