/// The version of the wire.
///
/// Two programs talk only when it is equal: a rig is updated as a whole.
package enum ProtocolVersion {
    package static let current: UInt8 = 1
}

/// The version of Downbeat itself, as `--version` prints it.
package enum ProductVersion {
    package static let current = "0.1.0"
}
