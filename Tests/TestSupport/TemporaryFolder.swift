internal import Foundation
internal import Platform

/// A folder of its own for one test; it is removed with its owner.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() throws {
        path = FileManager.default.temporaryDirectory.path + "/downbeat-test-\(UUID().uuidString)"
        try Files.makeFolder(path)
    }

    deinit { try? Files.removeTree(path) }
}
