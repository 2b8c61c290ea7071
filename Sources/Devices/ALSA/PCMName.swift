package import Protocol

/// Which PCM a configuration means: a card by its identity, or any name of alsa-lib's.
///
/// Pure.
package struct PCMName: Sendable, Hashable, CustomStringConvertible {
    /// The card's id, as in /proc/asound/cards; nil for a name of alsa-lib's.
    package var card: String?
    package var device: Int
    /// What alsa-lib opens.
    package var description: String

    /// A hardware device of a card, without any conversion.
    package init(card: String, device: Int) {
        self.card = card
        self.device = device
        description = "hw:CARD=\(card),DEV=\(device)"
    }

    /// A name of alsa-lib's configuration, such as "null" or "plughw:CARD=Webcam".
    package init(pcm: String) {
        card = nil
        device = 0
        description = pcm
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

    /// Keys: `card` and `device`, or `pcm`.
    package init(from reader: inout ConfigReader) throws(ConfigReader.Invalid) {
        if let pcm = try reader.optionalString("pcm", legal: "a PCM of alsa-lib, instead of 'card'") {
            guard !pcm.isEmpty, !pcm.utf8.contains(0) else {
                throw reader.invalid("pcm", .string(pcm), legal: "a PCM of alsa-lib, instead of 'card'")
            }
            if let card = reader.value("card") {
                throw reader.invalid("card", card, legal: "'card' or 'pcm', not both")
            }
            self.init(pcm: pcm)
            return
        }
        let card = try reader.string(
            "card", legal: "a card's id as `downbeat-agent devices` shows it, never its number", check: Self.isCardID)
        self.init(card: card, device: Int(try reader.integer("device", default: 0, in: 0...63)))
    }
}
