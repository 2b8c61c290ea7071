internal import Glibc
package import Platform
package import Protocol
package import Timing

/// Whether a JPEG has its beginning and its end.
///
/// Pure. ITU-T T.81, B.1.1.3: FF D8 begins an image and FF D9 ends it. Cameras pad with zeros, and some put a few bytes
/// behind; decoders skip both. A missing Huffman table is usual for MJPEG and no damage.
package enum JPEGForm {
    private static let mostTrailing = 64

    package static func isWhole(_ frame: FrameBytes) -> Bool { frame.withUnsafeBytes(isWhole) }

    private static func isWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 4, bytes[0] == 0xFF, bytes[1] == 0xD8 else { return false }
        var end = bytes.count
        while end > 2, bytes[end - 1] == 0 { end -= 1 }
        let first = max(2, end - Self.mostTrailing)
        return stride(from: end - 2, through: first, by: -1).contains { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xD9 }
    }
}

/// Finds pictures that are those of the frame before, bit by bit: a real sensor's noise never repeats.
package struct FreezeWatch: Sendable {
    private var last: FrameBytes?
    /// Repetitions in a row.
    package private(set) var run: Int64 = 0

    package init() {}

    /// True when this frame is the last one again.
    ///
    /// It costs nothing where the lengths differ, as compressed frames' do, and little where the first bytes do.
    package mutating func repeats(_ bytes: FrameBytes) -> Bool {
        let same = last.map { bytes.count > 0 && bytes.count == $0.count && Self.areEqual(bytes, $0) } ?? false
        run = same ? run + 1 : 0
        last = bytes
        return same
    }

    /// The corresponding C function is `memcmp`.
    private static func areEqual(_ a: FrameBytes, _ b: FrameBytes) -> Bool {
        a.withUnsafeBytes { a in
            b.withUnsafeBytes { b in
                guard let one = a.baseAddress, let two = b.baseAddress else { return false }
                return memcmp(one, two, min(a.count, b.count)) == 0
            }
        }
    }
}

/// Compares the rate at which frames come with the rate that was asked for.
package struct RateWatch: Sendable {
    package enum Finding: Sendable, Hashable {
        /// Frames a second that were measured.
        case slow(Double)
        case asAsked(Double)
    }

    /// Slower than this part of what was asked is told.
    package static let tolerance = 0.95
    private static let window = Interval.seconds(2)
    private let asked: Double
    private var begin: Timestamp<HostTime>?
    private var frames: Int64 = 0
    private var slowWindows = 0
    private var isSlow = false

    package init(asked: Double) { self.asked = asked }

    /// Takes a frame; `lost` ones before it are known, and are no slow camera.
    package mutating func next(_ capture: Timestamp<HostTime>, lost: Int64) -> Finding? {
        guard let begin, asked > 0 else {
            begin = capture
            return nil
        }
        frames = frames &+ 1 &+ max(0, lost)
        let span = capture - begin
        guard span >= max(Self.window, .seconds(10 / asked)) else { return nil }
        let rate = Double(frames) / span.seconds
        self.begin = capture
        frames = 0
        slowWindows = rate < Self.tolerance * asked ? slowWindows + 1 : 0
        // Two windows: one alone may be the camera's own beginning.
        if slowWindows == 2, !isSlow {
            isSlow = true
            return .slow(rate)
        }
        guard isSlow, slowWindows == 0 else { return nil }
        isSlow = false
        return .asAsked(rate)
    }

    /// After a break the time before it doesn't count.
    package mutating func interrupted() {
        begin = nil
        (frames, slowWindows) = (0, 0)
    }
}

/// Tells a compressed stream's encoding from its bytes: cameras and drivers mislabel H.264 and HEVC.
///
/// Pure.
package enum CodecSniffer {
    /// Nil when the bytes don't tell.
    package static func encoding(of frame: FrameBytes) -> VideoFormat.Encoding? { frame.withUnsafeBytes(encoding) }

    private static func encoding(of bytes: UnsafeRawBufferPointer) -> VideoFormat.Encoding? {
        if bytes.count >= 3, bytes[0] == 0xFF, bytes[1] == 0xD8, bytes[2] == 0xFF { return .mjpeg }
        var (avc, hevc) = (false, false)
        for header in headers(bytes) {
            let (first, second) = header
            // Rec. H.264 7.3.1: a zero bit, two bits of nal_ref_idc, five of the type; 7 and 8 are parameter sets and
            // never of no reference.
            if first & 0x80 == 0, first & 0x60 != 0, first & 0x1F == 7 || first & 0x1F == 8 { avc = true }
            // Rec. H.265 7.3.1.2: a zero bit, six of the type, six of the layer (0 here), three of the temporal id
            // plus 1; 32 to 34 are parameter sets and have temporal id 0.
            if first & 0x80 == 0, (32...34).contains(first >> 1), first & 1 == 0, second == 1 { hevc = true }
        }
        switch (avc, hevc) {
        // An HEVC parameter set's first byte (40, 42, 44 hex) is of type 0, 2 or 4 for H.264, never of a parameter set.
        case (false, true): return .hevc
        case (true, false): return .h264
        default: return nil
        }
    }

    /// The two bytes after each start code, in the first 64 KiB: parameter sets come first.
    private static func headers(_ bytes: UnsafeRawBufferPointer) -> [(UInt8, UInt8)] {
        var found: [(UInt8, UInt8)] = []
        var zeros = 0
        let count = min(bytes.count, 1 << 16)
        for index in 0..<count {
            let byte = bytes[index]
            if byte == 1, zeros >= 2, index + 2 < bytes.count { found.append((bytes[index + 1], bytes[index + 2])) }
            zeros = byte == 0 ? zeros + 1 : 0
            if found.count == 32 { break }
        }
        return found
    }
}
