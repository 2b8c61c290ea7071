internal import CLinux
internal import Glibc
internal import Platform
internal import Protocol

/// The JSON files of the folder `<home>/trust`: mode 0600, whole or absent, changed under a lock.
enum TrustFile {
    static func folder(home: String) -> String { "\(home)/trust" }

    static func keys(home: String) -> String { "\(folder(home: home))/curve_key.json" }

    static func read<Value: Decodable>(_ type: Value.Type, _ path: String) throws -> Value {
        do {
            return try JSONText.decode(type, from: Files.read(path, limit: 16 << 20))
        } catch let error as JSONText.Malformed {
            throw TrustError.unreadable(
                file: path, reason: error.description, cure: "restore it from a copy, or remove it and pair again")
        }
    }

    /// What a file that doesn't exist means is for the caller to say.
    static func read<Value: Decodable>(_ path: String, default fallback: Value) throws -> Value {
        do { return try read(Value.self, path) } catch let error as SystemError where error.errno == .noSuchFile {
            return fallback
        }
    }

    static func write(_ value: some Encodable, _ path: String) throws {
        try AtomicFile.write(JSONText.encodePretty(value), to: path, mode: 0o600)
    }

    /// Runs a change while no other program is in the middle of one.
    ///
    /// It may wait for another program's write to the disk. The corresponding C function is `flock`.
    static func locked<Value>(home: String, _ change: () throws -> Value) throws -> Value {
        let folder = folder(home: home)
        try Files.makeFolder(folder, mode: 0o700)
        let lock = try FileDescriptor(path: "\(folder)/lock", flags: O_RDWR | O_CREAT, mode: 0o600).release()
        // Closing the descriptor gives the lock back.
        defer { close(lock) }
        do {
            try throwingErrno { flock(lock, LOCK_EX) }
        } catch {
            throw SystemError(error, "locking \(folder)/lock")
        }
        return try change()
    }
}
