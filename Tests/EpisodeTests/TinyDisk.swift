internal import Foundation
internal import Platform
internal import TestSupport

/// A file system of a given size, to be filled; nil where the test may not mount one.
final class TinyDisk {
    let path: String

    init?(bytes: Int, in folder: TemporaryFolder) throws {
        path = "\(folder.path)/disk-\(UUID().uuidString)"
        try Files.makeFolder(path)
        let result = try MediaTools.run("mount", ["-t", "tmpfs", "-o", "size=\(bytes)", "tmpfs", path])
        guard result.status == 0 else {
            print("skipped: no tmpfs can be mounted here: \(result.errors)")
            return nil
        }
    }

    deinit { _ = try? MediaTools.run("umount", ["-l", path]) }
}
