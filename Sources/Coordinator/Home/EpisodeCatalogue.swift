internal import Episode
internal import Platform
package import Protocol
package import Timing

/// One episode that is known here or on a host.
package struct EpisodeListing: Sendable, Hashable {
    /// Where it stands, for people and for machines.
    package enum State: String, Sendable, Codable, CaseIterable {
        case recording
        /// Recorded; the files are on the hosts.
        case finished
        /// Files of some hosts are home.
        case partial
        case sealed
        case aborted
        /// There is a folder, and nothing more is known.
        case unsealed
    }

    package var episode: EpisodeID
    package var session: String
    package var task: String
    package var state: State
    /// "recording on 3 hosts", "finished on 3 hosts, not ingested".
    package var words: String
    package var hosts: [HostID]
    package var startWall: Timestamp<WallTime>?
    package var seconds: Double?
    package var verdict: String?
    package var folder: String?
    /// Bytes on the hosts or at home.
    package var bytes: Int64
}

/// Lists the episodes of the journal, of the folders at home, and of the hosts that are there.
///
/// Blocking: call it on an event loop's thread.
package enum EpisodeCatalogue {
    package static func list(home: String, snapshots: [HostID: HostSnapshot]) -> [EpisodeListing] {
        let journal = TakeJournal(home: home).read()
        for problem in journal.problems { Log("journal").warning(problem) }
        var listings: [EpisodeID: EpisodeListing] = [:]
        let onHosts = hostEpisodes(snapshots)
        for record in journal.records {
            let episode = record.settings.episode
            listings[episode] = listing(record, onHosts[episode] ?? [:])
        }
        for (episode, summaries) in onHosts where listings[episode] == nil {
            listings[episode] = listing(episode, summaries)
        }
        for (session, episode, folder) in folders(home) {
            var listing =
                listings[episode]
                ?? EpisodeListing(
                    episode: episode, session: session, task: "", state: .unsealed,
                    words: "at home, not sealed", hosts: [], bytes: 0)
            describe(folder, &listing)
            listings[episode] = listing
        }
        return listings.values.sorted { ($0.episode, $0.session) < ($1.episode, $1.session) }
    }

    private static func hostEpisodes(_ snapshots: [HostID: HostSnapshot]) -> [EpisodeID: [HostID: EpisodeSummary]] {
        var found: [EpisodeID: [HostID: EpisodeSummary]] = [:]
        for (host, snapshot) in snapshots {
            for summary in snapshot.episodes { found[summary.episode, default: [:]][host] = summary }
        }
        return found
    }

    private static func folders(_ home: String) -> [(session: String, episode: EpisodeID, folder: String)] {
        let base = "\(home)/sessions"
        guard Files.isFolder(base), let sessions = try? Files.list(base) else { return [] }
        return sessions.flatMap { session in
            ((try? Files.list("\(base)/\(session)")) ?? []).compactMap { name in
                EpisodeID(rawValue: name).map { (session, $0, "\(base)/\(session)/\(name)") }
            }
        }
    }

    private static func listing(_ record: TakeRecord, _ summaries: [HostID: EpisodeSummary]) -> EpisodeListing {
        let settings = record.settings
        let taking = record.hosts.filter { $0.hasCommitted || $0.phase == .committing }
        var listing = EpisodeListing(
            episode: settings.episode, session: settings.session.rawValue, task: settings.task, state: .finished,
            words: "", hosts: taking.map(\.host), bytes: summaries.values.reduce(0) { $0 + max(0, $1.bytes) })
        listing.startWall = record.startWall
        if let start = record.start, let stop = record.stop { listing.seconds = (stop - start).seconds }
        switch record.phase {
        case .sealed: (listing.state, listing.words) = (.sealed, "sealed")
        case .aborted: (listing.state, listing.words) = (.aborted, "called off")
        default:
            let (state, words) = words(taking, summaries)
            (listing.state, listing.words) = (state, words)
        }
        return listing
    }

    /// What the hosts say counts for more than the journal, which ends where the coordinator died.
    private static func words(_ hosts: [TakeHost], _ summaries: [HostID: EpisodeSummary]) -> (
        EpisodeListing.State, String
    ) {
        var recording = 0
        var finished = 0
        var home = 0
        var unknown = 0
        for host in hosts {
            switch (summaries[host.host]?.progress, host.phase) {
            case (_, .ingested), (.ingested, _): home += 1
            case (.recording, _): recording += 1
            case (.finished, _), (.recovered, _), (nil, .finished), (nil, .ingesting): finished += 1
            default: unknown += 1
            }
        }
        var parts: [String] = []
        if recording > 0 { parts.append("recording on \(count(recording))") }
        if finished > 0 { parts.append("finished on \(count(finished)), not ingested") }
        if home > 0 { parts.append("home from \(count(home))") }
        if unknown > 0 { parts.append("unknown on \(count(unknown))") }
        let state: EpisodeListing.State = recording > 0 ? .recording : home > 0 ? .partial : .finished
        return (state, parts.isEmpty ? "no host took part" : parts.joined(separator: ", "))
    }

    private static func count(_ hosts: Int) -> String { hosts == 1 ? "1 host" : "\(hosts) hosts" }

    private static func listing(_ episode: EpisodeID, _ summaries: [HostID: EpisodeSummary]) -> EpisodeListing {
        let hosts = summaries.keys.sorted().map { host in
            var one = TakeHost(host: host, phase: .committed)
            one.hasCommitted = true
            return one
        }
        let (state, words) = words(hosts, summaries)
        return EpisodeListing(
            episode: episode, session: summaries.values.first?.session.rawValue ?? "", task: "", state: state,
            words: words, hosts: hosts.map(\.host), bytes: summaries.values.reduce(0) { $0 + max(0, $1.bytes) })
    }

    /// What the folder of an episode says of it.
    private static func describe(_ folder: String, _ listing: inout EpisodeListing) {
        listing.folder = folder
        if let bytes = try? Files.read("\(folder)/verdict.json", limit: 16 << 20),
            let verdict = try? JSONText.decode(JSONValue.self, from: bytes)
        {
            listing.verdict = verdict["color"]?.string
            listing.seconds = listing.seconds ?? verdict["duration_s"]?.double
        }
        if let sealed = try? SealedEpisode(folder: folder) {
            listing.state = .sealed
            listing.words = "sealed"
            listing.session = sealed.session
            if listing.hosts.isEmpty, let names = try? Files.list("\(folder)/hosts") {
                listing.hosts = names.compactMap { HostID(rawValue: $0) }
            }
        }
        if let aggregated = try? AggregatedManifest.read("\(folder)/aggregated_manifest.json") {
            listing.bytes = aggregated.hosts.reduce(0) { $0 + $1.files.reduce(0) { $0 + max(0, $1.size) } }
        }
    }
}
