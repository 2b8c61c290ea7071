/// Cuts a glove's USB bytes into frames: A5 5A, type u8, length u16, sequence u32, t µs u32, payload.
///
/// There is no checksum, so a frame is believed by its type and the length that belongs to it; lines of text in between (`#HB …`,
/// `#CONFIG …`) are handed out as text.
///
/// Pure; memory is bounded by the longest frame and the longest line.
package struct TagFrameReader: Sendable {
    package enum Item: Sendable, Hashable {
        case reading(GloveReading)
        /// A line that begins with '#', without its end.
        case line(String)
    }

    private static let header = 13
    private static let longestLine = 1024
    private static let longestRest = 4096

    private let values: Int
    private var rest: [UInt8] = []
    /// Beginnings of frames whose type or length can't be.
    package private(set) var malformed = 0

    /// - Parameter values: taxels of a sample.
    package init(values: Int = 80) { self.values = values }

    package mutating func append(_ bytes: some Sequence<UInt8>) -> [Item] {
        rest += bytes
        var items: [Item] = []
        var index = 0
        loop: while index < rest.count {
            switch rest[index] {
            case 0xA5:
                switch frame(at: index) {
                case .whole(let reading, let length):
                    items.append(.reading(reading))
                    index += length
                case .incomplete: break loop
                case .bad:
                    malformed += 1
                    index += 2
                case .none: index += 1
                }
            case UInt8(ascii: "#"):
                guard let end = rest[index...].firstIndex(where: { $0 == 0x0A || $0 == 0x0D || $0 > 0x7E }) else {
                    if rest.count - index > Self.longestLine {
                        index += 1
                        continue
                    }
                    break loop
                }
                // A line that a frame cut off is no line.
                if rest[end] <= 0x7E, end - index > 1 {
                    items.append(.line(String(decoding: rest[index..<end], as: UTF8.self)))
                }
                index = end
                if rest[end] <= 0x7E { index += 1 }
            default: index += 1
            }
        }
        rest.removeFirst(index)
        if rest.count > Self.longestRest { rest.removeFirst(rest.count - Self.longestRest) }
        return items
    }

    private enum Found {
        case whole(GloveReading, Int)
        case incomplete
        case bad
        case none
    }

    private func frame(at index: Int) -> Found {
        guard index + 1 < rest.count else { return .incomplete }
        guard rest[index + 1] == 0x5A else { return .none }
        guard index + 5 <= rest.count else { return .incomplete }
        let length = Int(rest[index + 3]) | Int(rest[index + 4]) << 8
        let packedSize = (values * 3 + 1) / 2
        let modality: GloveModality
        switch (rest[index + 2], length) {
        case (1, packedSize), (1, values * 2): modality = .tactile
        case (2, 12): modality = .imu
        case (3, 6): modality = .mag
        default: return .bad
        }
        guard index + Self.header + length <= rest.count else { return .incomplete }
        var reader = ByteReader(rest[(index + 5)..<(index + Self.header + length)])
        guard let sequence = reader.u32(), let time = reader.u32() else { return .bad }
        let raw = reader.rest()
        let numbers: [Int32]
        if modality == .tactile, length == packedSize {
            numbers = GlovePacket.unpack(raw, count: values)
        } else {
            var words = ByteReader(raw)
            numbers = (0..<length / 2).compactMap { _ in
                modality == .tactile ? words.u16().map(Int32.init) : words.i16().map(Int32.init)
            }
        }
        return .whole(
            GloveReading(modality, sequence: sequence, counter: time, values: numbers), Self.header + length)
    }
}
