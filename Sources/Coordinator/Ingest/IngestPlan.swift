internal import Platform
package import Protocol
package import Timing

/// What a host's list of files asks for, once it is sure that nothing in it can do harm.
package struct IngestPlan: Sendable, Hashable {
    package let files: [FileEntry]
    package let totalBytes: Int64

    private static let maximumFiles = 100_000

    /// Checks a list that came over the network.
    package init(_ list: FileList, episode: EpisodeID) throws(IngestError) {
        guard list.episode == episode else {
            throw .badList("it is of \(list.episode), and \(episode) was asked for")
        }
        guard list.files.count <= Self.maximumFiles else {
            throw .badList("it has \(list.files.count) files, more than \(Self.maximumFiles)")
        }
        var total: Int64 = 0
        var names: Set<String> = []
        var folders: Set<String> = []
        for file in list.files {
            guard FilePath.staysInside(file.path) else {
                throw .badList("'\(file.path.prefix(120))' isn't a path inside the episode")
            }
            guard names.insert(file.path).inserted else { throw .badList("'\(file.path)' is in it twice") }
            guard file.size >= 0, let bytes = Hex.decode(file.sha256), bytes.count == 32 else {
                throw .badList("'\(file.path)' has no size or no sha256")
            }
            let (sum, overflow) = total.addingReportingOverflow(file.size)
            guard !overflow else { throw .badList("its sizes can't be true") }
            total = sum
            var parent = FilePath.parent(of: file.path)
            while parent != "." {
                folders.insert(parent)
                parent = FilePath.parent(of: parent)
            }
        }
        if let both = folders.intersection(names).min() { throw .badList("'\(both)' is a file and a folder in it") }
        files = list.files
        totalBytes = total
    }
}

/// Why the files of a host aren't home, in one sentence without the host's name.
package enum IngestError: Error, Sendable, Hashable, CustomStringConvertible {
    case badList(String)
    case noSpace(needed: Int64, free: Int64, path: String)
    /// The same wrong content came twice.
    case mismatch(file: String)
    case unreachable(file: String, reason: String)
    case short(file: String)

    package var description: String {
        switch self {
        case .badList(let reason): "its list of files is refused: \(reason)"
        case .noSpace(let needed, let free, let path):
            "the files need \(ByteCount.text(needed)) at \(path), and \(ByteCount.text(free)) are free; make room, then "
                + "run 'downbeat ingest'"
        case .mismatch(let file):
            "\(file) came twice with another sha256 than the host has; is a disk or the memory failing? The files stay "
                + "there, run 'downbeat ingest' again"
        case .unreachable(let file, let reason):
            "\(file) can't be fetched: \(reason); what came is kept, run 'downbeat ingest' when the host is back"
        case .short(let file): "\(file) is shorter on the host than its list says; run 'downbeat ingest' again"
        }
    }
}

/// How far the files of a host have come.
package struct IngestProgress: Sendable, Hashable {
    /// Bytes that are home, of files that were there before too.
    package var done: Int64
    package var total: Int64
    package var files: Int
    package var file: String

    package init(done: Int64, total: Int64, files: Int, file: String) {
        self.done = done
        self.total = total
        self.files = files
        self.file = file
    }
}

/// The length of a transfer's parts and its patience.
package struct IngestOptions: Sendable {
    /// Bytes of a chunk; at most what a message may carry.
    package var chunk = 1 << 20
    /// Chunks of one host on their way or waiting to be written: the bound of its memory.
    package var window = 6
    package var chunkTimeout = Interval.seconds(30)
    /// How long an unreachable host is waited for.
    package var patience = Interval.seconds(90)
    /// Hashing at the source takes its time: a take may be many gigabytes.
    package var listTimeout = Interval.seconds(600)
    /// Bytes that stay free at home.
    package var reserveBytes: Int64 = 256 << 20

    package init() {}
}
