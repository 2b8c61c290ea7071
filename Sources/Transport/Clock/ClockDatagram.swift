internal import Protocol

/// The datagram of a clock exchange: 72 bytes in both directions, integers big-endian.
///
///     offset  length
///          0       4  "DBCK"
///          4       1  layout version, 1
///          5       1  1 = request (coordinator to agent), 2 = answer
///          6       2  zero
///          8      16  the coordinator's id
///         24       8  sequence number; it only grows under one key
///         32       8  sent: rig time, ns
///         40       8  arrived: host time, ns; zero in a request
///         48       8  answered: host time, ns; zero in a request
///         56      16  first 16 bytes of HMAC-SHA-256 over the 56 bytes before
///
/// An answer repeats id, sequence number and `sent` of its request. Request and answer are equally long, so the wire is
/// equally slow in both directions, and an agent can't be used to amplify.
struct ClockDatagram: Hashable, Sendable {
    enum Kind: UInt8, Sendable {
        case request = 1
        case answer = 2
    }

    static let magic = Array("DBCK".utf8)
    static let layoutVersion: UInt8 = 1
    static let length = 72
    private static let signedLength = 56

    var kind: Kind
    var coordinator: UniqueID
    var sequence: UInt64
    var sent: Int64
    var arrived: Int64 = 0
    var answered: Int64 = 0

    /// The bytes with their mark.
    func encode(key: DatagramKey) -> [UInt8] {
        var bytes = unsigned()
        key.sign(&bytes)
        return bytes
    }

    /// A stamp in the bytes of a datagram.
    enum Stamp: Int, Sendable {
        case sent = 32
        case arrived = 40
        case answered = 48
    }

    /// Reads the clock, writes it into prepared bytes and signs them: what has to happen between the stamp and the wire,
    /// and nothing else.
    ///
    /// Returns the stamp in ns.
    static func stamp(_ bytes: inout [UInt8], _ stamp: Stamp, now: () -> Int64, key: DatagramKey) -> Int64 {
        precondition(bytes.count == length, "a clock datagram has \(length) bytes")
        let instant = now()
        bytes.withUnsafeMutableBytes {
            $0.storeBytes(of: instant.bigEndian, toByteOffset: stamp.rawValue, as: Int64.self)
        }
        key.sign(&bytes)
        return instant
    }

    /// The bytes with room for the mark.
    func unsigned() -> [UInt8] {
        var bytes = Self.magic
        bytes.reserveCapacity(Self.length)
        bytes += [Self.layoutVersion, kind.rawValue, 0, 0]
        bytes += coordinator.bytes
        for value in [sequence, UInt64(bitPattern: sent), UInt64(bitPattern: arrived), UInt64(bitPattern: answered)] {
            withUnsafeBytes(of: value.bigEndian) { bytes += $0 }
        }
        return bytes + [UInt8](repeating: 0, count: DatagramKey.markLength)
    }

    /// Who says that it is from them; nil when it's no clock datagram of this layout.
    static func claimedCoordinator(_ bytes: ArraySlice<UInt8>) -> UniqueID? {
        guard bytes.count == length, bytes.prefix(4).elementsEqual(magic) else { return nil }
        let start = bytes.startIndex
        guard bytes[start + 4] == layoutVersion else { return nil }
        return UniqueID(bytes: Array(bytes[(start + 8)..<(start + 24)]))
    }

    /// Nil when the layout, the kind or the mark is wrong.
    init?(_ bytes: ArraySlice<UInt8>, key: DatagramKey) {
        guard let coordinator = Self.claimedCoordinator(bytes) else { return nil }
        let start = bytes.startIndex
        guard let kind = Kind(rawValue: bytes[start + 5]), bytes[start + 6] == 0, bytes[start + 7] == 0 else {
            return nil
        }
        let signed = bytes.prefix(Self.signedLength)
        guard key.isMark(bytes.dropFirst(Self.signedLength), of: signed) else { return nil }
        func integer(_ offset: Int) -> UInt64 {
            bytes[(start + offset)..<(start + offset + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        self.init(
            kind: kind, coordinator: coordinator, sequence: integer(24), sent: Int64(bitPattern: integer(32)),
            arrived: Int64(bitPattern: integer(40)), answered: Int64(bitPattern: integer(48)))
    }

    init(
        kind: Kind, coordinator: UniqueID, sequence: UInt64, sent: Int64, arrived: Int64 = 0, answered: Int64 = 0
    ) {
        self.kind = kind
        self.coordinator = coordinator
        self.sequence = sequence
        self.sent = sent
        self.arrived = arrived
        self.answered = answered
    }
}
