internal import Glibc
internal import Platform

/// Writing at a place, and cutting: what only the files of an episode need.
extension FileDescriptor {
    /// Writes all of the bytes at a place, and leaves the descriptor's own place alone.
    ///
    /// The corresponding C function is `pwrite`.
    func writeAll(_ bytes: [UInt8], at offset: Int64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            let start = done
            done += try throwingErrno {
                bytes.withUnsafeBytes {
                    pwrite(
                        rawValue, $0.baseAddress?.advanced(by: start), $0.count - start, off_t(offset) + off_t(start))
                }
            }
        }
    }

    /// The number of bytes in the file.
    ///
    /// The corresponding C function is `fstat`.
    func size() throws(Errno) -> Int64 {
        var status = stat()
        try throwingErrno { fstat(rawValue, &status) }
        return Int64(status.st_size)
    }

    /// Cuts or extends the file.
    ///
    /// The corresponding C function is `ftruncate`.
    func resize(to size: Int64) throws(Errno) { try throwingErrno { ftruncate(rawValue, off_t(size)) } }

    /// Makes a file that must not exist yet: a recording is never written over.
    static func new(_ path: String, append: Bool = false) throws(SystemError) -> FileDescriptor {
        let descriptor = try FileDescriptor(
            path: path, flags: O_WRONLY | O_CREAT | O_EXCL | (append ? O_APPEND : 0))
        try AtomicFile.synchronizeFolder(of: path)
        return descriptor
    }
}
