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

/// SplitMix64: the same numbers on each run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
