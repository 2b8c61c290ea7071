internal import Glibc
internal import Platform

/// Reads a file line by line with bounded memory.
struct LineReader {
    /// A row of ours is some hundred bytes; a line above this is no row.
    static let longestLine = 1 << 20

    /// Calls `body` with each line that isn't blank, its number from 1, and whether it ended with a line feed.
    ///
    /// A byte order mark and carriage returns are taken off. Returns the number of a line that is too long, where
    /// reading ended.
    static func forEachLine<Failure: Error>(
        _ path: String, _ body: (UnsafeRawBufferPointer, Int, Bool) throws(Failure) -> Void
    ) throws -> Int? {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        var rest: [UInt8] = []
        var number = 0
        var isFirst = true
        while true {
            let part: [UInt8]
            do { part = try file.read(upTo: 1 << 18) } catch { throw SystemError(error, "reading \(path)") }
            if part.isEmpty { break }
            rest += part
            if isFirst {
                if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest.removeFirst(3) }
                isFirst = false
            }
            var start = 0
            try rest.withUnsafeBytes { bytes in
                while let base = bytes.baseAddress,
                    let end = memchr(base + start, 10, bytes.count - start).map({
                        $0 - UnsafeMutableRawPointer(mutating: base)
                    })
                {
                    number += 1
                    try visit(bytes, start..<end, number, true, body)
                    start = end + 1
                }
            }
            rest.removeFirst(start)
            if rest.count > longestLine { return number + 1 }
        }
        try rest.withUnsafeBytes { try visit($0, 0..<$0.count, number + 1, false, body) }
        return nil
    }

    private static func visit<Failure: Error>(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ number: Int, _ isWhole: Bool,
        _ body: (UnsafeRawBufferPointer, Int, Bool) throws(Failure) -> Void
    ) throws {
        var range = range
        while let last = range.last, bytes[last] == 13 || bytes[last] == 32 { range.removeLast() }
        if !range.isEmpty { try body(UnsafeRawBufferPointer(rebasing: bytes[range]), number, isWhole) }
    }
}
