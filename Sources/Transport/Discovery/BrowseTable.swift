package import Protocol

/// What browsing brings.
package enum BrowseEvent: Sendable, Hashable {
    /// An agent that is new, or of which something changed: its addresses, its ports, its proofs.
    case found(AgentAdvertisement)
    /// It is announced no longer. A hint only: the heartbeat says whether it lives.
    case lost(UniqueID)
    /// A service of our type whose record can't be read: its name, and what is wrong.
    case unreadable(String, String)
    /// avahi-daemon is away; the cause and the cure. What was found stays found.
    case daemonAway(String)
    case daemonBack
}

/// Makes agents out of sightings: all sightings with one host uuid are one agent with several addresses.
///
/// Pure.
struct BrowseTable: Sendable {
    private struct Entry {
        var found: ResolvedSighting
        var advertisement: AgentAdvertisement?
        var isStale = false
        /// When it was resolved: of two records of one host the newer one counts.
        var order: UInt64
    }

    private var entries: [Sighting: Entry] = [:]
    private var told: [UniqueID: AgentAdvertisement] = [:]
    private var order: UInt64 = 0

    /// What is known now.
    var agents: [AgentAdvertisement] { told.values.sorted { $0.hostUUID < $1.hostUUID } }

    /// Takes a resolved sighting in.
    mutating func resolve(_ sighting: Sighting, _ found: ResolvedSighting) -> [BrowseEvent] {
        let before = entries[sighting]?.advertisement?.hostUUID
        order += 1
        do {
            let advertisement = try AgentAdvertisement(textRecord: found.text, addresses: [])
            entries[sighting] = Entry(found: found, advertisement: advertisement, order: order)
            // The record may have changed its identity under the same name.
            return Set([before, advertisement.hostUUID]).compactMap { $0 }.sorted().flatMap { settle($0) }
        } catch {
            let isNews = entries[sighting]?.found.text != found.text
            entries[sighting] = Entry(found: found, advertisement: nil, order: order)
            let gone = before.map { settle($0) } ?? []
            return gone + (isNews ? [.unreadable(sighting.name, error.description)] : [])
        }
    }

    /// Takes the end of a sighting in.
    mutating func remove(_ sighting: Sighting) -> [BrowseEvent] {
        guard let entry = entries.removeValue(forKey: sighting) else { return [] }
        return entry.advertisement.map { settle($0.hostUUID) } ?? []
    }

    /// The browser begins anew: what isn't seen again until `dropStale()` is gone.
    mutating func markStale() {
        for sighting in entries.keys { entries[sighting]?.isStale = true }
    }

    /// Takes out what wasn't seen again.
    mutating func dropStale() -> [BrowseEvent] {
        let gone = entries.filter(\.value.isStale)
        for sighting in gone.keys { entries[sighting] = nil }
        return Set(gone.values.compactMap { $0.advertisement?.hostUUID }).sorted().flatMap { settle($0) }
    }

    /// Compares what is known of a host with what was told.
    private mutating func settle(_ uuid: UniqueID) -> [BrowseEvent] {
        let mine = entries.values.filter { $0.advertisement?.hostUUID == uuid }
        let addresses = Set(mine.compactMap(Self.usableAddress)).sorted(by: NetworkAddress.isPreferred)
        guard let newest = mine.max(by: { $0.order < $1.order })?.advertisement, !addresses.isEmpty else {
            return told.removeValue(forKey: uuid) == nil ? [] : [.lost(uuid)]
        }
        var agent = newest
        agent.addresses = addresses
        guard told.updateValue(agent, forKey: uuid) != agent else { return [] }
        return [.found(agent)]
    }

    /// A loopback address that another machine announces would lead to ourselves; a link-local one needs its interface.
    private static func usableAddress(_ entry: Entry) -> NetworkAddress? {
        guard let address = entry.found.address else { return nil }
        if address.isLoopback && !entry.found.isLocal { return nil }
        if address.isIPv6 && address.isLinkLocal && address.interface == nil { return nil }
        return address
    }
}
