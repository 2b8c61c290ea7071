/// The units of an H.264 or HEVC byte stream with start codes, as cameras deliver it.
struct AnnexB {
    enum Codec {
        case h264, hevc
    }

    /// Whether a picture in it can be decoded without earlier ones.
    private(set) var hasRandomAccess = false
    /// The parameter sets in it, each with a start code, in their order; empty when one kind is missing.
    private(set) var parameterSets: [UInt8] = []
    /// Places of the units, without start codes.
    private let units: [Range<Int>]

    init(_ bytes: UnsafeRawBufferPointer, codec: Codec) {
        units = Self.units(bytes)
        var kinds: Set<UInt8> = []
        var sets: [UInt8] = []
        for unit in units {
            let first = bytes[unit.lowerBound]
            switch codec {
            case .h264:
                let kind = first & 0x1F
                if kind == 5 { hasRandomAccess = true }
                guard kind == 7 || kind == 8 else { continue }
                kinds.insert(kind)
            case .hevc:
                let kind = first >> 1 & 0x3F
                if (16...21).contains(kind) { hasRandomAccess = true }
                guard (32...34).contains(kind) else { continue }
                kinds.insert(kind)
            }
            sets += [0, 0, 0, 1]
            sets += bytes[unit]
        }
        if kinds.count == (codec == .h264 ? 2 : 3) { parameterSets = sets }
    }

    /// The units as an MP4 file has them: each behind its length in four bytes (ISO/IEC 14496-15, 5.3.3).
    func lengthPrefixed(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        output.removeAll(keepingCapacity: true)
        for unit in units {
            Swift.withUnsafeBytes(of: UInt32(clamping: unit.count).bigEndian) { output.append(contentsOf: $0) }
            output.append(contentsOf: bytes[unit])
        }
    }

    /// The places between start codes, without the zeros that end a unit; none is empty.
    static func units(_ bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
        var units: [Range<Int>] = []
        var begin: Int?
        var index = 0
        func close(at end: Int) {
            guard let begin, begin < end else { return }
            var last = end
            while last > begin && bytes[last - 1] == 0 { last -= 1 }
            if last > begin { units.append(begin..<last) }
        }
        while index + 2 < bytes.count {
            if bytes[index + 2] > 1 {
                index += 3
            } else if bytes[index] == 0 && bytes[index + 1] == 0 && bytes[index + 2] == 1 {
                close(at: index)
                begin = index + 3
                index += 3
            } else {
                index += 1
            }
        }
        close(at: bytes.count)
        return units
    }
}
