package import Timing

/// What a low-energy device says of itself to everybody.
package struct Advertisement: Sendable, Hashable {
    package var peer: LowEnergyPeer
    package var name: String?
    package var services: [BluetoothUUID] = []
    /// Company identifier and bytes.
    package var manufacturer: [UInt8]?
    /// dBm; nil when unknown.
    package var signal: Int?
    package var isConnectable = true
    /// When it was heard; host time.
    package var arrival: Timestamp<HostTime>

    package init(peer: LowEnergyPeer, name: String? = nil, arrival: Timestamp<HostTime>) {
        self.peer = peer
        self.name = name
        self.arrival = arrival
    }

    /// Adds what the structures of advertising data say (Core specification Supplement, Part A); what is cut off or
    /// unknown is left out.
    package mutating func add(data: some Collection<UInt8>) {
        var rest = Array(data)[...]
        while let length = rest.first.map(Int.init), length > 0, rest.count > length {
            let type = rest[rest.startIndex + 1]
            let value = rest.dropFirst(2).prefix(length - 1)
            switch type {
            case 0x02, 0x03: add(services: value, size: 2)
            case 0x04, 0x05: add(services: value, size: 4)
            case 0x06, 0x07: add(services: value, size: 16)
            // A shortened name doesn't replace a whole one.
            case 0x08 where name == nil, 0x09: name = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
            case 0xFF: manufacturer = Array(value)
            default: break
            }
            rest = rest.dropFirst(length + 1)
        }
    }

    private mutating func add(services raw: ArraySlice<UInt8>, size: Int) {
        var rest = raw
        while rest.count >= size {
            if let uuid = BluetoothUUID(littleEndian: rest.prefix(size)), !services.contains(uuid) {
                services.append(uuid)
            }
            rest = rest.dropFirst(size)
        }
    }
}

/// Which of the devices that are heard are meant; all that is set must hold.
package struct AdvertisementFilter: Sendable, Hashable {
    /// A part of the name, in any case.
    package var nameContains: String?
    package var service: BluetoothUUID?
    package var peers: Set<LowEnergyPeer>?
    /// dBm, at least.
    package var leastSignal: Int?
    package var excluded: Set<LowEnergyPeer> = []

    package init() {}

    package func admits(_ advertisement: Advertisement) -> Bool {
        if excluded.contains(advertisement.peer) { return false }
        if let peers, !peers.contains(advertisement.peer) { return false }
        if let service, !advertisement.services.contains(service) { return false }
        if let leastSignal, advertisement.signal.map({ $0 < leastSignal }) ?? true { return false }
        guard let nameContains else { return true }
        return advertisement.name?.lowercased().contains(nameContains.lowercased()) ?? false
    }
}

/// Whom to connect to.
package enum LowEnergyPeer: Sendable, Hashable, CustomStringConvertible {
    case radio(BluetoothAddress)
    /// A socket of an emulator that speaks the same packets, by its path.
    case socket(String)

    package var description: String {
        switch self {
        case .radio(let address): address.description
        case .socket(let path): "unix:\(path)"
        }
    }
}
