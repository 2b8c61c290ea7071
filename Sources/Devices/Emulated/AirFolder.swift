internal import Glibc
package import Platform
internal import Protocol
package import Timing

/// The folder that is the emulated room: one file for each sound, whole from the moment that it can be seen.
///
/// A file's name says when its sound begins and ends, `<boot>-<start>-<end>-<random>.air`, so that old sounds are told
/// without being read. Nothing here is fsynced: the room is gone with the machine's boot.
package struct AirFolder: Sendable, Hashable {
    /// How long a sound stays after its end; sound has left any room by then (10 km take 30 s).
    package static let keep = Interval.milliseconds(180_000)
    static let suffix = ".air"
    static let partSuffix = ".part"

    package let path: String

    package init(_ path: String) { self.path = path }

    package func make() throws(SystemError) { try Files.makeFolder(path) }

    /// What a file's name says.
    struct Entry: Hashable {
        let boot: Substring
        let start: Timestamp<RoomTime>
        let end: Timestamp<RoomTime>

        /// Nil for a name that no speaker gives.
        init?(name: String) {
            guard name.hasSuffix(AirFolder.suffix) else { return nil }
            let words = name.dropLast(AirFolder.suffix.count).split(separator: "-", omittingEmptySubsequences: false)
            guard words.count == 4, let start = Int64(words[1]), let end = Int64(words[2]), start <= end else {
                return nil
            }
            boot = words[0]
            self.start = Timestamp(nanoseconds: start)
            self.end = Timestamp(nanoseconds: end)
        }

        var isOfThisBoot: Bool { boot == AirFolder.bootWord }
    }

    private static let bootWord = String(RoomClock.bootID.prefix(8))

    /// A sound that is written but can't be heard yet.
    package struct Draft: Sendable {
        fileprivate let side: String
        fileprivate let final: String
    }

    /// Writes a sound to a side file.
    package func write(_ sound: AirSound) throws(SystemError) -> Draft {
        let name =
            "\(Self.bootWord)-\(sound.start.nanoseconds)-\(sound.end.nanoseconds)-\(UniqueID.random())\(Self.suffix)"
        let draft = Draft(side: "\(path)/.\(name)\(Self.partSuffix)", final: "\(path)/\(name)")
        let file = try FileDescriptor(path: draft.side, flags: O_WRONLY | O_CREAT | O_EXCL)
        do { try file.writeAll(sound.encoded()) } catch {
            unlink(draft.side)
            throw SystemError(error, "writing \(draft.side)")
        }
        return draft
    }

    /// Lets a written sound out into the room.
    package func publish(_ draft: Draft) throws(SystemError) { try Files.rename(draft.side, to: draft.final) }

    /// Takes a sound back, published or not.
    package func discard(_ draft: Draft) {
        unlink(draft.side)
        unlink(draft.final)
    }

    /// The names of all sounds, and of what else ends in `.air`.
    package func names() throws(SystemError) -> [String] {
        try Files.list(path).filter { $0.hasSuffix(Self.suffix) && !$0.hasPrefix(".") }
    }

    /// Removes sounds that no one can hear any more, those of an earlier boot, and what dead speakers left.
    package func sweep(now: Timestamp<RoomTime>) {
        guard let names = try? Files.list(path) else { return }
        for name in names where name.hasSuffix(Self.suffix) || name.hasSuffix(Self.suffix + Self.partSuffix) {
            if let entry = Entry(name: name), !name.hasPrefix(".") {
                if !entry.isOfThisBoot || now - entry.end > Self.keep { unlink("\(path)/\(name)") }
            } else if let changed = Files.modificationTime("\(path)/\(name)"),
                HostClock.wall.nanoseconds - changed > Self.keep.nanoseconds
            {
                unlink("\(path)/\(name)")
            }
        }
    }
}
