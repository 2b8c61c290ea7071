internal import Glibc
internal import Platform

/// Brings a file from a disk that may go away at any moment into an episode.
package enum ClipCopy {
    private static let pieceSize = 4 << 20

    /// Copies to `<path>.part`, hashes what is read, reads the copy again to compare, fsyncs, and renames.
    ///
    /// - Parameters:
    ///   - source: on the card.
    ///   - path: the file's place in the episode; one that is there stays.
    ///   - progress: is told the bytes so far; false ends the copying.
    /// - Throws: `EpisodeError` and `SystemError`; then there's no file at the place, and the part is gone.
    package static func copy(_ source: String, to path: String, progress: (Int64) -> Bool = { _ in true }) throws {
        guard !Files.exists(path) else { throw EpisodeError(path, "it is there already", cure: "look at both clips") }
        guard let size = Files.size(source) else { throw EpisodeError(source, "it isn't there any more") }
        let part = "\(path).part"
        do {
            let hash = try transfer(source, to: part, size: size, progress)
            guard try SHA256.ofFile(part) == hash else {
                throw EpisodeError(path, "the copy isn't what was read", cure: "check the disk")
            }
            try Files.rename(part, to: path)
            try AtomicFile.synchronizeFolder(of: path)
        } catch {
            unlink(part)
            throw error
        }
    }

    private static func transfer(
        _ source: String, to part: String, size: Int64, _ progress: (Int64) -> Bool
    ) throws -> String {
        let input = try FileDescriptor(path: source, flags: O_RDONLY | O_NOFOLLOW)
        let output = try FileDescriptor(path: part, flags: O_WRONLY | O_CREAT | O_TRUNC)
        var hash = SHA256()
        var done: Int64 = 0
        while true {
            let piece: [UInt8]
            do { piece = try input.read(upTo: pieceSize) } catch {
                throw EpisodeError(
                    source, "reading it broke off after \(done) of \(size) bytes (\(error))",
                    cure: "plug the camera in again", errno: error)
            }
            if piece.isEmpty { break }
            hash.update(piece)
            do { try output.writeAll(piece) } catch { throw SystemError(error, "writing \(part)") }
            done += Int64(piece.count)
            guard progress(done) else { throw EpisodeError(source, "the copying was ended") }
        }
        guard done == size else {
            throw EpisodeError(
                source, "\(done) of \(size) bytes came", cure: "plug the camera in again and ingest once more")
        }
        do { try output.synchronize() } catch { throw SystemError(error, "fsync of \(part)") }
        return hash.finish()
    }
}
