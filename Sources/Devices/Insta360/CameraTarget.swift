/// Which camera is meant, by the word in the configuration.
package struct CameraTarget: Sendable, Hashable {
    package static let service = BluetoothUUID(0xBE80)
    package static let write = BluetoothUUID(0xBE81)
    package static let notify = BluetoothUUID(0xBE82)

    /// "GO 3S 1TEBJJ", "1TEBJJ", "C0:FF:EE:00:00:01" or "unix:/run/go3s.sock".
    package let word: String
    /// Where it is, when the word says that.
    package let peer: LowEnergyPeer?
    /// The kind of the address is told by what is advertised; as long as nothing was heard it is taken for a random one.
    private let address: BluetoothAddress?

    package static let rule =
        "the camera's name ('GO 3S 1TEBJJ'), the last six characters of its serial number, its Bluetooth address, or "
        + "'unix:PATH' of an emulator"

    package init?(_ word: String) {
        guard !word.isEmpty, word.utf8.count <= 200 else { return nil }
        self.word = word
        if word.hasPrefix("unix:") {
            (peer, address) = (.socket(String(word.dropFirst(5))), nil)
        } else {
            address = BluetoothAddress(word, .random)
            peer = address.map { .radio($0) }
        }
    }

    /// What stays the same over sessions: a camera's address changes, its serial doesn't.
    package var identity: String { "go3s:\(word)" }

    package func matches(_ advertisement: Advertisement) -> Bool {
        switch advertisement.peer {
        case .socket: advertisement.peer == peer || isNamed(advertisement.name)
        case .radio(let heard): address.map { $0.bytes == heard.bytes } ?? isNamed(advertisement.name)
        }
    }

    /// The whole name, or its end behind a space: "1TEBJ" is not "1TEBJJ".
    private func isNamed(_ name: String?) -> Bool {
        guard let name = name?.lowercased(), peer == nil else { return false }
        let word = word.lowercased()
        return name == word || name.hasSuffix(" \(word)")
    }
}
