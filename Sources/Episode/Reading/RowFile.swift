internal import Platform

/// What a file of rows has in it, found in one pass with bounded memory.
package struct RowReport: Sendable, Hashable {
    package var bytes: Int64 = 0
    package var rows: Int64 = 0
    /// Rows from before the recording (`frame_number` -1), which don't count.
    package var previewRows: Int64 = 0
    package var malformed: Int64 = 0
    /// The first malformed line and why.
    package var firstMalformed: String?
    /// The last line isn't whole, as after a crash.
    package var isTorn = false
    package var hasByteOrderMark = false
    package var hasCarriageReturns = false
    /// The keys of SyncField Swift up to 0.4, which a sync server refuses.
    package var hasOldKeys = false
    /// Stamps with a point or an exponent: their last digits are lost.
    package var inexactStamps: Int64 = 0
    package var hasChannels = false
    /// At most eight.
    package var clockDomains: [String] = []

    /// The earliest and the latest capture time, ns.
    package var first: Int64?
    package var last: Int64?
    package var lastFrame: Int64?
    /// Rows whose frame or capture time is before that of an earlier line.
    package var disordered: Int64 = 0
    /// Rows that repeat a frame number.
    package var duplicates: Int64 = 0
    /// Frame numbers that are left out between the lowest and the highest.
    package var missingFrames: Int64 = 0
    /// The longest time between two samples, ns, and when it began.
    package var largestGap: Int64 = 0
    package var largestGapStart: Int64?
    /// Rows were too many to be put in order: gaps and duplicates are those of the lines as they stand.
    package var isUnsorted = false

    /// Whether a strict reader can take the file as it is.
    package var isClean: Bool {
        malformed == 0 && !isTorn && !hasByteOrderMark && !hasOldKeys && disordered == 0 && duplicates == 0
            && previewRows == 0
    }

    /// Samples a second between the first and the last.
    package var rate: Double? {
        guard let first, let last, rows > 1 else { return nil }
        let (span, overflow) = last.subtractingReportingOverflow(first)
        guard !overflow, span > 0 else { return nil }
        return Double(rows - 1) / (Double(span) / 1e9)
    }
}

/// Reads `*.timestamps.jsonl` and `<sensor>.jsonl` of any dialect.
package enum RowFile {
    /// Beyond this many rows a file out of order isn't sorted: 16 bytes are needed for each.
    static let sortLimit = 4_000_000

    /// Calls `body` for each row in the order of the file.
    ///
    /// - Throws: `SystemError` when the file can't be read, and what `body` throws. Malformed lines are counted, never
    ///   thrown.
    @discardableResult
    package static func read(_ path: String, _ body: (StampRow) throws -> Void = { _ in }) throws -> RowReport {
        var scan = RowPass()
        try LineReader.read(path) { line in
            if let row = scan.take(line) { try body(row) }
        }
        var report = scan.report
        report.bytes = Files.size(path) ?? 0
        if report.disordered > 0 { try sort(path, &report) }
        return report
    }

    /// Where the line of a row begins, counted from 0 in the order of the file; nil when there are fewer rows.
    static func offset(ofRow index: Int64, in path: String) throws -> Int64? {
        var scan = RowPass()
        var seen: Int64 = 0
        var offset: Int64?
        try LineReader.read(path) { line in
            guard offset == nil, scan.take(line) != nil else { return }
            if seen == index { offset = line.offset }
            seen += 1
        }
        return offset
    }

    /// A second pass, for files out of order: duplicates and gaps are those of the rows in order.
    private static func sort(_ path: String, _ report: inout RowReport) throws {
        guard report.rows <= Int64(sortLimit) else {
            report.isUnsorted = true
            return
        }
        var scan = RowPass()
        var rows: [(frame: Int64, capture: Int64)] = []
        rows.reserveCapacity(Int(report.rows))
        try LineReader.read(path) { line in
            guard let row = scan.take(line), rows.count < sortLimit else { return }
            rows.append((row.frame ?? Int64(rows.count), row.capture))
        }
        rows.sort { $0 < $1 }
        var order = RowOrder()
        for row in rows { order.add(frame: row.frame, capture: row.capture) }
        report.duplicates = order.duplicates
        report.missingFrames = order.missingFrames
        var captures = rows.map(\.capture)
        captures.sort()
        var times = RowOrder()
        for capture in captures { times.add(frame: nil, capture: capture) }
        report.largestGap = times.largestGap
        report.largestGapStart = times.largestGapStart
    }
}

