internal import Episode
internal import Platform

/// The stamps of one stream, sorted by time.
package struct SampleRows: Sendable {
    /// Frame numbers as the file has them; when they don't rise with time, the places in time order.
    package var frames: [Int64]
    /// ns of the host's clock.
    package var times: [Int64]
    /// The names of the clocks in the rows; empty when no row names one.
    package var clockDomains: Set<String> = []
    /// Whether a broken last line was left out, as a crash leaves it.
    package var isTorn = false
    /// Rows that stood before an earlier one.
    package var disorder = 0
    package var framesAreCounted = false

    init(frames: [Int64], times: [Int64]) { (self.frames, self.times) = (frames, times) }

    /// The frames of a clip on its own time line.
    init(clip times: [Int64]) {
        self.init(frames: times.indices.map { Int64($0) }, times: times)
        framesAreCounted = true
    }

    /// One sentence that begins as the original's does: "Sensor load failed for imu: 'capture_ns'".
    package struct LoadError: Error, Sendable, CustomStringConvertible { package let description: String }

    /// Rows above this don't fit into the memory of a small machine.
    package static let limit = 50_000_000

    /// Stamps beyond ±2^62 ns (146 years) are no times, and their differences couldn't be computed.
    package static let farthest: Int64 = 1 << 62

    /// Reads a `.timestamps.jsonl` or a sensor's `.jsonl`.
    package static func load(_ path: String, stream: AlignmentStream) throws(LoadError) -> SampleRows {
        let name = FilePath.name(of: path)
        let head = "\(stream.isSensor ? "Sensor" : "Timestamps") load failed for \(stream.id): "
        var rows = SampleRows(frames: [], times: [])
        var torn: Int?
        do {
            let tooLong = try LineReader.forEachLine(path) { (line, number, isWhole) throws(LoadError) in
                if let torn {
                    throw LoadError(description: "\(head)line \(torn) of \(name) isn't a JSON object; repair the file")
                }
                if try !rows.append(line, "\(head)", "line \(number) of \(name)", isWhole) { torn = number }
            }
            if let tooLong {
                throw LoadError(
                    description: "\(head)line \(tooLong) of \(name) is longer than \(LineReader.longestLine) bytes")
            }
        } catch let error as LoadError {
            throw error
        } catch {
            throw LoadError(description: "\(head)\(error); send the file again")
        }
        // A broken line is forgiven at the end alone, and there only.
        rows.isTorn = torn != nil
        guard !rows.times.isEmpty else {
            throw LoadError(description: "\(head)\(name) has no row; leave the stream out or send its rows")
        }
        rows.sort()
        return rows
    }

    /// Reads rows of any dialect that exists, forgiving what a crash or another program's habits left in them.
    static func read(_ path: String, stream: AlignmentStream) throws -> SampleRows {
        var rows = SampleRows(frames: [], times: [])
        let report = try RowFile.read(path) { row in
            guard row.capture.magnitude < farthest.magnitude, rows.times.count < limit else { return }
            if let last = rows.times.last, row.capture < last { rows.disorder += 1 }
            rows.times.append(row.capture)
            rows.frames.append(row.frame ?? Int64(rows.frames.count))
            if row.frame == nil { rows.framesAreCounted = true }
        }
        guard !rows.times.isEmpty else {
            throw LoadError(description: "stream '\(stream.id)': there is no row in \(FilePath.name(of: path))")
        }
        rows.isTorn = report.isTorn
        rows.clockDomains = Set(report.clockDomains)
        rows.sort()
        return rows
    }

    /// False when the line isn't an object.
    private mutating func append(_ line: UnsafeRawBufferPointer, _ head: String, _ place: String, _ isWhole: Bool)
        throws(LoadError) -> Bool
    {
        guard let row = RowScan.members(["capture_ns", "frame_number", "clock_domain"], of: line) else { return false }
        switch row["capture_ns"] {
        case .integer(let time) where time.magnitude < SampleRows.farthest.magnitude:
            if let last = times.last, time < last { disorder += 1 }
            times.append(time)
        case nil:
            throw LoadError(
                description:
                    "\(head)'capture_ns' is missing in \(place); write it in each row, in ns of the host's clock")
        default:
            throw LoadError(description: "\(head)'capture_ns' in \(place) isn't a whole number of ns below 2^62")
        }
        guard times.count <= SampleRows.limit else {
            throw LoadError(description: "\(head)there are more than \(SampleRows.limit) rows; split the take")
        }
        switch row["frame_number"] {
        case .integer(let frame): frames.append(frame)
        default:
            frames.append(Int64(frames.count))
            framesAreCounted = true
        }
        if case .text(let domain) = row["clock_domain"], clockDomains.count < 16 { clockDomains.insert(domain) }
        return true
    }

    /// Brings rows into the order of time, and numbers them anew when their numbers contradict it.
    mutating func sort() {
        if disorder > 0 {
            let order = times.indices.sorted { (times[$0], frames[$0], $0) < (times[$1], frames[$1], $1) }
            let (oldFrames, oldTimes) = (frames, times)
            frames = order.map { oldFrames[$0] }
            times = order.map { oldTimes[$0] }
        }
        let rises = frames.first ?? 0 >= 0 && zip(frames, frames.dropFirst()).allSatisfy { $0 < $1 }
        if !rises {
            frames = times.indices.map { Int64($0) }
            framesAreCounted = true
        }
    }
}

/// A stream with its rows.
package struct LoadedStream: Sendable {
    package let stream: AlignmentStream
    package let rows: SampleRows

    package init(stream: AlignmentStream, rows: SampleRows) { (self.stream, self.rows) = (stream, rows) }
}
