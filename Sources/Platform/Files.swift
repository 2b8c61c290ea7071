internal import CLinux
internal import Glibc

/// Whole-file and folder operations of the system, with the path in each error.
package enum Files {
    /// Reads a whole file, of at most `limit` bytes.
    package static func read(_ path: String, limit: Int = 1 << 30) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        var bytes: [UInt8] = []
        do {
            while bytes.count <= limit {
                let part = try file.read(upTo: min(1 << 20, limit + 1 - bytes.count))
                if part.isEmpty { return bytes }
                bytes += part
            }
        } catch {
            throw SystemError(error, "reading \(path)")
        }
        throw SystemError(Errno(rawValue: EFBIG), "reading \(path), which is larger than \(limit) bytes")
    }

    /// Makes a folder and those above it.
    package static func makeFolder(_ path: String, mode: UInt32 = 0o755) throws(SystemError) {
        if isFolder(path) { return }
        let parent = FilePath.parent(of: path)
        if parent != path && !isFolder(parent) { try makeFolder(parent, mode: mode) }
        guard mkdir(path, mode_t(mode)) == 0 || errno == EEXIST else {
            throw SystemError(.current, "making folder \(path)")
        }
    }

    /// The names in a folder, sorted, without `.` and `..`.
    package static func list(_ path: String) throws(SystemError) -> [String] {
        guard let folder = opendir(path) else { throw SystemError(.current, "listing \(path)") }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    package static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// The size of a regular file in bytes; nil when there is none.
    package static func size(_ path: String) -> Int64? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(status.st_size)
    }

    /// The time of the last change, ns since 1970 UTC; nil when there is no such file.
    package static func modificationTime(_ path: String) -> Int64? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
    }

    package static func remove(_ path: String) throws(SystemError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw SystemError(.current, "removing \(path)") }
    }

    package static func rename(_ from: String, to: String) throws(SystemError) {
        guard Glibc.rename(from, to) == 0 else { throw SystemError(.current, "renaming \(from) to \(to)") }
    }

    /// Removes a folder and all in it; symbolic links are removed, never followed.
    package static func removeTree(_ path: String) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            for name in try list(path) { try removeTree("\(path)/\(name)") }
            guard rmdir(path) == 0 else { throw SystemError(.current, "removing folder \(path)") }
        } else {
            try remove(path)
        }
    }

    /// Gives a file a second name on the same file system.
    package static func hardLink(_ from: String, to: String) throws(SystemError) {
        guard link(from, to) == 0 else { throw SystemError(.current, "linking \(from) to \(to)") }
    }

    /// Bytes that a program without privileges may still write where the path lies.
    package static func freeSpace(at path: String) throws(SystemError) -> Int64 {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw SystemError(.current, "asking for the free space at \(path)") }
        return Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    }
}
