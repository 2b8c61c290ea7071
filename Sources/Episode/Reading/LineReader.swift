internal import Glibc
internal import Platform

/// Reads a file line by line with bounded memory, however long it is.
enum LineReader {
    /// A line of the file.
    struct Line {
        /// From 1.
        let number: Int64
        /// Of its first byte in the file.
        let offset: Int64
        /// Without its end: neither the line feed nor a carriage return before it.
        let bytes: UnsafeRawBufferPointer
        let endsWithCarriageReturn: Bool
        /// The file ended before the line did.
        let isTorn: Bool
        /// It is over `limit` bytes long; `bytes` has only its beginning.
        let isTooLong: Bool
    }

    /// Longer lines are no rows of anything that we know.
    static let limit = 1 << 20
    private static let chunk = 256 << 10

    /// Calls `body` for each line; the bytes are valid only during the call.
    static func read(_ path: String, _ body: (Line) throws -> Void) throws {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        var buffer: [UInt8] = []
        var offset: Int64 = 0
        var number: Int64 = 0
        var skipping = false
        while true {
            let part: [UInt8]
            do { part = try file.read(upTo: chunk) } catch { throw SystemError(error, "reading \(path)") }
            if part.isEmpty { break }
            buffer += part
            var start = 0
            try buffer.withUnsafeBytes { all in
                while let end = newline(in: all, from: start) {
                    if skipping {
                        skipping = false
                    } else {
                        number += 1
                        let slice = UnsafeRawBufferPointer(rebasing: all[start..<end])
                        try body(line(slice, number: number, offset: offset, isTorn: false))
                    }
                    offset += Int64(end + 1 - start)
                    start = end + 1
                }
                guard all.count - start > limit else { return }
                if !skipping {
                    number += 1
                    let head = UnsafeRawBufferPointer(rebasing: all[start..<start + limit])
                    try body(
                        Line(
                            number: number, offset: offset, bytes: head, endsWithCarriageReturn: false, isTorn: false,
                            isTooLong: true))
                    skipping = true
                }
                offset += Int64(all.count - start)
                start = all.count
            }
            buffer.removeFirst(start)
        }
        guard !skipping, !buffer.isEmpty else { return }
        try buffer.withUnsafeBytes { rest in
            try body(line(rest, number: number + 1, offset: offset, isTorn: true))
        }
    }

    private static func line(_ bytes: UnsafeRawBufferPointer, number: Int64, offset: Int64, isTorn: Bool) -> Line {
        let hasReturn = bytes.last == 0x0D
        return Line(
            number: number, offset: offset,
            bytes: hasReturn ? UnsafeRawBufferPointer(rebasing: bytes.dropLast()) : bytes,
            endsWithCarriageReturn: hasReturn, isTorn: isTorn, isTooLong: false)
    }

    private static func newline(in all: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < all.count, let base = all.baseAddress,
            let found = memchr(base + start, 0x0A, all.count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}
