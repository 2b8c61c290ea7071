package import Protocol
package import Timing
package import Transport

/// Why a host that was seen takes no part, with the cure.
package enum HostProblem: Sendable, Hashable {
    /// Nobody has invited it.
    case stranger
    case wrongKey(String)
    case otherVersion(UInt8, product: String)
    /// Two machines with one name.
    case twin(String)
    /// Another coordinator commands it.
    case leasedToOther(String)
    case misidentified(String)
    case unreadable(String)

    /// One sentence, without the host's name.
    package var text: String {
        switch self {
        case .stranger:
            "it hasn't joined this rig; run 'downbeat invite' here and 'downbeat-agent join TOKEN' there"
        case .wrongKey(let text): text
        case .otherVersion(let version, let product):
            "it speaks protocol version \(version) (\(product)), this coordinator \(ProtocolVersion.current); install the "
                + "same version of Downbeat on all hosts"
        case .twin(let text), .leasedToOther(let text), .misidentified(let text), .unreadable(let text): text
        }
    }

    /// Whether the operator has to give or restore trust.
    package var isRefusal: Bool {
        switch self {
        case .wrongKey, .leasedToOther, .twin, .otherVersion, .misidentified: true
        case .stranger, .unreadable: false
        }
    }
}

/// What is known of the hosts around: who was seen, who may take part, who is alive; pure.
///
/// Discovery is a hint: it starts a connection and never ends one. A host is alive as long as its heartbeats are answered.
/// The uuid is the identity; two uuids with one host_id are both refused until one of them is renamed.
package struct HostRegistry: Sendable {
    package enum Link: Sendable, Hashable {
        case none
        case connecting
        /// It has welcomed us, and answers.
        case alive
        /// It has been alive, and is silent now.
        case lost(String)
    }

    package struct Entry: Sendable, Hashable {
        package var advertisement: AgentAdvertisement
        package var isTrusted = false
        package var link = Link.none
        package var problem: HostProblem?
        /// Whether discovery sees it now.
        package var isSeen = true
        package var lastHeard: Timestamp<RigTime>?
        package var status: HostStatus?
        package var welcome: Welcome?

        package var host: HostID { advertisement.host }
        package var uuid: UniqueID { advertisement.hostUUID }
        package var isAlive: Bool { link == .alive }
    }

    package enum Event: Sendable, Hashable {
        case found(AgentAdvertisement)
        case gone(UniqueID)
        case judged(AgentAdvertisement, RigTrust.Judgement)
        case welcomed(UniqueID, Welcome)
        case heard(UniqueID, HostStatus)
        case disconnected(UniqueID, String)
        case refused(UniqueID, HostProblem)
        case leased(UniqueID)
        case tick
    }

    package enum Action: Sendable, Hashable {
        case judge(AgentAdvertisement)
        /// Connect, or connect anew when there is a connection already.
        case connect(AgentAdvertisement)
        case disconnect(UniqueID)
        case lost(UniqueID, String)
        case returned(UniqueID)
        case problem(UniqueID, HostProblem)
    }

    /// How long a host may be silent: six heartbeats.
    package static let silence = Interval.seconds(3)
    /// More hosts than any rig has: what else is advertised is a prank.
    private static let maximumEntries = 1024

    package private(set) var entries: [UniqueID: Entry] = [:]
    /// Hosts that are in a take: nothing that is discovered may disturb them.
    package var isInTake: Set<UniqueID> = []

    private var actions: [Action] = []

    package init() {}

    /// The trusted host of a name, the living one before the others.
    package func entry(of host: HostID) -> Entry? {
        entries.values.filter { $0.host == host }.max { rank($0) < rank($1) }
    }

    private func rank(_ entry: Entry) -> (Int, String) {
        (entry.isAlive ? 2 : entry.isTrusted ? 1 : 0, entry.uuid.rawValue)
    }

    /// Takes an event and gives back what to do, in order.
    package mutating func handle(_ event: Event, now: Timestamp<RigTime>) -> [Action] {
        actions = []
        switch event {
        case .found(let advertisement): found(advertisement)
        case .gone(let uuid): gone(uuid)
        case .judged(let advertisement, let judgement): judged(advertisement, judgement)
        case .welcomed(let uuid, let welcome): welcomed(uuid, welcome, now)
        case .heard(let uuid, let status): heard(uuid, status, now)
        case .disconnected(let uuid, let reason): silent(uuid, reason)
        case .refused(let uuid, let problem): refused(uuid, problem)
        case .leased(let uuid):
            if case .leasedToOther = entries[uuid]?.problem { entries[uuid]?.problem = nil }
        case .tick:
            for (uuid, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.isAlive {
                guard let last = entry.lastHeard, now - last > Self.silence else { continue }
                silent(uuid, "no answer for \(Int(Self.silence.seconds)) s")
            }
        }
        return actions
    }

    private mutating func found(_ advertisement: AgentAdvertisement) {
        let uuid = advertisement.hostUUID
        guard let known = entries[uuid] else {
            guard entries.count < Self.maximumEntries else { return }
            entries[uuid] = Entry(advertisement: advertisement)
            return admit(advertisement)
        }
        entries[uuid]?.isSeen = true
        guard known.advertisement != advertisement || known.problem != nil || known.link == .none else { return }
        // Who is alive is known better than by what somebody advertises.
        if known.isAlive && known.advertisement.key != advertisement.key { return }
        if known.isAlive {
            let addresses = merged(known.advertisement.addresses, advertisement.addresses)
            entries[uuid]?.advertisement.addresses = addresses
            return
        }
        admit(advertisement)
    }

    private func merged(_ old: [NetworkAddress], _ new: [NetworkAddress]) -> [NetworkAddress] {
        new + old.filter { !new.contains($0) }
    }

    private mutating func admit(_ advertisement: AgentAdvertisement) {
        guard advertisement.protocolVersion == ProtocolVersion.current else {
            entries[advertisement.hostUUID]?.advertisement = advertisement
            return refused(
                advertisement.hostUUID, .otherVersion(advertisement.protocolVersion, product: advertisement.product))
        }
        actions.append(.judge(advertisement))
    }

    private mutating func judged(_ advertisement: AgentAdvertisement, _ judgement: RigTrust.Judgement) {
        let uuid = advertisement.hostUUID
        guard let known = entries[uuid] else { return }
        switch judgement {
        case .known, .admitted:
            let isSame = known.advertisement == advertisement && known.link != .none && known.problem == nil
            entries[uuid]?.advertisement = advertisement
            entries[uuid]?.isTrusted = true
            if refuseTwins(of: uuid) { return }
            entries[uuid]?.problem = nil
            if isSame { return }
            if known.link == .none { entries[uuid]?.link = .connecting }
            actions.append(.connect(advertisement))
        case .wrongKey(let expected):
            let shown = CurveKey(z85: advertisement.key)?.fingerprint ?? "unknown"
            refused(
                uuid,
                .wrongKey(
                    "wrong key: it shows the key \(shown), and is known by \(expected.fingerprint); when it was installed "
                        + "anew, run 'downbeat invite' here and 'downbeat-agent join TOKEN' there"))
        case .stranger:
            entries[uuid]?.advertisement = advertisement
            refused(uuid, .stranger)
        }
    }

    /// True when the host has a twin; then both are refused, unless the other one is in a take.
    private mutating func refuseTwins(of uuid: UniqueID) -> Bool {
        guard let entry = entries[uuid] else { return false }
        let twins = entries.values.filter {
            $0.host == entry.host && $0.uuid != uuid && $0.isTrusted && ($0.isSeen || $0.isAlive)
        }
        guard !twins.isEmpty else { return false }
        for one in ([entry] + twins).sorted(by: { $0.uuid < $1.uuid }) where !isInTake.contains(one.uuid) {
            let others = ([entry] + twins).filter { $0.uuid != one.uuid }.map { place($0) }.sorted()
            refused(
                one.uuid,
                .twin(
                    "two machines have this host_id: \(place(one)) and \(others.joined(separator: ", ")); set another "
                        + "'host_id' in the agent.json5 of one of them"))
            if entries[one.uuid]?.link != Link.none { actions.append(.disconnect(one.uuid)) }
            entries[one.uuid]?.link = .none
        }
        return true
    }

    private func place(_ entry: Entry) -> String {
        let address = entry.advertisement.addresses.first?.zeroMQ ?? "no address"
        return "\(address) (uuid \(entry.uuid.rawValue.prefix(8)))"
    }

    private mutating func gone(_ uuid: UniqueID) {
        guard let known = entries[uuid] else { return }
        entries[uuid]?.isSeen = false
        guard known.link == .none else { return }
        entries[uuid] = nil
        // The other one is alone again.
        for twin in entries.values where twin.host == known.host {
            if case .twin = twin.problem {
                entries[twin.uuid]?.problem = nil
                actions.append(.judge(twin.advertisement))
            }
        }
    }

    private mutating func welcomed(_ uuid: UniqueID, _ welcome: Welcome, _ now: Timestamp<RigTime>) {
        guard let known = entries[uuid] else { return }
        // Its connection came up after a twin of it was found; the operator has to choose first.
        if case .twin = known.problem { return }
        guard welcome.hostUUID == uuid else {
            return refused(
                uuid,
                .misidentified(
                    "host \(welcome.host) (uuid \(welcome.hostUUID.rawValue.prefix(8))) answers at its address; was a "
                        + "disk copied from one machine to another?"))
        }
        entries[uuid]?.welcome = welcome
        entries[uuid]?.advertisement.host = welcome.host
        entries[uuid]?.lastHeard = now
        entries[uuid]?.problem = nil
        entries[uuid]?.link = .alive
        if case .lost = known.link { actions.append(.returned(uuid)) }
    }

    private mutating func heard(_ uuid: UniqueID, _ status: HostStatus, _ now: Timestamp<RigTime>) {
        guard let known = entries[uuid], known.welcome != nil else { return }
        entries[uuid]?.lastHeard = now
        entries[uuid]?.status = status
        if case .lost = known.link {
            entries[uuid]?.link = .alive
            actions.append(.returned(uuid))
        }
    }

    private mutating func silent(_ uuid: UniqueID, _ reason: String) {
        guard let known = entries[uuid], known.isAlive else { return }
        entries[uuid]?.link = .lost(reason)
        actions.append(.lost(uuid, reason))
    }

    private mutating func refused(_ uuid: UniqueID, _ problem: HostProblem) {
        guard let known = entries[uuid], known.problem != problem else { return }
        entries[uuid]?.problem = problem
        // More addresses of the same two machines are no news.
        if case .twin = known.problem, case .twin = problem { return }
        actions.append(.problem(uuid, problem))
    }
}
