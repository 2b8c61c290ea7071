package import Protocol

/// One kind of device: its name in the configuration, its keys, and what is attached of it.
///
/// A new kind is a folder in this room with a type that conforms to this, and one line in `DeviceCatalog`.
package protocol DeviceKind: Sendable {
    /// The value of `kind` in a stream's configuration.
    static var name: String { get }

    /// Makes the device from its part of the configuration, without touching hardware. It reads its own keys from the
    /// reader; `id` and `kind` are read already, and the caller calls `finish`.
    static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice

    /// What of this kind is attached to the machine now. May block: it is called on an event loop's thread.
    static func attached() -> [DeviceList.Attached]
}

/// What a device needs to know of its host.
package struct Surroundings: Sendable {
    package var host: HostID
    /// Where this host's microphones and speakers stand in the emulated room; nil without one.
    package var air: AirPlace?

    /// Of this agent: several streams are made of one glove.
    package var gloves = GloveRegistry()

    package init(host: HostID, air: AirPlace? = nil) {
        self.host = host
        self.air = air
    }
}

/// A place in an emulated room.
package struct AirPlace: Sendable, Hashable {
    /// The folder that all emulated hosts of the room share.
    package var folder: String
    /// Metres.
    package var position: [Double]
    /// Standard deviation of the microphone's noise, of full scale 1.
    package var noise: Double

    package init(folder: String, position: [Double], noise: Double) {
        self.folder = folder
        self.position = position
        self.noise = noise
    }
}
