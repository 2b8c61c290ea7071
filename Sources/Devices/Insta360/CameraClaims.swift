internal import Synchronization

/// Which stream of this program has which camera: two streams never command one.
package final class CameraClaims: Sendable {
    package static let ofThisProcess = CameraClaims()

    private let owners = Mutex<[String: String]>([:])

    package init() {}

    /// Claims a camera for an owner.
    ///
    /// - Returns: who has it, when it isn't this owner.
    package func claim(_ camera: String, for owner: String) -> String? {
        owners.withLock { owners in
            if let holder = owners[camera], holder != owner { return holder }
            owners[camera] = owner
            return nil
        }
    }

    package func release(_ camera: String, of owner: String) {
        owners.withLock { if $0[camera] == owner { $0[camera] = nil } }
    }
}
