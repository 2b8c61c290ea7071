internal import Glibc
internal import Platform
internal import Protocol

/// Makes a file of rows that a strict reader takes from one that it wouldn't.
///
/// Rows are put in the order of their frames, and of equal frames the first stays; torn and malformed lines and rows
/// from before the recording are left out; SyncField Swift's old keys get their new names. All else of a row stays byte
/// for byte. The source is never touched.
enum RowNormalizer {
    /// Nil when it has too many rows to be held in memory; `limit` is the most rows that are kept.
    static func normalize(_ path: String, report: RowReport, limit: Int64 = .max) throws -> [UInt8]? {
        guard report.rows <= Int64(RowFile.sortLimit), report.bytes <= 1 << 30 else { return nil }
        let all = try Files.read(path)
        var rows: [(frame: Int64, capture: Int64, range: Range<Int>, hasOldKeys: Bool)] = []
        rows.reserveCapacity(Int(clamping: report.rows))
        var scanner = RowScanner()
        try LineReader.read(path) { line in
            guard !line.isTooLong else { return }
            let mark = line.number == 1 && line.bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
            let text = UnsafeRawBufferPointer(rebasing: line.bytes.dropFirst(mark))
            guard case .row(let row) = scanner.scan(text, line: line.number), row.frame != -1 else { return }
            let start = Int(line.offset) + mark
            rows.append(
                (row.frame ?? Int64(rows.count), row.capture, start..<start + text.count, scanner.hasOldKeys))
        }
        // The sort isn't stable: the place in the file decides between equals.
        rows.sort { ($0.frame, $0.range.lowerBound) < ($1.frame, $1.range.lowerBound) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(all.count)
        var lastFrame: Int64?
        var kept: Int64 = 0
        for row in rows where row.frame != lastFrame {
            lastFrame = row.frame
            guard kept < limit else { break }
            kept += 1
            guard row.range.upperBound <= all.count else { continue }
            if row.hasOldKeys {
                try appendRenamed(Array(all[row.range]), to: &bytes)
            } else {
                bytes += all[row.range]
            }
            bytes.append(0x0A)
        }
        return bytes
    }

    private static func appendRenamed(_ line: [UInt8], to bytes: inout [UInt8]) throws {
        guard case .object(var members) = try JSONText.decode(JSONValue.self, from: line) else { return }
        for (old, new) in [("frame", "frame_number"), ("timestamp_ns", "capture_ns")] where members[new] == nil {
            members[new] = members.removeValue(forKey: old)
        }
        bytes.appendJSON(JSONValue.object(members))
    }
}
