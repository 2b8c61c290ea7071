internal import Glibc
internal import Platform
internal import Timing

/// A file of whole lines that only grows; used by one thread.
///
/// Lines are gathered for at most `latency` and then written with one call. When a write fails in the middle, the file
/// is cut back to its last whole line.
final class LineFile {
    /// How long a line may wait in memory: a killed program loses no more than this.
    static let latency = Interval.milliseconds(250)
    private static let capacity = 64 << 10

    let path: String
    /// Lines that were given.
    private(set) var lines: Int64 = 0
    /// Bytes in the file and in memory.
    private(set) var bytes: Int64 = 0
    private let file: FileDescriptor
    private var buffer: [UInt8] = []
    private var oldest: Timestamp<HostTime>?
    private var written: Int64 = 0
    private var failure: SystemError?

    init(path: String) throws(SystemError) {
        self.path = path
        file = try FileDescriptor.new(path, append: true)
        buffer.reserveCapacity(Self.capacity + 4096)
    }

    /// Appends what `build` adds to the buffer, which must be whole lines.
    func append(_ build: (inout [UInt8]) -> Void) throws(SystemError) {
        if let failure { throw failure }
        let before = buffer.count
        build(&buffer)
        bytes += Int64(buffer.count - before)
        lines += 1
        let now = HostClock.now
        if oldest == nil { oldest = now }
        if buffer.count >= Self.capacity || now - (oldest ?? now) >= Self.latency { try flush() }
    }

    /// Appends whole lines.
    func append(_ lines: UnsafeBufferPointer<UInt8>) throws(SystemError) { try append { $0.append(contentsOf: lines) } }

    /// Hands the lines in memory to the system.
    func flush() throws(SystemError) {
        if let failure { throw failure }
        guard !buffer.isEmpty else { return }
        do throws(Errno) {
            try file.writeAll(buffer)
        } catch {
            let failure = SystemError(error, "writing \(path)")
            self.failure = failure
            cutToWholeLine()
            throw failure
        }
        written += Int64(buffer.count)
        buffer.removeAll(keepingCapacity: true)
        oldest = nil
    }

    /// Brings all lines to the disk.
    func sync() throws(SystemError) {
        try flush()
        do throws(Errno) { try file.synchronizeData() } catch { throw SystemError(error, "fdatasync of \(path)") }
    }

    private func cutToWholeLine() {
        guard let size = try? file.size(), size > written else { return }
        let part = buffer.prefix(Int(clamping: size - written))
        let whole = part.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        try? file.resize(to: written + Int64(whole))
    }
}