/// One pass over the lines of a file.
private struct RowPass {
    private(set) var report = RowReport()
    private var scanner = RowScanner()
    private var order = RowOrder()
    private var lastDomain: [UInt8] = []

    mutating func take(_ line: LineReader.Line) -> StampRow? {
        var bytes = line.bytes
        if line.number == 1, bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            report.hasByteOrderMark = true
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(3))
        }
        if line.endsWithCarriageReturn { report.hasCarriageReturns = true }
        let outcome =
            line.isTooLong
            ? .malformed("it is over \(LineReader.limit) bytes long") : scanner.scan(bytes, line: line.number)
        switch outcome {
        case .blank: return nil
        case .malformed(let why):
            if line.isTorn {
                report.isTorn = true
            } else {
                report.malformed += 1
                report.firstMalformed = report.firstMalformed ?? "line \(line.number): \(why)"
            }
            return nil
        case .row(let row):
            guard row.frame != -1 else {
                report.previewRows += 1
                return nil
            }
            note(row)
            return row
        }
    }

    private mutating func note(_ row: StampRow) {
        report.rows += 1
        if scanner.hasOldKeys { report.hasOldKeys = true }
        if scanner.isInexact { report.inexactStamps += 1 }
        if row.hasChannels { report.hasChannels = true }
        if scanner.domain != lastDomain {
            lastDomain = scanner.domain
            let text = String(decoding: lastDomain, as: UTF8.self)
            if report.clockDomains.count < 8, !report.clockDomains.contains(text) { report.clockDomains.append(text) }
        }
        order.add(frame: row.frame, capture: row.capture)
        report.first = order.first
        report.last = order.last
        report.lastFrame = order.lastFrame
        report.disordered = order.disordered
        report.duplicates = order.duplicates
        report.missingFrames = order.missingFrames
        report.largestGap = order.largestGap
        report.largestGapStart = order.largestGapStart
    }
}

/// What the order of rows tells; pure.
struct RowOrder {
    private(set) var first: Int64?
    private(set) var last: Int64?
    private(set) var lastFrame: Int64?
    private(set) var disordered: Int64 = 0
    private(set) var duplicates: Int64 = 0
    private(set) var missingFrames: Int64 = 0
    private(set) var largestGap: Int64 = 0
    private(set) var largestGapStart: Int64?

    mutating func add(frame: Int64?, capture: Int64) {
        var isBehind = false
        if let frame {
            if let lastFrame {
                if frame == lastFrame { duplicates += 1 }
                if frame < lastFrame { isBehind = true }
                if frame > lastFrame {
                    let (distance, overflow) = frame.subtractingReportingOverflow(lastFrame)
                    let (sum, full) = missingFrames.addingReportingOverflow(overflow ? .max : distance - 1)
                    missingFrames = full ? .max : sum
                }
            }
            lastFrame = max(frame, lastFrame ?? frame)
        }
        if let last {
            if capture < last { isBehind = true }
            let (gap, overflow) = capture.subtractingReportingOverflow(last)
            if capture > last, overflow || gap > largestGap {
                largestGap = overflow ? .max : gap
                largestGapStart = last
            }
        }
        if isBehind { disordered += 1 }
        first = min(capture, first ?? capture)
        last = max(capture, last ?? capture)
    }
}
