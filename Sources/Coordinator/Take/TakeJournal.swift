internal import Glibc
internal import Platform
package import Protocol

/// The takes of this coordinator on its disk: `<home>/journal/<take>.json`, each written whole or not at all.
///
/// A coordinator that was killed finds in it what was going on. Its operations block: call them on an event loop.
package struct TakeJournal: Sendable {
    package let folder: String

    package init(home: String) { folder = "\(home)/journal" }

    /// Writes a record; it is durable when this returns.
    package func write(_ record: TakeRecord) throws {
        try Files.makeFolder(folder)
        try AtomicFile.write(JSONText.encodePretty(record), to: path(record.settings.take))
    }

    /// All records, by the names of their episodes; what can't be read is named in `problems`.
    package func read() -> (records: [TakeRecord], problems: [String]) {
        var records: [TakeRecord] = []
        var problems: [String] = []
        for name in Files.isFolder(folder) ? (try? Files.list(folder)) ?? [] : [] {
            let stem = name.hasSuffix(".json") ? String(name.dropLast(5)) : ""
            guard UniqueID.isLegal(stem) else { continue }
            do {
                records.append(
                    try JSONText.decode(TakeRecord.self, from: Files.read("\(folder)/\(name)", limit: 64 << 20)))
            } catch {
                problems.append("\(folder)/\(name) can't be read: \(error)")
            }
        }
        return (records.sorted { $0.settings.episode < $1.settings.episode }, problems)
    }

    /// The take of an episode that happened last.
    package func record(of episode: EpisodeID) -> TakeRecord? {
        read().records.filter { $0.settings.episode == episode && $0.phase != .aborted }.last
            ?? read().records.last { $0.settings.episode == episode }
    }

    package func path(_ take: UniqueID) -> String { "\(folder)/\(take).json" }

    /// The clock's lines of a take, as they are measured; they are moved into the episode when it is sealed.
    package func clockPath(_ take: UniqueID) -> String { "\(folder)/\(take).clock.jsonl" }

    /// Adds whole lines to the clock's file.
    ///
    /// What was added survives the death of this program; a power cut may cost the last seconds of it.
    package func appendClock(_ lines: [UInt8], take: UniqueID) throws {
        try Files.makeFolder(folder)
        let file = try FileDescriptor(path: clockPath(take), flags: O_WRONLY | O_CREAT | O_APPEND)
        do { try file.writeAll(lines) } catch { throw SystemError(error, "writing \(clockPath(take))") }
    }
}

/// Keeps two programs of one home from commanding a take at once; the kernel lets go of it when the program dies.
package final class TakeLock: Sendable {
    private let file: FileDescriptor

    /// Nil when another program has it.
    package init?(home: String) throws {
        try Files.makeFolder(home)
        file = try FileDescriptor(path: "\(home)/take.lock", flags: O_RDWR | O_CREAT)
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else { return nil }
    }

    package func release() { _ = flock(file.rawValue, LOCK_UN) }
}
