internal import Glibc
internal import Platform

/// Finds where the whole part of a file ends whose writer was killed or whose machine lost its power.
enum TornTail {
    /// How far back a line file is looked at: an unwritten block is at most some megabytes.
    private static let reach: Int64 = 16 << 20

    /// The length of a line file without a last line that isn't whole: no line feed, NUL bytes, or no object.
    static func wholeLength(ofLines path: String) throws -> Int64 {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        do throws(Errno) {
            let size = try file.size()
            let start = max(0, size - reach)
            let tail = try file.read(at: start, count: Int(size - start))
            var end = tail.count
            while end > 0 {
                // The bytes after the last line feed are no whole line.
                guard let feed = tail[..<end].lastIndex(of: 0x0A) else { return start == 0 ? 0 : size }
                let begin = tail[..<feed].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
                if isWhole(tail[begin..<feed]) { return start + Int64(feed + 1) }
                end = feed
            }
            return start
        } catch {
            throw SystemError(error, "reading \(path)")
        }
    }

    private static func isWhole(_ line: ArraySlice<UInt8>) -> Bool {
        guard !line.contains(0) else { return false }
        let text = line.drop { $0 == 0xEF || $0 == 0xBB || $0 == 0xBF || $0 == 0x20 }
        guard let last = text.last(where: { $0 != 0x0D && $0 != 0x20 }) else { return true }
        return text.first == UInt8(ascii: "{") && last == UInt8(ascii: "}")
    }

    /// The length of a fragmented MP4 without a last fragment that isn't whole.
    ///
    /// A fragment is a `moof` box and the `mdat` after it. Nil when the file doesn't begin like an MP4, or isn't
    /// fragmented: then there's nothing that could be kept by cutting.
    static func wholeLength(ofFragments path: String) throws -> Int64? {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        do throws(Errno) {
            let size = try file.size()
            var offset: Int64 = 0
            var whole: Int64?
            while offset + 8 <= size {
                let head = try file.read(at: offset, count: 16)
                guard head.count >= 8 else { break }
                var length = Int64(head[0..<4].reduce(0) { $0 << 8 | UInt64($1) })
                if length == 1, head.count == 16 {
                    length = Int64(clamping: head[8..<16].reduce(0) { $0 << 8 | UInt64($1) })
                }
                let kind = String(decoding: head[4..<8], as: UTF8.self)
                if offset == 0 && kind != "ftyp" { return nil }
                guard length >= 8, length <= size - offset else { break }
                offset += length
                // A box that can stand alone, or the data that completes a fragment.
                if kind == "moov" || (kind != "moof" && whole != nil) { whole = offset }
            }
            return whole
        } catch {
            throw SystemError(error, "reading \(path)")
        }
    }
}

extension FileDescriptor {
    /// Reads at a place; fewer bytes only at the end of the file.
    ///
    /// The corresponding C function is `pread`.
    func read(at offset: Int64, count: Int) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let start = done
            let got = try throwingErrno {
                bytes.withUnsafeMutableBytes {
                    pread(rawValue, $0.baseAddress?.advanced(by: start), count - start, off_t(offset) + off_t(start))
                }
            }
            if got == 0 { break }
            done += got
        }
        return Array(bytes.prefix(done))
    }
}
