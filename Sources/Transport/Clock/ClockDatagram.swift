internal import Protocol
internal import Timing

/// The datagram of a clock exchange: 96 bytes in both directions, integers big-endian.
///
///     offset  length
///          0       4  "DBCK"
///          4       1  layout version, 2
///          5       1  1 = request (coordinator to agent), 2 = answer
///          6       1  bit 0: a daemon steers the host's clock; zero in a request
///          7       1  zero
///          8      16  the coordinator's id
///         24       8  sequence number; it only grows under one key
///     in an answer, and zero in a request:
///         32       8  arrived: host time, ns
///         40       8  answered: host time, ns
///         48       8  CLOCK_MONOTONIC − CLOCK_MONOTONIC_RAW of the host, ns
///         56       4  what that can be wrong by, ns
///         60       4  zero
///         64       8  the sequence number of an earlier answer, or zero
///         72       8  when that really left: host time, ns
///     in both:
///         80      16  first 16 bytes of HMAC-SHA-256 over the 80 bytes before
///
/// The rig's own stamps aren't on the wire: the coordinator keeps them by the sequence number. `answered` is read before
/// the mark is made; when the answer has left, the kernel's send stamp is known, and the next answer carries it. Request
/// and answer are equally long, so the wire is equally slow in both directions, and an agent can't be used to amplify.
struct ClockDatagram: Hashable, Sendable {
    enum Kind: UInt8, Sendable {
        case request = 1
        case answer = 2
    }

    /// When an earlier answer really left.
    struct Departure: Hashable, Sendable {
        var sequence: UInt64 = 0
        var answered: Int64 = 0
    }

    static let magic = Array("DBCK".utf8)
    static let layoutVersion: UInt8 = 2
    static let length = 96
    private static let signedLength = 80

    var kind: Kind
    var coordinator: UniqueID
    var sequence: UInt64
    var arrived: Int64 = 0
    var answered: Int64 = 0
    var discipline = DisciplineReading(difference: .zero, error: .zero, isSteered: false)
    var earlier = Departure()

    init(kind: Kind, coordinator: UniqueID, sequence: UInt64) {
        self.kind = kind
        self.coordinator = coordinator
        self.sequence = sequence
    }

    /// The bytes with their mark.
    func encode(key: DatagramKey) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(Self.length)
        bytes += Self.magic
        bytes += [Self.layoutVersion, kind.rawValue, discipline.isSteered ? 1 : 0, 0]
        bytes += coordinator.bytes
        func append(_ value: UInt64) { withUnsafeBytes(of: value.bigEndian) { bytes += $0 } }
        append(sequence)
        append(UInt64(bitPattern: arrived))
        append(UInt64(bitPattern: answered))
        append(UInt64(bitPattern: discipline.difference.nanoseconds))
        append(UInt64(UInt32(clamping: discipline.error.nanoseconds)) << 32)
        append(earlier.sequence)
        append(UInt64(bitPattern: earlier.answered))
        bytes += [UInt8](repeating: 0, count: DatagramKey.markLength)
        key.sign(&bytes)
        return bytes
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
        guard let kind = Kind(rawValue: bytes[start + 5]), bytes[start + 6] <= 1, bytes[start + 7] == 0 else {
            return nil
        }
        let signed = bytes.prefix(Self.signedLength)
        guard key.isMark(bytes.dropFirst(Self.signedLength), of: signed) else { return nil }
        func integer(_ offset: Int) -> UInt64 {
            bytes[(start + offset)..<(start + offset + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        self.init(kind: kind, coordinator: coordinator, sequence: integer(24))
        arrived = Int64(bitPattern: integer(32))
        answered = Int64(bitPattern: integer(40))
        discipline = DisciplineReading(
            difference: .nanoseconds(Int64(bitPattern: integer(48))),
            error: .nanoseconds(Int64(integer(56) >> 32)), isSteered: bytes[start + 6] == 1)
        earlier = Departure(sequence: integer(64), answered: Int64(bitPattern: integer(72)))
    }
}
