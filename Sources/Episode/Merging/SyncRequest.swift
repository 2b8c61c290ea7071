internal import Platform
internal import Protocol

/// `sync_request.json`: the body of `POST /api/v1/sync`.
///
/// Hosts with their streams; stream names are those of the files in `timestamps/`, which a server finds by name alone.
/// Paths are those inside the server's container, where `data/` is mounted as `/data` and `timestamps/` as
/// `/timestamps`. Exactly one stream of all hosts is the primary.
///
/// Sound isn't in the request: the interface knows videos with a path, which are decoded as such, and sensors without
/// one. A server looks for chirps in the sound track of the videos; the lossless sound stays in `data/`.
package struct SyncRequest: Codable, Sendable, Hashable {
    package struct Stream: Codable, Sendable, Hashable {
        package var id: String
        /// Of a video, inside the container.
        package var path: String?
        /// True for the primary, else left out.
        package var isPrimary: Bool?
        /// `sensor` for a sensor, else left out.
        package var type: String?

        package init(id: String, path: String? = nil, isPrimary: Bool? = nil, type: String? = nil) {
            self.id = id
            self.path = path
            self.isPrimary = isPrimary
            self.type = type
        }

        private enum CodingKeys: String, CodingKey {
            case id = "stream_id"
            case path
            case isPrimary = "is_primary"
            case type = "stream_type"
        }
    }

    package struct Host: Codable, Sendable, Hashable {
        package var id: String
        package var streams: [Stream]

        package init(id: String, streams: [Stream]) {
            self.id = id
            self.streams = streams
        }

        private enum CodingKeys: String, CodingKey {
            case id = "host_id"
            case streams
        }
    }

    package static let mediaFolder = "/data"
    package static let timestampsFolder = "/timestamps"

    package var hosts: [Host]
    package var timestampsFolder: String

    package init(hosts: [Host], timestampsFolder: String = SyncRequest.timestampsFolder) {
        self.hosts = hosts
        self.timestampsFolder = timestampsFolder
    }

    /// From the streams of a merged episode.
    ///
    /// Left out are sound, streams without rows (a server refuses the whole job for one), and clips that are still on a
    /// camera; `leftOut` says so. A camera's clip with sound is in it without rows. The primary is the leader's first video, else the first video, else the first sensor.
    /// Nil when nothing is left to be aligned.
    package static func make(_ merged: MergedManifest) -> (request: SyncRequest?, leftOut: [EpisodeNote]) {
        var leftOut: [EpisodeNote] = []
        var hosts: [Host] = []
        for host in merged.hosts {
            var streams: [Stream] = []
            for stream in merged.streams where stream.host == host.host && stream.kind != .audio {
                if let why = objection(stream) {
                    leftOut.append(EpisodeNote(.warning, "it isn't in the sync request: \(why)", stream: stream.id))
                } else if stream.kind == .video, let file = stream.filePath {
                    streams.append(Stream(id: stream.id, path: "\(mediaFolder)/\(FilePath.name(of: file))"))
                } else {
                    streams.append(Stream(id: stream.id, type: "sensor"))
                }
            }
            if !streams.isEmpty { hosts.append(Host(id: host.host, streams: streams)) }
        }
        guard !hosts.isEmpty else { return (nil, leftOut) }
        let order = hosts.indices.sorted {
            (hosts[$0].id == merged.leader ? 0 : 1, $0) < (hosts[$1].id == merged.leader ? 0 : 1, $1)
        }
        let places = order.flatMap { host in hosts[host].streams.indices.map { (host, $0) } }
        // A clip without stamps can't be what others are aligned to, as long as there is another.
        let clips = Set(merged.streams.filter(\.isClip).map(\.id))
        let videos = places.filter { hosts[$0.0].streams[$0.1].path != nil }
        let video = videos.first { !clips.contains(hosts[$0.0].streams[$0.1].id) } ?? videos.first
        if let primary = video ?? places.first { hosts[primary.0].streams[primary.1].isPrimary = true }
        return (SyncRequest(hosts: hosts), leftOut)
    }

    private static func objection(_ stream: MergedStream) -> String? {
        if stream.isPending { return "its clip is still on the camera" }
        if stream.kind == .video && stream.filePath == nil { return "its video is missing" }
        // A clip of a wrist camera comes without stamps, as from SyncField: a server aligns it by the chirps in its sound.
        if stream.isClip { return stream.capabilities.providesAudioTrack ? nil : "it has neither stamps nor sound" }
        if stream.timestampsPath == nil { return "it has no time stamps" }
        return stream.rows == 0 ? "it has no samples" : nil
    }

    package func write(to path: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(self), to: path)
    }

    private enum CodingKeys: String, CodingKey {
        case hosts
        case timestampsFolder = "timestamps_dir"
    }
}
