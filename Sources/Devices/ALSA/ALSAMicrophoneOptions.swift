package import Protocol

/// What is asked of a microphone.
package struct ALSAMicrophoneOptions: Sendable, Hashable {
    package enum Format: String, Sendable, CaseIterable {
        case auto, s16, s24, s32, f32

        /// What is asked of the card, best first.
        var encodings: [AudioFormat.Encoding] {
            switch self {
            case .auto: [.s16, .s24, .s32, .f32]
            case .s16: [.s16]
            case .s24: [.s24]
            case .s32: [.s32]
            case .f32: [.f32]
            }
        }
    }

    /// Longer gaps aren't filled: all of it comes at once, and has to fit into the stream's ring.
    static let mostFilledBytes = 64 << 20

    package var name: PCMName
    /// Sample frames a second.
    package var rate = 48_000
    /// Of the card.
    package var channels = 1
    /// The channels that are kept, counted from 1, in the order of the file; none means all.
    package var picked: [Int] = []
    package var format = Format.auto
    /// Whether silence stands in the file where nothing was captured, marked as such; else the file leaves it out.
    package var fillsGaps = false

    package init(name: PCMName) { self.name = name }

    /// Keys: `card`, `port` and `device`, or `pcm`; `rate`, `channels`, `pick`, `format`, `fill_gaps`.
    package init(from reader: inout ConfigReader) throws(ConfigReader.Invalid) {
        name = try PCMName(from: &reader)
        rate = Int(try reader.integer("rate", default: 48_000, in: 4_000...768_000))
        channels = Int(try reader.integer("channels", default: 1, in: 1...64))
        format = try reader.word("format", default: .auto)
        fillsGaps = try reader.bool("fill_gaps", default: false)
        picked = try Self.picked(&reader, channels)
    }

    private static func picked(
        _ reader: inout ConfigReader, _ channels: Int
    ) throws(ConfigReader.Invalid) -> [Int] {
        let read = reader.value("pick")
        guard let read else { return [] }
        let legal = "a list of different channels from 1 to \(channels), which 'channels' says"
        guard case .array(let items) = read, !items.isEmpty else { throw reader.invalid("pick", read, legal: legal) }
        var picked: [Int] = []
        for item in items {
            guard case .integer(let number) = item, (1...Int64(channels)).contains(number),
                !picked.contains(Int(number))
            else { throw reader.invalid("pick", item, legal: legal) }
            picked.append(Int(number))
        }
        return picked
    }

    /// What the stream delivers of what the card gives.
    func format(of shape: PCMShape) -> AudioFormat {
        var format = shape.format
        if !picked.isEmpty { format.channels = picked.count }
        return format
    }
}
