internal import Platform
internal import Synchronization

/// Promises of disk space at home to the hosts that are brought home at the same time.
///
/// Concurrency: the state is in one `Mutex`.
package final class SpaceLedger: Sendable {
    private let promised = Mutex(Int64(0))
    private let reserve: Int64
    private let free: @Sendable (String) throws -> Int64

    package init(
        reserveBytes: Int64, free: @escaping @Sendable (String) throws -> Int64 = { try Files.freeSpace(at: $0) }
    ) {
        reserve = reserveBytes
        self.free = free
    }

    /// Promises bytes, or throws `IngestError.noSpace`.
    ///
    /// Blocking, for a moment.
    package func promise(_ bytes: Int64, at path: String) throws {
        let free = try free(path)
        try promised.withLock { promised throws(IngestError) in
            guard free - promised - reserve >= bytes || bytes == 0 else {
                throw .noSpace(needed: bytes, free: max(0, free - promised - reserve), path: path)
            }
            promised += bytes
        }
    }

    /// Takes a promise back, or a part of it: the bytes are written, or won't be.
    package func release(_ bytes: Int64) { promised.withLock { $0 = max(0, $0 - bytes) } }
}
