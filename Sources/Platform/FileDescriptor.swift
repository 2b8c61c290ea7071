internal import Glibc

/// The one owner of an open file descriptor; it closes it.
package struct FileDescriptor: ~Copyable, Sendable {
    /// The number, for calls that need it; valid as long as the owner lives.
    package let rawValue: Int32

    package init(owning rawValue: Int32) { self.rawValue = rawValue }

    /// Opens with O_CLOEXEC.
    ///
    /// The corresponding C function is `open`.
    package init(path: String, flags: Int32, mode: UInt32 = 0o644) throws(SystemError) {
        do {
            rawValue = try throwingErrno { open(path, flags | O_CLOEXEC, mode_t(mode)) }
        } catch {
            throw SystemError(error, "opening \(path)")
        }
    }

    deinit { _ = close(rawValue) }

    /// Gives up ownership without closing.
    package consuming func release() -> Int32 {
        let number = rawValue
        discard self
        return number
    }

    /// Reads at most `count` bytes; empty at the end.
    ///
    /// The corresponding C function is `read`.
    package func read(upTo count: Int) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let number = rawValue
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            do throws(Errno) {
                filled = try throwingErrno { Glibc.read(number, buffer.baseAddress, count) }
            } catch {
                failure = error
                filled = 0
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Writes all of the bytes.
    ///
    /// The corresponding C function is `write`.
    package func writeAll(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            done += try throwingErrno { write(rawValue, rest.baseAddress, rest.count) }
        }
    }

    /// Writes all of the bytes.
    ///
    /// The corresponding C function is `write`.
    package func writeAll(_ bytes: [UInt8]) throws(Errno) {
        var failure: Errno?
        bytes.withUnsafeBytes { buffer in
            do throws(Errno) { try writeAll(buffer) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Brings data and metadata to the disk.
    ///
    /// The corresponding C function is `fsync`.
    package func synchronize() throws(Errno) { try throwingErrno { fsync(rawValue) } }

    /// Brings data to the disk.
    ///
    /// The corresponding C function is `fdatasync`.
    package func synchronizeData() throws(Errno) { try throwingErrno { fdatasync(rawValue) } }
}
