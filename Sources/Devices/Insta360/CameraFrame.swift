/// The envelope of everything that goes over the camera's two characteristics.
///
/// `FF`, direction (07 to the camera, 06 from it), kind (40 a message, 41 the handshake), the length of the inside as
/// a little-endian u16, the inside, and the CRC-16/MODBUS of all before it, little-endian.
package struct CameraFrame: Sendable, Hashable {
    package enum Direction: UInt8, Sendable { case toCamera = 0x07, fromCamera = 0x06 }

    package enum Kind: Sendable, Hashable {
        case message, handshake, other(UInt8)

        package init(_ byte: UInt8) {
            switch byte {
            case 0x40: self = .message
            case 0x41: self = .handshake
            default: self = .other(byte)
            }
        }

        package var byte: UInt8 {
            switch self {
            case .message: 0x40
            case .handshake: 0x41
            case .other(let byte): byte
            }
        }
    }

    package static let marker: UInt8 = 0xFF
    static let headSize = 5
    static let overhead = 7
    /// The camera's own limit for the inside.
    package static let largestInside = 495

    package var direction: Direction
    package var kind: Kind
    package var inside: [UInt8]

    package init(_ direction: Direction, _ kind: Kind, _ inside: [UInt8]) {
        self.direction = direction
        self.kind = kind
        self.inside = inside
    }

    /// Nil when the inside is larger than the camera takes.
    package var bytes: [UInt8]? {
        guard inside.count <= Self.largestInside else { return nil }
        let size = UInt16(inside.count)
        let body = [Self.marker, direction.rawValue, kind.byte, UInt8(size & 0xFF), UInt8(size >> 8)] + inside
        let crc = ModbusCRC.of(body)
        return body + [UInt8(crc & 0xFF), UInt8(crc >> 8)]
    }
}

/// Puts frames together from notifications, which may hold a part of one or several.
///
/// Pure. After a bad length or CRC it looks for the next marker; what it passes over is counted.
package struct CameraFrameReader: Sendable {
    private var buffer: [UInt8] = []
    /// Bytes that belonged to no frame.
    package private(set) var strayBytes: Int64 = 0
    /// Frames with a wrong CRC.
    package private(set) var damagedFrames: Int64 = 0

    package init() {}

    /// The frames that are whole with these bytes.
    package mutating func take(_ bytes: [UInt8]) -> [CameraFrame] {
        buffer += bytes
        var frames: [CameraFrame] = []
        var start = 0
        while start < buffer.count {
            switch parse(buffer[start...]) {
            case .frame(let frame, let size):
                frames.append(frame)
                start += size
            case .incomplete:
                buffer.removeFirst(start)
                return frames
            case .wrong:
                start += 1
                strayBytes &+= 1
            }
        }
        buffer.removeAll(keepingCapacity: true)
        return frames
    }

    /// Forgets a frame that was begun; a new link begins with a new frame.
    package mutating func reset() { buffer.removeAll(keepingCapacity: true) }

    private enum Finding {
        case frame(CameraFrame, size: Int)
        case incomplete, wrong
    }

    private mutating func parse(_ bytes: ArraySlice<UInt8>) -> Finding {
        let first = bytes.startIndex
        guard bytes[first] == CameraFrame.marker else { return .wrong }
        guard bytes.count >= CameraFrame.headSize else {
            guard bytes.count < 2 || CameraFrame.Direction(rawValue: bytes[first + 1]) != nil else { return .wrong }
            return .incomplete
        }
        guard let direction = CameraFrame.Direction(rawValue: bytes[first + 1]) else { return .wrong }
        let size = Int(bytes[first + 3]) | Int(bytes[first + 4]) << 8
        guard size <= CameraFrame.largestInside else { return .wrong }
        let whole = size + CameraFrame.overhead
        guard bytes.count >= whole else { return .incomplete }
        let end = first + whole
        let crc = UInt16(bytes[end - 2]) | UInt16(bytes[end - 1]) << 8
        guard ModbusCRC.of(bytes[first..<(end - 2)]) == crc else {
            damagedFrames &+= 1
            return .wrong
        }
        let inside = Array(bytes[(first + CameraFrame.headSize)..<(end - 2)])
        return .frame(CameraFrame(direction, CameraFrame.Kind(bytes[first + 2]), inside), size: whole)
    }
}
