/// Builds the boxes of an MP4 file in memory; all numbers are big-endian (ISO/IEC 14496-12, 4.2).
struct BoxBuilder {
    private(set) var bytes: [UInt8] = []

    /// Adds a box with what `content` adds to it.
    mutating func box(_ kind: String, _ content: (inout BoxBuilder) -> Void) {
        let start = bytes.count
        add(UInt32(0))
        bytes.append(contentsOf: kind.utf8)
        content(&self)
        patch(UInt32(clamping: bytes.count - start), at: start)
    }

    /// Adds a box with version and flags.
    mutating func fullBox(
        _ kind: String, version: UInt8 = 0, flags: UInt32 = 0, _ content: (inout BoxBuilder) -> Void
    ) {
        box(kind) { builder in
            builder.add(UInt32(version) << 24 | flags & 0xFF_FFFF)
            content(&builder)
        }
    }

    mutating func add(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(bytes more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    mutating func patch(_ value: UInt32, at offset: Int) {
        Swift.withUnsafeBytes(of: value.bigEndian) { source in
            for index in 0..<4 { bytes[offset + index] = source[index] }
        }
    }
}

/// One box that lies in memory, and those in it; nothing is read beyond its end.
struct BoxView {
    let kind: String
    /// Without the head of 8 or 16 bytes.
    let content: ArraySlice<UInt8>
    /// With the head.
    let whole: ArraySlice<UInt8>

    /// The boxes that follow each other in some bytes; what isn't whole at the end is left out.
    static func list(_ bytes: ArraySlice<UInt8>) -> [BoxView] {
        var boxes: [BoxView] = []
        var offset = bytes.startIndex
        while bytes.endIndex - offset >= 8 {
            var head = 8
            var size = Int(clamping: bytes.big(at: offset, 4))
            if size == 1, bytes.endIndex - offset >= 16 {
                size = Int(clamping: bytes.big(at: offset + 8, 8))
                head = 16
            }
            guard size >= head, size <= bytes.endIndex - offset else { break }
            boxes.append(
                BoxView(
                    kind: String(decoding: bytes[offset + 4..<offset + 8], as: UTF8.self),
                    content: bytes[offset + head..<offset + size], whole: bytes[offset..<offset + size]))
            offset += size
        }
        return boxes
    }

    var children: [BoxView] { Self.list(content) }

    func first(_ kind: String) -> BoxView? { children.first { $0.kind == kind } }

    /// The box at the end of a path of kinds.
    func descendant(_ path: String...) -> BoxView? {
        path.reduce(BoxView?.some(self)) { $0?.first($1) }
    }
}

extension Collection where Element == UInt8, Index == Int {
    /// A big-endian number of up to 8 bytes; 0 where it would reach beyond the end.
    func big(at offset: Int, _ count: Int) -> UInt64 {
        guard offset >= startIndex, count <= endIndex - offset else { return 0 }
        var value: UInt64 = 0
        for index in offset..<offset + count { value = value << 8 | UInt64(self[index]) }
        return value
    }
}
