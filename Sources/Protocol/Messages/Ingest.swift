/// One file of an episode, with what proves it whole.
package struct FileEntry: Codable, Sendable, Hashable {
    /// Relative to the episode's folder.
    package var path: String
    package var size: Int64
    package var sha256: String
    package var mtimeNanoseconds: Int64

    package init(path: String, size: Int64, sha256: String, mtimeNanoseconds: Int64) {
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.mtimeNanoseconds = mtimeNanoseconds
    }

    private enum CodingKeys: String, CodingKey {
        case path, size, sha256
        case mtimeNanoseconds = "mtime_ns"
    }
}

/// `ingest`: list the files of a finished episode.
package struct IngestRequest: Codable, Sendable, Hashable {
    package var episode: EpisodeID

    package init(episode: EpisodeID) { self.episode = episode }
}

/// `fileList`: the answer to `ingest`.
package struct FileList: Codable, Sendable, Hashable {
    package var episode: EpisodeID
    package var files: [FileEntry]

    package init(episode: EpisodeID, files: [FileEntry]) {
        self.episode = episode
        self.files = files
    }
}

/// `chunk`: bytes of one file, on the bulk socket.
///
/// The answer is `chunkData` with the bytes as a binary frame.
package struct ChunkRequest: Codable, Sendable, Hashable {
    package var episode: EpisodeID
    package var path: String
    package var offset: Int64
    package var length: Int

    package init(episode: EpisodeID, path: String, offset: Int64, length: Int) {
        self.episode = episode
        self.path = path
        self.offset = offset
        self.length = length
    }
}

/// `chunkData`: which bytes the binary frame holds; fewer than asked for only at the end of the file.
package struct ChunkHeader: Codable, Sendable, Hashable {
    package var path: String
    package var offset: Int64

    package init(path: String, offset: Int64) {
        self.path = path
        self.offset = offset
    }
}
