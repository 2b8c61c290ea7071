internal import Platform
internal import Timing

/// The uploads of this machine, in `<home>/queue.sqlite`: what is written here is there after a crash.
///
/// Concurrency: an actor on its own thread, where SQLite may block.
package actor UploadQueue {
    private let loop = EventLoop(name: "upload-queue")
    private let path: String
    private var database: SQLiteDatabase?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(home: String) { path = "\(home)/queue.sqlite" }

    private func open() throws -> SQLiteDatabase {
        if let database { return database }
        try Files.makeFolder(FilePath.parent(of: path))
        let opened = try SQLiteDatabase(path: path)
        try opened.run(
            """
            CREATE TABLE IF NOT EXISTS uploads (
                session TEXT NOT NULL, episode TEXT NOT NULL, server TEXT NOT NULL, state TEXT NOT NULL,
                attempts INTEGER NOT NULL, job TEXT, upload_key TEXT, confirmed INTEGER NOT NULL, last_error TEXT,
                updated_ns INTEGER NOT NULL, PRIMARY KEY (session, episode, server)) WITHOUT ROWID
            """)
        database = opened
        return opened
    }

    /// The entry of an episode for a server; it is made, `waiting`, when there is none.
    package func enqueue(session: String, episode: String, server: String) throws -> UploadEntry {
        try open().run(
            "INSERT OR IGNORE INTO uploads VALUES (?, ?, ?, 'waiting', 0, NULL, NULL, 0, NULL, ?)",
            [.text(session), .text(episode), .text(server), .integer(HostClock.wall.nanoseconds)])
        return try entry(session: session, episode: episode, server: server)
            ?? UploadEntry(session: session, episode: episode, server: server)
    }

    package func entry(session: String, episode: String, server: String) throws -> UploadEntry? {
        try select("WHERE session = ? AND episode = ? AND server = ?", [.text(session), .text(episode), .text(server)])
            .first
    }

    /// All entries, in the order of their episodes.
    package func entries() throws -> [UploadEntry] { try select("ORDER BY session, episode, server", []) }

    /// Writes an entry; it is durable when this returns.
    package func store(_ entry: UploadEntry) throws {
        try open().run(
            "INSERT OR REPLACE INTO uploads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                .text(entry.session), .text(entry.episode), .text(entry.server), .text(entry.state.rawValue),
                .integer(Int64(entry.attempts)), entry.job.map { .text($0) } ?? .null,
                entry.uploadKey.map { .text($0) } ?? .null, .integer(entry.isConfirmed ? 1 : 0),
                entry.lastError.map { .text($0) } ?? .null, .integer(HostClock.wall.nanoseconds),
            ])
    }

    private func select(_ condition: String, _ values: [SQLiteDatabase.Value]) throws -> [UploadEntry] {
        let columns = "session, episode, server, state, attempts, job, upload_key, confirmed, last_error"
        return try open().run("SELECT \(columns) FROM uploads \(condition)", values).map { row in
            var entry = UploadEntry(
                session: row[0].text ?? "", episode: row[1].text ?? "", server: row[2].text ?? "")
            entry.state = row[3].text.flatMap { UploadState(rawValue: $0) } ?? .waiting
            entry.attempts = Int(clamping: row[4].integer ?? 0)
            entry.job = row[5].text
            entry.uploadKey = row[6].text
            entry.isConfirmed = row[7].integer == 1
            entry.lastError = row[8].text
            return entry
        }
    }
}
