internal import Glibc
internal import Platform

/// A folder that has exactly the given files in it, as second names of others where the file system can.
///
/// Filling it again with the same list changes nothing.
struct LinkFolder {
    private let path: String
    private var wanted: Set<String> = []
    /// Files that had to be copied, since the file system has no hard links.
    private(set) var copies = 0

    init(_ path: String) throws {
        self.path = path
        try Files.makeFolder(path)
    }

    /// Gives a file a name here.
    mutating func link(_ source: String, as name: String) throws {
        precondition(FilePath.staysInside(name) && !name.contains("/"), "'\(name)' is no name of a file")
        wanted.insert(name)
        let target = "\(path)/\(name)"
        if Self.isSameFile(source, target) { return }
        let side = "\(path)/.link.part"
        try Files.remove(side)
        do throws(SystemError) {
            try Files.hardLink(source, to: side)
        } catch {
            guard [EPERM, EXDEV, EMLINK, ENOTSUP, ENOSYS].contains(error.errno.rawValue) else { throw error }
            if Self.isSameContent(source, target) { return }
            try Self.copy(source, to: side)
            copies += 1
        }
        try Files.rename(side, to: target)
    }

    /// Puts a file of our own here.
    mutating func write(_ bytes: [UInt8], as name: String) throws {
        precondition(FilePath.staysInside(name) && !name.contains("/"), "'\(name)' is no name of a file")
        wanted.insert(name)
        let target = "\(path)/\(name)"
        // A hard link of the same name must never be written into: the rename replaces it.
        try AtomicFile.write(bytes, to: target)
    }

    /// Removes what doesn't belong here, and makes the names durable.
    func finish() throws {
        for name in try Files.list(path) where !wanted.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
            try Files.removeTree("\(path)/\(name)")
        }
        try AtomicFile.synchronizeFolder(of: "\(path)/.")
    }

    private static func isSameFile(_ a: String, _ b: String) -> Bool {
        var (first, second) = (stat(), stat())
        guard stat(a, &first) == 0, stat(b, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    private static func isSameContent(_ a: String, _ b: String) -> Bool {
        guard let size = Files.size(a), Files.size(b) == size else { return false }
        guard let first = try? SHA256.ofFile(a), let second = try? SHA256.ofFile(b) else { return false }
        return first == second
    }

    private static func copy(_ source: String, to target: String) throws {
        let input = try FileDescriptor(path: source, flags: O_RDONLY)
        let output = try FileDescriptor(path: target, flags: O_WRONLY | O_CREAT | O_TRUNC)
        do throws(Errno) {
            while true {
                let part = try input.read(upTo: 1 << 20)
                if part.isEmpty { break }
                try output.writeAll(part)
            }
            try output.synchronize()
        } catch {
            throw SystemError(error, "copying \(source) to \(target)")
        }
    }
}
