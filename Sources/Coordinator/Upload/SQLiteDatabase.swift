internal import CSQLite
internal import Platform

/// What SQLite said.
package struct DatabaseError: Error, Sendable, CustomStringConvertible {
    package let description: String
}

/// One open database; used by the thread of its owner.
final class SQLiteDatabase {
    enum Value: Hashable {
        case null
        case integer(Int64)
        case text(String)

        var integer: Int64? {
            guard case .integer(let value) = self else { return nil }
            return value
        }

        var text: String? {
            guard case .text(let value) = self else { return nil }
            return value
        }
    }

    private let path: String
    private let handle: OpaquePointer

    /// Opens or makes the file; each commit is durable, and a second program's lock is waited for.
    init(path: String) throws {
        self.path = path
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil)
        guard code == SQLITE_OK, let opened else {
            let text = String(cString: sqlite3_errstr(code))
            sqlite3_close_v2(opened)
            throw DatabaseError(description: "opening \(path): \(text)")
        }
        handle = opened
        sqlite3_busy_timeout(handle, 10_000)
        try run("PRAGMA journal_mode=WAL")
        try run("PRAGMA synchronous=FULL")
    }

    deinit { sqlite3_close_v2(handle) }

    /// Runs one statement, and returns its rows.
    @discardableResult
    func run(_ statement: String, _ values: [Value] = []) throws -> [[Value]] {
        var prepared: OpaquePointer?
        guard sqlite3_prepare_v2(handle, statement, -1, &prepared, nil) == SQLITE_OK, let prepared else {
            throw error(statement)
        }
        defer { sqlite3_finalize(prepared) }
        for (place, value) in values.enumerated() {
            let column = Int32(place + 1)
            let code =
                switch value {
                case .null: sqlite3_bind_null(prepared, column)
                case .integer(let number): sqlite3_bind_int64(prepared, column, number)
                case .text(let text): csqlite_bind_text(prepared, column, text, Int32(clamping: text.utf8.count))
                }
            guard code == SQLITE_OK else { throw error(statement) }
        }
        var rows: [[Value]] = []
        while true {
            switch sqlite3_step(prepared) {
            case SQLITE_ROW: rows.append((0..<sqlite3_column_count(prepared)).map { read(prepared, $0) })
            case SQLITE_DONE: return rows
            default: throw error(statement)
            }
        }
    }

    private func read(_ statement: OpaquePointer, _ column: Int32) -> Value {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, column))
        case SQLITE_NULL: .null
        default: .text(sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "")
        }
    }

    private func error(_ statement: String) -> DatabaseError {
        DatabaseError(description: "\(path): \(String(cString: sqlite3_errmsg(handle))) in '\(statement.prefix(60))'")
    }
}
