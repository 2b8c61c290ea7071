/// The connections that have said hello, and how many events each of them missed.
struct EventSubscribers {
    /// A rig has one coordinator and now and then a second program; more are forgotten, the oldest first.
    private static let maximum = 64

    private(set) var peers: [PeerID] = []
    private var missedEvents: [PeerID: Int] = [:]

    var count: Int { peers.count }

    mutating func add(_ peer: PeerID) {
        guard !peers.contains(peer) else { return }
        if peers.count >= Self.maximum { remove(peers[0]) }
        peers.append(peer)
    }

    mutating func remove(_ peer: PeerID) {
        peers.removeAll { $0 == peer }
        missedEvents[peer] = nil
    }

    mutating func miss(_ peer: PeerID) { missedEvents[peer, default: 0] += 1 }

    mutating func caughtUp(_ peer: PeerID) { missedEvents[peer] = nil }

    func missed(by peer: PeerID) -> Int { missedEvents[peer] ?? 0 }
}
