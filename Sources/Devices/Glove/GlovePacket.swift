/// Reads the notifications of a glove; all numbers are little-endian.
///
///     legacy    count u16, t µs u32; count × 5 × u16
///     schema 4  count u8, flags u8, t µs u32; count × (80 × u16, [8 × i16, ok u8]), [8 × i16, ok u8]
///     schema 5  count u8, flags u8, sequence u32, t µs u32; count × (dt µs u16, 120 packed bytes, 6 × i16)
///     schema 6  the same header; count × (dt µs u16, 120 packed bytes, 6 × i16, 3 × i16, dt of these µs i16)
///
/// Packed are two values of 12 bits in three bytes, the high ones first.
package enum GlovePacket {
    package enum Malformed: Error, Sendable, Hashable, CustomStringConvertible {
        /// Bytes that are there and bytes that would be needed.
        case sizeMismatch(Int, needed: Int)
        case unsupportedFraming(flags: UInt8)

        package var description: String {
            switch self {
            case .sizeMismatch(let size, let needed): "a packet of \(size) bytes, where \(needed) are needed"
            case .unsupportedFraming(let flags): "a packet of an unknown kind (flags 0x\(String(flags, radix: 16)))"
            }
        }
    }

    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        package static let imuPerSample = Flags(rawValue: 0x01)
        package static let imuPerPacket = Flags(rawValue: 0x02)
        package static let packed5 = Flags(rawValue: 0x04)
        package static let hasMag = Flags(rawValue: 0x08)
        package static let packed6 = Flags(rawValue: 0x10)
    }

    /// Time of an inertial sample that the glove couldn't tell: the ends of the range.
    private static let staleTimes: Set<Int16> = [.min, .max]
    private static let microsecondsPerSecond = 1e6

    /// All readings of a notification, the samples oldest first; none of an empty packet.
    ///
    /// The kind is told by the flags of the packet, and only for the oldest gloves by their configuration. A cut-off
    /// inertial block at the end is left out; the taxels of all samples must be whole.
    package static func readings(
        _ bytes: [UInt8], _ configuration: GloveConfiguration
    ) throws(Malformed) -> [GloveReading] {
        if configuration.isLegacy { return try legacy(bytes, configuration) }
        guard bytes.count >= 2 else { throw .sizeMismatch(bytes.count, needed: 2) }
        let flags = Flags(rawValue: bytes[1])
        if flags.contains(.packed6) { return try packed(bytes, flags, configuration, isSix: true) }
        if flags.contains(.packed5) { return try packed(bytes, flags, configuration, isSix: false) }
        guard configuration.schema == 4 else { throw .unsupportedFraming(flags: bytes[1]) }
        return try four(bytes, flags, configuration)
    }

    // MARK: Kinds

    private static func packed(
        _ bytes: [UInt8], _ flags: Flags, _ configuration: GloveConfiguration, isSix: Bool
    ) throws(Malformed) -> [GloveReading] {
        var reader = ByteReader(bytes)
        guard let count = reader.u8(), reader.u8() != nil, let first = reader.u32(), let base = reader.u32() else {
            throw .sizeMismatch(bytes.count, needed: 10)
        }
        let values = configuration.valuesPerSample
        let packedSize = (values * 3 + 1) / 2
        let stride = 2 + packedSize + (isSix ? 20 : 12)
        var readings: [GloveReading] = []
        readings.reserveCapacity(Int(count) * 3)
        for index in 0..<UInt32(count) {
            guard let offset = reader.u16(), let raw = reader.bytes(packedSize) else {
                throw .sizeMismatch(bytes.count, needed: 10 + Int(count) * stride)
            }
            let (sequence, time) = (first &+ index, base &+ UInt32(offset))
            readings.append(
                GloveReading(.tactile, sequence: sequence, counter: time, values: unpack(raw, count: values)))
            guard let imu = numbers(6, &reader) else { continue }
            guard isSix else {
                readings.append(GloveReading(.imu, sequence: sequence, counter: time, values: imu))
                continue
            }
            guard let mag = numbers(3, &reader), let shift = reader.i16() else { continue }
            // Neither is fresh when the glove can't tell its time.
            guard !staleTimes.contains(shift) else { continue }
            let moment = UInt32(truncatingIfNeeded: Int64(time) + Int64(shift))
            readings.append(GloveReading(.imu, sequence: sequence, counter: moment, values: imu))
            if flags.contains(.hasMag) {
                readings.append(GloveReading(.mag, sequence: sequence, counter: moment, values: mag))
            }
        }
        return readings
    }

    private static func four(
        _ bytes: [UInt8], _ flags: Flags, _ configuration: GloveConfiguration
    ) throws(Malformed) -> [GloveReading] {
        var reader = ByteReader(bytes)
        guard let count = reader.u8(), reader.u8() != nil, let base = reader.u32() else {
            throw .sizeMismatch(bytes.count, needed: 6)
        }
        let values = configuration.valuesPerSample
        let stride = values * 2 + (flags.contains(.imuPerSample) ? 17 : 0)
        var readings: [GloveReading] = []
        for index in 0..<Int(count) {
            guard let taxels = counts(values, &reader) else {
                throw .sizeMismatch(bytes.count, needed: 6 + Int(count) * stride)
            }
            let time = base &+ step(index, configuration.rate)
            readings.append(GloveReading(.tactile, sequence: nil, counter: time, values: taxels))
            if flags.contains(.imuPerSample), let imu = inertial(&reader) {
                readings.append(GloveReading(.imu, sequence: nil, counter: time, values: imu))
            }
        }
        if flags.contains(.imuPerPacket), !flags.contains(.imuPerSample), count > 0, let imu = inertial(&reader) {
            let time = base &+ step(Int(count) - 1, configuration.rate)
            readings.append(GloveReading(.imu, sequence: nil, counter: time, values: imu))
        }
        return readings
    }

    private static func legacy(
        _ bytes: [UInt8], _ configuration: GloveConfiguration
    ) throws(Malformed) -> [GloveReading] {
        var reader = ByteReader(bytes)
        guard let count = reader.u16(), let base = reader.u32() else { throw .sizeMismatch(bytes.count, needed: 6) }
        let needed = 6 + Int(count) * 10
        guard bytes.count == needed else { throw .sizeMismatch(bytes.count, needed: needed) }
        return (0..<Int(count)).compactMap { index in
            counts(5, &reader).map {
                GloveReading(
                    .tactile, sequence: nil, counter: base &+ step(index, configuration.rate), values: $0)
            }
        }
    }

    // MARK: Parts

    /// The time of the sample `index` after the first, µs.
    private static func step(_ index: Int, _ rate: Double) -> UInt32 {
        UInt32(clamping: Int((Double(index) * microsecondsPerSecond / rate).rounded()))
    }

    /// Roll, pitch, three accelerations and three rates, and whether they are right: the six of SyncField's stream.
    private static func inertial(_ reader: inout ByteReader) -> [Int32]? {
        guard let all = numbers(8, &reader), let isGood = reader.u8(), isGood != 0 else { return nil }
        return Array(all[2...])
    }

    private static func numbers(_ count: Int, _ reader: inout ByteReader) -> [Int32]? {
        guard reader.remaining >= 2 * count else { return nil }
        return (0..<count).compactMap { _ in reader.i16().map(Int32.init) }
    }

    private static func counts(_ count: Int, _ reader: inout ByteReader) -> [Int32]? {
        guard reader.remaining >= 2 * count else { return nil }
        return (0..<count).compactMap { _ in reader.u16().map(Int32.init) }
    }

    /// Values of 12 bits, two in three bytes.
    package static func unpack(_ raw: [UInt8], count: Int) -> [Int32] {
        var values: [Int32] = []
        values.reserveCapacity(count + 1)
        var index = 0
        while values.count < count, index + 1 < raw.count {
            values.append(Int32(raw[index]) << 4 | Int32(raw[index + 1]) >> 4)
            if values.count < count, index + 2 < raw.count {
                values.append(Int32(raw[index + 1] & 0x0F) << 8 | Int32(raw[index + 2]))
            }
            index += 3
        }
        return values
    }

    /// The same the other way, for the emulator.
    package static func pack(_ values: [Int32]) -> [UInt8] {
        var raw: [UInt8] = []
        for index in stride(from: 0, to: values.count, by: 2) {
            let even = UInt32(truncatingIfNeeded: values[index]) & 0xFFF
            let odd = index + 1 < values.count ? UInt32(truncatingIfNeeded: values[index + 1]) & 0xFFF : 0
            raw += [UInt8(even >> 4), UInt8((even & 0xF) << 4 | odd >> 8)]
            if index + 1 < values.count { raw.append(UInt8(odd & 0xFF)) }
        }
        return raw
    }
}
