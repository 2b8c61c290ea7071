package import Timing

/// What carries the packets of one link; each read gives exactly one packet.
///
/// Concurrency: used by one thread, the link's event loop.
package protocol LowEnergyChannel: AnyObject, Sendable {
    /// A socket that keeps packets apart, and doesn't block.
    var descriptor: Int32 { get }
    /// A second descriptor that becomes readable with news for `update`; nil when there is none.
    var newsDescriptor: Int32? { get }
    /// As far as it is known.
    var parameters: ConnectionParameters? { get }
    /// Why it ended, when that is known better than by the socket's error.
    var reason: DisconnectReason? { get }

    /// Reads what `newsDescriptor` has.
    func update()

    func ask(for wish: ConnectionWish) throws(LowEnergyError)
    func setSecurity(_ level: LinkSecurity) throws(LowEnergyError)

    /// Ends it; the descriptors are closed.
    func close()
}

/// A way to hear devices and to open channels to them.
///
/// Concurrency: from anywhere; what blocks does so on a thread of its own.
package protocol LowEnergyRadio: Sendable {
    /// Whether devices of this kind are reached this way.
    func reaches(_ peer: LowEnergyPeer) -> Bool

    /// Whether it can hear what is advertised at all.
    var scans: Bool { get }

    /// Hears what is advertised, until the task is cancelled or `found` answers false; `found` is called on the scan's
    /// own thread.
    func scan(_ found: @escaping @Sendable (Advertisement) -> Bool) async throws(LowEnergyError)

    /// Connects, within `patience`.
    func channel(to peer: LowEnergyPeer, within patience: Interval) async throws(LowEnergyError) -> any LowEnergyChannel
}
