internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization

/// The jobs on disk: `<store>/jobs/<id>/job.json`, each folder whole from the moment that it is there.
///
/// Memory holds the jobs that wait or run; the others are read when they are asked for.
/// Concurrency: used by the connections' threads and the worker's; the running jobs are in a `Mutex`.
final class JobStore: Sendable {
    /// More jobs than this don't wait; clients are told to come back.
    static let queueLimit = 1000

    let folder: String
    private let active = Mutex<[String: JobRecord]>([:])
    private let lock: FileDescriptor

    /// Opens the store, throws away uploads that broke off, and takes up the jobs that weren't finished.
    init(folder: String) throws(SystemError) {
        self.folder = folder
        for name in ["", "/jobs", "/uploads"] { try Files.makeFolder(folder + name) }
        lock = try FileDescriptor(path: "\(folder)/lock", flags: O_RDWR | O_CREAT)
        guard flock(lock.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            throw SystemError(.current, "locking \(folder), which another server seems to use")
        }
        try Files.removeTree("\(folder)/incoming")
        try Files.makeFolder("\(folder)/incoming")
        for id in try Files.list("\(folder)/jobs") {
            guard let record = read(id), record.status == .processing else { continue }
            active.withLock { $0[id] = record }
        }
    }

    /// Lets another server have the folder; nothing may be written from here on.
    func unlock() { _ = flock(lock.rawValue, LOCK_UN) }

    /// The jobs that are to be run, the oldest first.
    var unfinished: [String] {
        active.withLock { $0.values.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }.map(\.id) }
    }

    /// How many jobs are to be run before one; nil when it has begun or is done.
    func position(_ id: String) -> Int? {
        let isWaiting = active.withLock { $0[id]?.phase == "queued" }
        return isWaiting ? unfinished.firstIndex(of: id) : nil
    }

    var isFull: Bool { active.withLock { $0.count >= JobStore.queueLimit } }

    func path(_ id: String) -> String { "\(folder)/jobs/\(id)" }

    // MARK: Making

    /// An empty folder for a job that comes in.
    func stage() throws(SystemError) -> String {
        let path = "\(folder)/incoming/\(Hex.encode(SecureRandom.bytes(8)))"
        try Files.makeFolder(path)
        return path
    }

    /// Turns a folder of `stage` into a job; the record is durable when this returns.
    func adopt(_ staged: String, _ record: JobRecord) throws -> String {
        var record = record
        record.id = try freshID()
        try write(record, in: staged)
        try Files.rename(staged, to: path(record.id))
        try AtomicFile.synchronizeFolder(of: path(record.id))
        if let key = record.uploadKey { try AtomicFile.write(record.id, to: "\(folder)/uploads/\(key)") }
        active.withLock { $0[record.id] = record }
        return record.id
    }

    private func freshID() throws(SystemError) -> String {
        for _ in 0..<100 {
            let id = Hex.encode(SecureRandom.bytes(4))
            if !Files.exists(path(id)) { return id }
        }
        throw SystemError(.exists, "finding a free job id in \(folder)")
    }

    // MARK: Reading

    func record(_ id: String) -> JobRecord? {
        guard JobStore.isLegalID(id) else { return nil }
        return active.withLock { $0[id] } ?? read(id)
    }

    /// The job that was made of exactly these bytes, unless it failed.
    func record(uploadKey: String) -> JobRecord? {
        guard JobStore.isLegalKey(uploadKey), let text = try? Files.read("\(folder)/uploads/\(uploadKey)", limit: 64),
            let record = record(String(decoding: text, as: UTF8.self)), record.uploadKey == uploadKey
        else { return nil }
        return record
    }

    private func read(_ id: String) -> JobRecord? {
        guard JobStore.isLegalID(id), let bytes = try? Files.read("\(path(id))/job.json", limit: 64 << 20) else {
            return nil
        }
        return try? JSONText.decode(JobRecord.self, from: bytes)
    }

    static func isLegalID(_ id: String) -> Bool { isHex(id, 8) }

    static func isLegalKey(_ key: String) -> Bool { isHex(key, 64) }

    private static func isHex(_ text: String, _ count: Int) -> Bool {
        text.utf8.count == count && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    // MARK: Changing

    /// Says how far a job is; a new phase is written to the disk, a mere number isn't.
    func progress(_ id: String, _ progress: Double, phase: String) {
        let changed = active.withLock { active -> JobRecord? in
            guard var record = active[id] else { return nil }
            let isNew = record.phase != phase
            record.progress = progress
            record.phase = phase
            active[id] = record
            return isNew ? record : nil
        }
        // What is lost here is a phase's name; the end of the job is written with its errors looked at.
        if let changed { try? write(changed, in: path(id)) }
    }

    /// Ends a job, well or badly.
    func finish(_ id: String, _ change: (inout JobRecord) -> Void) throws {
        guard var record = record(id) else { return }
        change(&record)
        try write(record, in: path(id))
        _ = active.withLock { $0.removeValue(forKey: id) }
    }

    private func write(_ record: JobRecord, in folder: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(record), to: "\(folder)/job.json")
    }
}
