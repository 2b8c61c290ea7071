/// A frame of a WitMotion sensor over BLE (WT901BLE, WT9011DCL), little-endian.
///
/// Three kinds are known: 0x61, motion (20 bytes: 55 61, nine 16-bit integers for acceleration, angular rate, angles);
/// 0x71, the answer to a register's reading (20 bytes: 55 71, the register, eight 16-bit values); 0x50, the chip's time
/// (11 bytes: 55 50, year, month, day, hour, minute, second, milliseconds, checksum). Facts from the maker's protocol and
/// SyncField's profiles.
package enum WitMotionFrame: Sendable, Hashable {
    /// Raw counts: full scale is 16 g, 2000 °/s, 180°.
    case motionCounts([Int16])
    case register(UInt16, [Int16])
    /// Milliseconds since the midnight of the chip's day.
    case time(milliseconds: UInt32)

    package static let motionLength = 20
    package static let registerLength = 20
    package static let timeLength = 11

    /// m/s² for a count: 16 g over 32768.
    package static let acceleration = 16 * 9.80665 / 32_768
    /// rad/s for a count: 2000 °/s over 32768.
    package static let rate = 2000 * Double.pi / 180 / 32_768
    /// Radians for a count: 180° over 32768.
    package static let angle = Double.pi / 32_768

    /// A motion frame from SI values (m/s², rad/s, rad), for an emulator; saturates.
    package static func motion(accelerations: [Double], rates: [Double], angles: [Double]) -> WitMotionFrame {
        let scaled =
            accelerations.map { $0 / acceleration } + rates.map { $0 / rate } + angles.map { $0 / angle }
        return .motionCounts(scaled.map { Int16(clamping: Int($0.rounded())) })
    }

    /// Three accelerations in m/s², three rates in rad/s, three angles in rad; nil for another kind.
    package var values: [Double]? {
        guard case .motionCounts(let counts) = self else { return nil }
        return counts.enumerated().map { index, count in
            Double(count) * (index < 3 ? Self.acceleration : index < 6 ? Self.rate : Self.angle)
        }
    }

    /// The frame as the sensor sends it.
    package var bytes: [UInt8] {
        switch self {
        case .motionCounts(let counts): return [0x55, 0x61] + Self.littleEndian(counts)
        case .register(let register, let values):
            return [0x55, 0x71, UInt8(truncatingIfNeeded: register), UInt8(register >> 8)] + Self.littleEndian(values)
        case .time(let milliseconds):
            let seconds = milliseconds / 1000
            let (rest, hours) = (UInt16(milliseconds % 1000), seconds / 3600 % 24)
            let body: [UInt8] = [
                0x55, 0x50, 26, 1, 1, UInt8(hours), UInt8(seconds / 60 % 60), UInt8(seconds % 60),
                UInt8(truncatingIfNeeded: rest), UInt8(rest >> 8),
            ]
            return body + [body.reduce(0, &+)]
        }
    }

    private static func littleEndian(_ values: [Int16]) -> [UInt8] {
        values.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    }
}

/// Finds WitMotion's frames in notifications, which may hold several, and pieces of some.
///
/// Pure.
package struct WitMotionDecoder: Sendable {
    /// Bytes that belonged to no frame.
    package private(set) var skipped: Int64 = 0
    private var rest: [UInt8] = []

    package init() {}

    /// Forgets the piece of a frame: the link was interrupted.
    package mutating func restart() { rest.removeAll() }

    package mutating func take(_ bytes: [UInt8]) -> [WitMotionFrame] {
        rest += bytes
        var frames: [WitMotionFrame] = []
        var place = 0
        while place < rest.count {
            guard rest[place] == 0x55 else {
                skip(&place)
                continue
            }
            guard place + 1 < rest.count else { break }
            guard let length = Self.length(rest[place + 1]) else {
                skip(&place)
                continue
            }
            guard place + length <= rest.count else { break }
            if let frame = Self.frame(rest[place..<(place + length)]) {
                frames.append(frame)
                place += length
            } else {
                skip(&place)
            }
        }
        rest.removeFirst(place)
        return frames
    }

    private mutating func skip(_ place: inout Int) {
        place += 1
        skipped += 1
    }

    private static func length(_ kind: UInt8) -> Int? {
        switch kind {
        case 0x61: WitMotionFrame.motionLength
        case 0x71: WitMotionFrame.registerLength
        case 0x50: WitMotionFrame.timeLength
        default: nil
        }
    }

    private static func frame(_ bytes: ArraySlice<UInt8>) -> WitMotionFrame? {
        let bytes = Array(bytes)
        switch bytes[1] {
        case 0x61: return .motionCounts(integers(bytes, from: 2))
        case 0x71: return .register(UInt16(bytes[2]) | UInt16(bytes[3]) << 8, integers(bytes, from: 4))
        default:
            guard bytes.dropLast().reduce(0, &+) == bytes[10], bytes[5] < 24, bytes[6] < 60, bytes[7] < 60 else {
                return nil
            }
            let milliseconds = UInt32(bytes[8]) | UInt32(bytes[9]) << 8
            guard milliseconds < 1000 else { return nil }
            let seconds = UInt32(bytes[5]) * 3600 + UInt32(bytes[6]) * 60 + UInt32(bytes[7])
            return .time(milliseconds: seconds * 1000 + milliseconds)
        }
    }

    private static func integers(_ bytes: [UInt8], from start: Int) -> [Int16] {
        stride(from: start, to: bytes.count - 1, by: 2).map {
            Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
        }
    }
}
