internal import Platform
internal import Protocol

/// A `sync_point.json` of any dialect by itself, as a sync server is given it.
package struct SyncPointFile: Sendable, Hashable {
    package var host: String
    package var anchor: EpisodeRecord.Anchor?
    package var chirps: [EpisodeRecord.Chirp]

    /// Nil when the file can't be read or names no host.
    package static func read(_ path: String) -> SyncPointFile? {
        guard let bytes = try? Files.read(path, limit: 1 << 20),
            let point = try? JSONText.decode(JSONValue.self, from: bytes), let host = point["host_id"]?.string
        else { return nil }
        let anchor = point["monotonic_ns"]?.integer.map {
            EpisodeRecord.Anchor(monotonic: $0, wall: point["wall_clock_ns"]?.integer)
        }
        let (chirps, _) = ChirpFacts.read(point, anchor: anchor?.monotonic, lastSample: nil)
        return SyncPointFile(host: host, anchor: anchor, chirps: chirps)
    }
}
