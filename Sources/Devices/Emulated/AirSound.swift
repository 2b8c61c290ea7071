internal import Platform
package import Protocol
package import Timing

/// One sound in the emulated room, as a speaker put it there.
///
/// As a file, little-endian: magic, boot identity (32 ASCII digits), start in ns of room time (Int64), rate (UInt32),
/// number of samples (UInt32), x y z in metres (3 × Float64), length of the host's name (UInt16), the name, samples
/// (Float32), SHA-256 of all before it (64 ASCII digits).
package struct AirSound: Sendable, Hashable {
    /// No sound is longer than this, samples: 20 s at 192 kHz.
    package static let mostSamples = 20 * 192_000
    static let legalRates = 8_000...192_000
    /// Metres from the room's origin, on each axis.
    static let farthest = 10_000.0
    private static let magic = Array("DOWNAIR1".utf8)
    private static let digestLength = 64
    /// A whole file is never larger.
    static let mostBytes = mostSamples * 4 + 4096

    package var bootID: String
    /// When the first sample left.
    package var start: Timestamp<RoomTime>
    /// Samples a second.
    package var rate: Int
    /// Metres.
    package var position: [Double]
    /// The host that played it.
    package var host: HostID
    /// −1…1.
    package var samples: [Float]

    package init(
        start: Timestamp<RoomTime>, rate: Int, position: [Double], host: HostID, samples: [Float],
        bootID: String = RoomClock.bootID
    ) {
        self.bootID = bootID
        self.start = start
        self.rate = rate
        self.position = position
        self.host = host
        self.samples = samples
    }

    /// When the last sample has left.
    package var end: Timestamp<RoomTime> { start + .seconds(Double(samples.count) / Double(rate)) }

    package func encoded() -> [UInt8] {
        var bytes = Self.magic
        bytes.reserveCapacity(samples.count * 4 + 256)
        bytes += Array(bootID.utf8.prefix(32)) + [UInt8](repeating: 0x30, count: max(0, 32 - bootID.utf8.count))
        Self.append(UInt64(bitPattern: start.nanoseconds), to: &bytes)
        Self.append(UInt32(clamping: rate), to: &bytes)
        Self.append(UInt32(clamping: samples.count), to: &bytes)
        for axis in 0..<3 { Self.append(position.indices.contains(axis) ? position[axis].bitPattern : 0, to: &bytes) }
        let name = Array(host.rawValue.utf8)
        Self.append(UInt16(clamping: name.count), to: &bytes)
        bytes += name
        samples.withUnsafeBytes { bytes.append(contentsOf: $0) }
        bytes += Array(SHA256.of(bytes).utf8)
        return bytes
    }

    /// Why a file is no sound.
    package struct Malformed: Error, CustomStringConvertible {
        package let description: String
    }

    package init(parsing bytes: [UInt8]) throws(Malformed) {
        guard bytes.count > Self.digestLength, bytes.starts(with: Self.magic) else {
            throw Malformed(description: "it isn't a sound of an emulated room")
        }
        let body = Array(bytes.dropLast(Self.digestLength))
        guard Array(SHA256.of(body).utf8)[...] == bytes.suffix(Self.digestLength) else {
            throw Malformed(description: "its checksum is wrong")
        }
        var reader = LittleEndianReader(body.dropFirst(Self.magic.count))
        guard let boot = reader.take(32), let start = reader.integer(UInt64.self),
            let rate = reader.integer(UInt32.self), let count = reader.integer(UInt32.self),
            let x = reader.integer(UInt64.self), let y = reader.integer(UInt64.self),
            let z = reader.integer(UInt64.self), let nameLength = reader.integer(UInt16.self),
            let name = reader.take(Int(nameLength)), let host = HostID(rawValue: String(decoding: name, as: UTF8.self))
        else { throw Malformed(description: "its header is cut or names no host") }
        let position = [x, y, z].map { Double(bitPattern: $0) }
        guard Self.legalRates.contains(Int(rate)), count <= UInt32(Self.mostSamples), start <= UInt64(Int64.max / 2),
            position.allSatisfy({ $0.isFinite && abs($0) <= Self.farthest }), reader.rest.count == Int(count) * 4
        else { throw Malformed(description: "its header holds figures out of range") }
        var samples = [Float](repeating: 0, count: Int(count))
        samples.withUnsafeMutableBytes { $0.copyBytes(from: reader.rest) }
        guard samples.allSatisfy({ $0.isFinite }) else { throw Malformed(description: "a sample isn't a number") }
        self.init(
            start: Timestamp(nanoseconds: Int64(start)), rate: Int(rate), position: position, host: host,
            samples: samples, bootID: String(decoding: boot, as: UTF8.self))
    }

    private static func append<T: FixedWidthInteger>(_ value: T, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Takes fields from the front of bytes; nil when they run out.
private struct LittleEndianReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func integer<T: FixedWidthInteger>(_ type: T.Type) -> T? {
        take(MemoryLayout<T>.size)?.reversed().reduce(T.zero) { $0 << 8 | T(truncatingIfNeeded: $1) }
    }
}
