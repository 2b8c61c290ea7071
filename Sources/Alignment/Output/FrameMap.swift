internal import Glibc
internal import Platform
internal import Protocol

/// Which sample of every stream belongs to each frame of the primary one: `frame_map.jsonl`.
///
/// The frames are those of the primary stream within the span that all streams cover on the common clock.
package struct FrameMap: Sendable {
    /// What was found on the way.
    struct Facts: Sendable {
        /// The largest distance of a matched sample for each stream, ns.
        var largestDelta: [String: Int64] = [:]
    }

    package struct NoOverlap: Error, CustomStringConvertible { package let description: String }

    let primary: LoadedStream
    /// All streams' stamps on the common clock, by stream id.
    let times: [String: [Int64]]
    /// The places of the primary's rows that are in the map.
    let range: Range<Int>
    private let others: [LoadedStream]

    init(streams: [LoadedStream], alignment: Alignment) throws {
        guard let primary = streams.first(where: \.stream.isPrimary) else {
            throw NoOverlap(description: "no stream is the primary one")
        }
        var times: [String: [Int64]] = [:]
        for loaded in streams {
            let timeline = alignment.timeline(loaded.stream.clock)
            let mapped = loaded.rows.times.map(timeline.common)
            guard mapped.allSatisfy({ $0.magnitude < SampleRows.farthest.magnitude }) else {
                throw NoOverlap(
                    description:
                        "stream '\(loaded.stream.id)': its stamps are far outside of the clock mapping of host "
                        + "'\(loaded.stream.host)'; send the mapping of this take")
            }
            // The mapping bends by at most 1 %, so the order holds but for rounding.
            times[loaded.stream.id] = zip(mapped, mapped.dropFirst()).allSatisfy { $0 <= $1 } ? mapped : mapped.sorted()
        }
        let starts = streams.map { (times[$0.stream.id]?.first ?? .min, $0.stream.id) }
        let ends = streams.map { (times[$0.stream.id]?.last ?? .max, $0.stream.id) }
        guard let (from, latest) = starts.max(by: { $0.0 < $1.0 }), let (to, earliest) = ends.min(by: { $0.0 < $1.0 }),
            let own = times[primary.stream.id]
        else { throw NoOverlap(description: "there is no stream") }
        let first = FrameMap.lowerBound(own) { $0 >= from }
        let last = FrameMap.lowerBound(own) { $0 > to }
        guard first < last else {
            let gap = Double(from) / 1e9 - Double(to) / 1e9
            throw NoOverlap(
                description: from > to
                    ? "the streams don't overlap: '\(latest)' begins \(Decimal9.text(gap)) s after '\(earliest)' ends; "
                        + "leave one of them out or check that they are of one take"
                    : "no frame of the primary stream '\(primary.stream.id)' lies in the span that all streams cover; "
                        + "choose another primary stream")
        }
        self.primary = primary
        self.times = times
        range = first..<last
        others = streams.filter { !$0.stream.isPrimary }
    }

    /// ns from the first to the last frame of the map.
    var span: Int64 {
        guard let own = times[primary.stream.id] else { return 0 }
        return own[range.upperBound - 1] - own[range.lowerBound]
    }

    /// Writes the file, and fsyncs it.
    ///
    /// `progress` is called now and then with the share that is done; what it throws ends the writing.
    func write(to path: String, progress: (Double) throws -> Void) throws -> Facts {
        guard let own = times[primary.stream.id] else { return Facts() }
        var facts = Facts()
        var columns: [(key: [UInt8], places: [Int], times: [Int64], frames: [Int64])] = []
        for loaded in others.sorted(by: { $0.stream.id < $1.stream.id }) {
            guard let times = times[loaded.stream.id], !times.isEmpty else { continue }
            let places = NearestMatcher.match(own[range], to: times)
            let key = try JSONText.encode(JSONValue.string(loaded.stream.id))
            columns.append((key, places, times, loaded.rows.frames))
            facts.largestDelta[loaded.stream.id] =
                zip(places, range).map { abs(times[$0] - own[$1]) }.max() ?? 0
            try progress(0)
        }
        let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC)
        var text: [UInt8] = []
        let origin = own[0]
        for (frame, row) in range.enumerated() {
            text += "{\"frame\":\(frame),\"original_frame\":\(primary.rows.frames[row]),".utf8
            text += "\"primary_time_sec\":\(Decimal9.seconds(own[row] - origin)),\"streams\":{".utf8
            for (index, column) in columns.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                let place = column.places[frame]
                text += column.key
                text += ":{\"frame\":\(column.frames[place]),".utf8
                text += "\"delta_ms\":\(Decimal9.milliseconds(column.times[place] - own[row]))}".utf8
            }
            text += "}}\n".utf8
            if text.count >= 1 << 20 {
                try flush(&text, file, path)
                try progress(Double(frame) / Double(range.count))
            }
        }
        try flush(&text, file, path)
        do { try file.synchronize() } catch { throw SystemError(error, "fsync of \(path)") }
        return facts
    }

    private func flush(_ text: inout [UInt8], _ file: borrowing FileDescriptor, _ path: String) throws {
        do { try file.writeAll(text) } catch { throw SystemError(error, "writing \(path)") }
        text.removeAll(keepingCapacity: true)
    }

    private static func lowerBound(_ values: [Int64], _ holds: (Int64) -> Bool) -> Int {
        var low = 0
        var high = values.count
        while low < high {
            let middle = (low + high) / 2
            if holds(values[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// Whole nanoseconds as exact decimal numbers of larger units.
enum Decimal9 {
    /// Seconds with up to nine digits after the point.
    static func seconds(_ ns: Int64) -> String { text(ns, digits: 9, unit: 1_000_000_000) }

    /// Milliseconds with up to six digits after the point.
    static func milliseconds(_ ns: Int64) -> String { text(ns, digits: 6, unit: 1_000_000) }

    /// A length for a sentence, in milliseconds' steps.
    static func text(_ seconds: Double) -> String {
        seconds.magnitude < 1e9 ? Self.seconds(Int64((seconds * 1000).rounded()) * 1_000_000) : "very many"
    }

    private static func text(_ ns: Int64, digits: Int, unit: UInt64) -> String {
        let sign = ns < 0 ? "-" : ""
        let (whole, rest) = ns.magnitude.quotientAndRemainder(dividingBy: unit)
        var fraction = Array(String(rest).utf8)
        fraction = Array(repeating: UInt8(ascii: "0"), count: digits - fraction.count) + fraction
        while fraction.count > 1 && fraction.last == UInt8(ascii: "0") { fraction.removeLast() }
        return "\(sign)\(whole).\(String(decoding: fraction, as: UTF8.self))"
    }
}
