/// One device of a sound card, as the kernel lists it now, with what stays the same of it.
///
/// Its number is the order in which the cards were found, and its id gets a suffix when two cards are of one make: neither is
/// an identity. A serial number is one, and the port that it is plugged into.
package struct SoundCard: Sendable, Hashable {
    /// The kernel's index: changes with each boot.
    package var number: Int
    /// "Webcam", as in /proc/asound/cards.
    package var id: String
    package var device: Int
    /// "Loopback 1, Loopback PCM".
    package var label: String
    /// Where the card is plugged in, such as "1-3:1.0"; nil when it is nowhere.
    package var port: String?
    /// Of the USB device; nil when it has none.
    package var serial: String?

    package init(number: Int, id: String, device: Int, label: String, port: String? = nil, serial: String? = nil) {
        self.number = number
        self.id = id
        self.device = device
        self.label = label
        self.port = port
        self.serial = serial
    }

    /// The id without the suffix that the kernel adds to the second card of a make: "Webcam_1" is a "Webcam".
    package var make: String {
        let digits = id.reversed().prefix { $0.isNumber }.count
        let stem = id.dropLast(digits)
        return digits > 0 && stem.hasSuffix("_") && stem.count > 1 ? String(stem.dropLast()) : id
    }

    /// The kernel's node.
    func node(_ direction: PCMDirection) -> String {
        "/dev/snd/pcmC\(number)D\(device)\(direction == .capture ? "c" : "p")"
    }

    /// What tells it from others of its make, for a manifest: "serial 7A31, port 1-3:1.0".
    var place: String {
        [serial.map { "serial \($0)" }, port.map { "port \($0)" }].compactMap(\.self).joined(separator: ", ")
    }

    /// The same hardware among those that are attached now, after an unplug.
    ///
    /// By its serial number when it has one that no other card of the list has; else by its port; a card that is in no port
    /// (of the board, or virtual) by its id.
    package func again(in cards: [SoundCard]) -> SoundCard? {
        let alike = cards.filter { $0.make == make && $0.device == device }
        if let serial {
            let same = alike.filter { $0.serial == serial }
            if same.count == 1 { return same[0] }
            return same.first { $0.port == port }
        }
        if let port { return alike.first { $0.port == port } }
        return alike.first { $0.id == id }
    }
}
