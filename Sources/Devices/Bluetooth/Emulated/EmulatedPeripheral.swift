package import Timing

/// A connected central, as an emulated device sees it; on the emulator's thread.
package protocol PeripheralLink: AnyObject {
    /// One ATT packet.
    func send(_ packet: [UInt8])
    /// Ends the link from the device's side.
    func disconnect()
}

/// An emulated low-energy device: what it advertises, its attributes, and what it does as time passes.
///
/// Concurrency: used by one thread, the one of whatever carries it: a socket, or a virtual controller.
package protocol EmulatedPeripheral: AnyObject {
    var name: String { get }
    /// Advertising data beside the flags and the name.
    var advertising: [UInt8] { get }
    /// Whether it can be heard and connected to now.
    func isAdvertising(at now: Timestamp<HostTime>) -> Bool

    func connected(_ link: any PeripheralLink, at now: Timestamp<HostTime>)
    func received(_ packet: [UInt8], at now: Timestamp<HostTime>)
    func disconnected(at now: Timestamp<HostTime>)

    /// Does what is due, and says when the next thing is; nil when there is nothing.
    func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>?
}
