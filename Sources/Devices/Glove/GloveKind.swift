internal import Platform
package import Protocol
internal import Timing

/// `oglo` in the configuration: a tactile glove; one stream for each kind of its rows.
package enum GloveKind: DeviceKind {
    package static let name = "oglo"

    /// Keys: `side`, `rows`, `address`, `adapter`.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        let side: GloveSide = try reader.word("side")
        let rows: GloveModality = try reader.word("rows", default: .tactile)
        let said = try reader.optionalString("address") ?? ""
        let adapter = try reader.optionalString("adapter")
        // An empty address is none, and not the same for both hands.
        let address = said.isEmpty ? nil : said
        let peers = try peers(address, reader)
        let wish = GloveRegistry.Wish(side: side, address: identity(address, peers))
        do throws(GloveRegistry.Conflict) {
            let session = try surroundings.gloves.session(wish, for: rows) {
                transport(address, peers, adapter: adapter)
            }
            let isOnAir = peers.contains { if case .radio = $0 { true } else { false } }
            return GloveDevice(
                stream, rows, of: session, hardware: isOnAir ? wish.address.map { "the glove \($0)" } : nil)
        } catch {
            throw reader.invalid(error == .sameRows ? "rows" : "address", .string(said), legal: "\(error)")
        }
    }

    private static func peers(
        _ address: String?, _ reader: ConfigReader
    ) throws(ConfigReader.Invalid) -> Set<LowEnergyPeer> {
        guard let address else { return [] }
        if address.hasPrefix("unix:") {
            let path = String(address.dropFirst(5))
            return path.hasSuffix("/") ? [] : [.socket(path)]
        }
        if address.hasPrefix("/") { return [] }
        let both = BluetoothAddress.Kind.allCases.compactMap { BluetoothAddress(address, $0) }
        guard both.count == BluetoothAddress.Kind.allCases.count else {
            throw reader.invalid(
                "address", .string(address),
                legal: "an address such as 'C0:FF:EE:00:00:01', or the path of an emulator's socket such as "
                    + "'unix:/tmp/left.sock'")
        }
        return Set(both.map { .radio($0) })
    }

    /// What tells two gloves apart; none of a folder of sockets, in which any glove will do.
    private static func identity(_ address: String?, _ peers: Set<LowEnergyPeer>) -> String? {
        guard let address else { return nil }
        if address.hasPrefix("unix:") { return peers.isEmpty ? nil : address }
        return address.hasPrefix("/") ? address : address.uppercased()
    }

    private static func transport(
        _ address: String?, _ peers: Set<LowEnergyPeer>, adapter: String?
    ) -> any GloveTransport {
        if let address, address.hasPrefix("unix:"), peers.isEmpty {
            let folder = String(address.dropFirst(5).dropLast())
            return BluetoothGlove(central: LowEnergyCentral(radios: [SocketRadio(folder: folder)]), peers: [])
        }
        return BluetoothGlove(central: LowEnergyCentral(adapter: adapter), peers: peers)
    }

    package static func attached() -> [DeviceList.Attached] {
        let adapters = (try? BluetoothAdapter.all()) ?? []
        return adapters.map { adapter in
            var entry = DeviceList.Attached(
                kind: name, identity: adapter.address, label: "Bluetooth adapter \(adapter.name)",
                abilities: ["gloves and sensors over Bluetooth low energy"])
            switch adapter.block {
            case .soft: entry.problem = "it is switched off by rfkill; rfkill unblock bluetooth"
            case .hard: entry.problem = "it is switched off by the machine's switch"
            case nil where !adapter.isUp: entry.abilities.append("it is off, and is switched on when it is needed")
            case nil: break
            }
            return entry
        }
    }
}
