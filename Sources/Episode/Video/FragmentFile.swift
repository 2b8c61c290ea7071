internal import Glibc
internal import Platform

/// The file of a recording on the disk: it grows, and no further than a whole fragment is trusted.
///
/// After a failure it ends with its last whole fragment, and each call throws the failure again.
final class FragmentFile {
    let path: String
    private let file: FileDescriptor
    /// Where the next bytes go.
    private(set) var end: Int64 = 0
    /// Bytes on the disk that end with a whole fragment.
    private(set) var durable: Int64 = 0
    private var failure: SystemError?

    init(path: String) throws(SystemError) {
        self.path = path
        file = try FileDescriptor(path: path, flags: O_RDWR | O_CREAT | O_EXCL)
        try AtomicFile.synchronizeFolder(of: path)
    }

    /// Adds bytes at the end.
    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try write(bytes, at: end)
        end += Int64(bytes.count)
    }

    func append(_ bytes: [UInt8]) throws(SystemError) {
        try write(bytes, at: end)
        end += Int64(bytes.count)
    }

    /// Leaves a place for later; it costs no disk space until it is written.
    func skip(_ count: Int64) { end += count }

    func write(_ bytes: [UInt8], at offset: Int64) throws(SystemError) {
        var failure: SystemError?
        bytes.withUnsafeBytes { buffer in
            do throws(SystemError) { try write(buffer, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        if let failure { throw failure }
        var done = 0
        do throws(Errno) {
            while done < bytes.count {
                let start = done
                done += try throwingErrno {
                    pwrite(
                        file.rawValue, bytes.baseAddress?.advanced(by: start), bytes.count - start,
                        off_t(offset) + off_t(start))
                }
            }
        } catch {
            try fail(error, "writing \(path)")
        }
    }

    /// Brings all to the disk; what is there now is trusted.
    func seal() throws(SystemError) {
        if let failure { throw failure }
        do throws(Errno) { try file.synchronizeData() } catch { try fail(error, "fdatasync of \(path)") }
        durable = end
    }

    private func fail(_ error: Errno, _ doing: String) throws(SystemError) {
        let failure = SystemError(error, doing)
        self.failure = failure
        try? file.resize(to: durable)
        throw failure
    }
}
