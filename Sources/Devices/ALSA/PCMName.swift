package import Protocol

/// Which PCM a configuration means: a card by its identity, or any name of alsa-lib's.
///
/// Pure.
package struct PCMName: Sendable, Hashable, CustomStringConvertible {
    /// What a search among the attached cards came to.
    package enum Finding: Sendable, Hashable {
        case found(SoundCard)
        case absent
        /// The port is there, with another make of card in it.
        case other(SoundCard)
        /// A name of alsa-lib's, which isn't looked for.
        case unlisted
    }

    /// The card's id, as in /proc/asound/cards; nil when only the port or a name of alsa-lib's is given.
    package var card: String?
    /// Where the card is plugged in: for two of one make, whose ids change places.
    package var port: String?
    package var device: Int
    private var pcm: String?

    /// A hardware device of a card, without any conversion.
    package init(card: String?, port: String? = nil, device: Int) {
        self.card = card
        self.port = port
        self.device = device
    }

    /// A name of alsa-lib's configuration, such as "null" or "plughw:CARD=Webcam".
    package init(pcm: String) {
        self.pcm = pcm
        device = 0
    }

    /// For a person, and what alsa-lib opens when no port is given: "hw:CARD=Webcam,DEV=0".
    package var description: String {
        if let pcm { return pcm }
        let place = port.map { card == nil ? $0 : " in port \($0)" } ?? ""
        return
            "hw:\(card.map { "CARD=\($0)" } ?? "port ")\(card == nil ? place : ""),DEV=\(device)\(card == nil ? "" : place)"
    }

    /// Which of the attached cards it is.
    package func find(in cards: [SoundCard]) -> Finding {
        guard pcm == nil else { return .unlisted }
        if let port {
            guard let there = cards.first(where: { $0.port == port && $0.device == device }) else { return .absent }
            // The second card of a make has a suffix, and which one is the second depends on the order of plugging in.
            let wanted = card.map { SoundCard(number: 0, id: $0, device: device, label: "").make }
            return wanted == nil || wanted == there.make || card == there.id ? .found(there) : .other(there)
        }
        return cards.first { $0.id == card && $0.device == device }.map { .found($0) } ?? .absent
    }

    /// What alsa-lib opens.
    func opened(_ finding: Finding) -> String {
        if case .found(let card) = finding { return "hw:CARD=\(card.id),DEV=\(card.device)" }
        return pcm ?? "hw:CARD=\(card ?? "absent"),DEV=\(device)"
    }

    /// The kernel makes ids of letters, digits and underscores, at most 15; a number would be an index, which moves.
    package static func isCardID(_ text: String) -> Bool {
        let bytes = text.utf8
        return (1...15).contains(bytes.count) && Int(text) == nil
            && bytes.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                    || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
            }
    }

    /// Keys: `card`, `port` or both, and `device`; or `pcm`.
    package init(from reader: inout ConfigReader) throws(ConfigReader.Invalid) {
        if let pcm = try reader.optionalString("pcm", legal: "a PCM of alsa-lib, instead of 'card'") {
            guard !pcm.isEmpty, !pcm.utf8.contains(0) else {
                throw reader.invalid("pcm", .string(pcm), legal: "a PCM of alsa-lib, instead of 'card'")
            }
            guard pcm != "default", pcm != "sysdefault" else {
                throw reader.invalid(
                    "pcm", .string(pcm), legal: "a PCM that is always the same card: the default one changes by itself")
            }
            for key in ["card", "port"] {
                if let value = reader.value(key) {
                    throw reader.invalid(key, value, legal: "'\(key)' or 'pcm', not both")
                }
            }
            self.init(pcm: pcm)
            return
        }
        let port = try reader.optionalString("port", legal: "where the card is plugged in, such as '1-3:1.0'")
        if let port, port.isEmpty || port.utf8.contains(0) {
            throw reader.invalid("port", .string(port), legal: "where the card is plugged in, such as '1-3:1.0'")
        }
        var card: String?
        if port == nil || reader.value("card") != nil {
            card = try reader.string(
                "card", legal: "a card's id as `downbeat-agent devices` shows it, never its number",
                check: Self.isCardID)
        }
        self.init(card: card, port: port, device: Int(try reader.integer("device", default: 0, in: 0...63)))
    }
}
