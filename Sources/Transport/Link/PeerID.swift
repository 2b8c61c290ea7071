/// Who sent a request: one connection of one coordinator.
///
/// A coordinator has a connection for commands and one for bulk, and new ones after each reconnect; its `key` stays.
package struct PeerID: Sendable, Hashable, CustomStringConvertible {
    /// libzmq's routing id of the connection.
    package let connection: [UInt8]
    /// The name that the trust file gives the key's owner.
    package let coordinator: String
    /// Nil only where encryption was turned off for loopback.
    package let key: CurveKey?
    /// Numeric.
    package let address: String

    package init(connection: [UInt8], coordinator: String, key: CurveKey?, address: String) {
        self.connection = connection
        self.coordinator = coordinator
        self.key = key
        self.address = address
    }

    package var description: String { "coordinator '\(coordinator)' at \(address)" }
}
