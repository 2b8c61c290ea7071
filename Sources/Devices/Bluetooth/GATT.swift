/// A service of a low-energy device with what is in it.
package struct GATTService: Sendable, Hashable {
    package var uuid: BluetoothUUID
    package var handles: ClosedRange<UInt16>
    package var isPrimary = true
    package var characteristics: [GATTCharacteristic] = []

    package init(uuid: BluetoothUUID, handles: ClosedRange<UInt16>) {
        self.uuid = uuid
        self.handles = handles
    }
}

/// A value of a service.
package struct GATTCharacteristic: Sendable, Hashable {
    /// Vol 3 Part G 3.3.1.1.
    package struct Properties: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        package static let broadcast = Properties(rawValue: 0x01)
        package static let read = Properties(rawValue: 0x02)
        package static let writeWithoutResponse = Properties(rawValue: 0x04)
        package static let write = Properties(rawValue: 0x08)
        package static let notify = Properties(rawValue: 0x10)
        package static let indicate = Properties(rawValue: 0x20)
        package static let signedWrite = Properties(rawValue: 0x40)
        package static let extended = Properties(rawValue: 0x80)
    }

    package struct Descriptor: Sendable, Hashable {
        package var uuid: BluetoothUUID
        package var handle: UInt16

        package init(uuid: BluetoothUUID, handle: UInt16) {
            self.uuid = uuid
            self.handle = handle
        }
    }

    package var uuid: BluetoothUUID
    package var properties: Properties
    /// Where the declaration stands.
    package var declaration: UInt16
    /// Where the value is.
    package var handle: UInt16
    package var descriptors: [Descriptor] = []

    package init(uuid: BluetoothUUID, properties: Properties, declaration: UInt16, handle: UInt16) {
        self.uuid = uuid
        self.properties = properties
        self.declaration = declaration
        self.handle = handle
    }

    /// Where notifications are switched on; nil when there is no such switch.
    package var configuration: UInt16? { descriptors.first { $0.uuid == GATTNumbers.clientConfiguration }?.handle }

    /// From the value of a declaration: properties, handle, UUID.
    init?(declaration: ATTPacket.Value) {
        var reader = ByteReader(declaration.bytes)
        guard let properties = reader.u8(), let handle = reader.u16(), handle > declaration.handle,
            let uuid = BluetoothUUID(littleEndian: reader.rest())
        else { return nil }
        self.init(
            uuid: uuid, properties: Properties(rawValue: properties), declaration: declaration.handle, handle: handle)
    }
}

/// Assigned numbers of the generic attribute profile.
package enum GATTNumbers {
    package static let primaryService = BluetoothUUID(0x2800)
    package static let characteristic = BluetoothUUID(0x2803)
    package static let clientConfiguration = BluetoothUUID(0x2902)
    package static let deviceName = BluetoothUUID(0x2A00)
    package static let batteryLevel = BluetoothUUID(0x2A19)
}

extension Array<GATTService> {
    /// The first characteristic with a UUID, in a service with a UUID.
    package func characteristic(_ uuid: BluetoothUUID, in service: BluetoothUUID? = nil) -> GATTCharacteristic? {
        for candidate in self where service == nil || candidate.uuid == service {
            if let found = candidate.characteristics.first(where: { $0.uuid == uuid }) { return found }
        }
        return nil
    }
}
