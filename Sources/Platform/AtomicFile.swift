internal import Glibc

/// Files that are either the old one or the whole new one, also after a power cut.
package enum AtomicFile {
    /// Writes to a side file, fsyncs it, renames it over the target, and fsyncs the folder.
    ///
    /// - Throws: `SystemError`; the target is then untouched and the side file is gone.
    package static func write(_ bytes: [UInt8], to path: String, mode: UInt32 = 0o644) throws(SystemError) {
        let side = "\(path).part"
        do throws(SystemError) {
            try writeDurably(bytes, to: side, mode: mode)
            try Files.rename(side, to: path)
        } catch {
            unlink(side)
            throw error
        }
        try synchronizeFolder(of: path)
    }

    /// Writes text; see `write(_:to:mode:)`.
    package static func write(_ text: String, to path: String, mode: UInt32 = 0o644) throws(SystemError) {
        try write(Array(text.utf8), to: path, mode: mode)
    }

    /// Makes a rename, a link or a new file in a folder durable.
    package static func synchronizeFolder(of path: String) throws(SystemError) {
        let folder = FilePath.parent(of: path)
        let descriptor = try FileDescriptor(path: folder, flags: O_RDONLY | O_DIRECTORY)
        do { try descriptor.synchronize() } catch { throw SystemError(error, "fsync of \(folder)") }
    }

    private static func writeDurably(_ bytes: [UInt8], to path: String, mode: UInt32) throws(SystemError) {
        let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: mode)
        do throws(Errno) {
            try file.writeAll(bytes)
            try file.synchronize()
        } catch {
            throw SystemError(error, "writing \(path)")
        }
    }
}
