/// Cuts a stream of bytes into lines, and finds its feet again after garbage.
///
/// Pure.
///
/// A line ends with LF, CR or both. What stands before the first end after an opening is the rest of a line whose
/// beginning nobody saw, and is left out; a line that grows beyond the limit is left out with all up to its end.
package struct LineAssembler: Sendable {
    /// Bytes a line may have.
    package static let limit = 4096

    /// Lines that were too long.
    package private(set) var overlong: Int64 = 0

    private var line: [UInt8] = []
    private var skipping = true

    package init() { line.reserveCapacity(Self.limit) }

    /// Forgets the unfinished line: the stream was interrupted.
    package mutating func restart() {
        line.removeAll(keepingCapacity: true)
        skipping = true
    }

    /// Takes bytes in and hands each whole line, without its end, to a closure; empty lines are left out.
    package mutating func take(_ bytes: [UInt8], _ handle: ([UInt8]) -> Void) {
        for byte in bytes {
            if byte == 0x0A || byte == 0x0D {
                if !skipping, !line.isEmpty { handle(line) }
                line.removeAll(keepingCapacity: true)
                skipping = false
            } else if !skipping {
                if line.count < Self.limit {
                    line.append(byte)
                } else {
                    overlong += 1
                    line.removeAll(keepingCapacity: true)
                    skipping = true
                }
            }
        }
    }
}
