internal import Protocol

/// Devices that two hosts want to themselves: a glove or a camera over the air serves one of them, and whichever comes
/// second would only find that it isn't heard.
struct SharedHardware: Sendable {
    private var wanted: [String: [(host: HostID, stream: StreamID)]] = [:]

    mutating func note(_ streams: [StreamOutcome], of host: HostID) {
        for outcome in streams {
            guard let hardware = outcome.hardware else { continue }
            // Several streams may be made of one device on one host.
            if wanted[hardware]?.contains(where: { $0.host == host }) == true { continue }
            wanted[hardware, default: []].append((host, outcome.stream.id))
        }
    }

    /// For each such device one sentence and the hosts.
    var conflicts: [(hosts: [HostID], text: String)] {
        wanted.sorted { $0.key < $1.key }.compactMap { hardware, wishes in
            guard wishes.count > 1 else { return nil }
            let sorted = wishes.sorted { $0.host < $1.host }
            let names = sorted.map { "\($0.host) (stream \($0.stream))" }.joined(separator: " and ")
            return (
                sorted.map(\.host),
                "\(names) both want \(hardware), which one host can have; take it out of the agent.json5 of the other"
            )
        }
    }
}
