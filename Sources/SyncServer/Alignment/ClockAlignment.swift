internal import Platform
internal import Protocol

/// Aligns by the series of clock mappings that the coordinator measured, `clock_sync.jsonl`.
///
/// A row that counts has `host_id`, `reference_ns` (common clock), `offset_ns` (host minus common), and may have `skew`,
/// `bound_ns` and `skew_bound`; the members may also be inside of `mapping`. Other rows are passed over.
struct ClockSeriesAlignment: AlignmentMethod {
    /// More rows than this for a job aren't kept; it is a row a second for 16 hosts and 17 hours.
    static let limit = 1_000_000

    func align(_ input: AlignmentInput) -> AlignmentAttempt {
        guard let path = input.clockSeries else { return .impossible("no clock_sync.jsonl was given") }
        var knots: [String: [HostTimeline.Knot]] = [:]
        var count = 0
        do {
            let tooLong = try LineReader.forEachLine(path) { (line, _, _) in
                guard count < ClockSeriesAlignment.limit else { return }
                guard let row = try? JSONText.decode(JSONValue.self, from: Array(line)),
                    let host = ClockKnot.host(row), let knot = ClockKnot.read(row)
                else { return }
                knots[host, default: []].append(knot)
                count += 1
            }
            if let tooLong { return .impossible("line \(tooLong) of clock_sync.jsonl is too long") }
        } catch {
            return .impossible("clock_sync.jsonl can't be read (\(error))")
        }
        return ClockKnot.alignment(method: "clock_series", input: input, knots: knots, source: "clock_sync.jsonl")
    }
}

/// Aligns by the mapping of each host in the merged `manifest.json`.
///
/// It is read from `hosts` (a list of objects with `host_id`, or an object by host) in `clock_mapping` or `clock`, or
/// from `clock_mapping` at the top, an object by host.
struct ClockMappingAlignment: AlignmentMethod {
    func align(_ input: AlignmentInput) -> AlignmentAttempt {
        guard let path = input.manifest else { return .impossible("no manifest.json was given") }
        let manifest: JSONValue
        do { manifest = try JSONText.decode(JSONValue.self, from: try Files.read(path, limit: 256 << 20)) } catch {
            return .impossible("manifest.json can't be read (\(error))")
        }
        var knots: [String: [HostTimeline.Knot]] = [:]
        func add(_ host: String?, _ value: JSONValue?) {
            guard let host, let value, let knot = ClockKnot.read(value) else { return }
            knots[host, default: []].append(knot)
        }
        for host in manifest["hosts"]?.array ?? [] {
            add(ClockKnot.host(host), host["clock_mapping"] ?? host["clock"])
        }
        for (host, value) in manifest["hosts"]?.object ?? [:] { add(host, value["clock_mapping"] ?? value["clock"]) }
        for (host, value) in manifest["clock_mapping"]?.object ?? [:] { add(host, value) }
        return ClockKnot.alignment(method: "clock_mapping", input: input, knots: knots, source: "manifest.json")
    }
}

/// A clock mapping as JSON has it, also with the plain names of `ClockMapping`'s properties.
enum ClockKnot {
    static func host(_ value: JSONValue) -> String? { value["host_id"]?.string ?? value["host"]?.string }

    static func read(_ outer: JSONValue) -> HostTimeline.Knot? {
        let value = outer["mapping"] ?? outer
        func whole(_ names: String...) -> Int64? {
            names.compactMap { value[$0]?.integer }.first { $0.magnitude < SampleRows.farthest.magnitude }
        }
        func ratio(_ name: String, _ ppm: String, _ plain: String) -> Double {
            value[name]?.double ?? value[plain]?.double ?? (value[ppm]?.double ?? 0) * 1e-6
        }
        guard let reference = whole("reference_ns", "rig_ns", "reference"), let offset = whole("offset_ns", "offset")
        else { return nil }
        let (host, overflow) = reference.addingReportingOverflow(offset)
        guard !overflow, host.magnitude < SampleRows.farthest.magnitude else { return nil }
        return HostTimeline.Knot(
            host: host, offset: offset, skew: ratio("skew", "skew_ppm", "skew"),
            bound: whole("bound_ns", "bound").flatMap { $0 < 0 ? nil : $0 },
            skewBound: ratio("skew_bound", "skew_bound_ppm", "skewBound").magnitude)
    }

    static func alignment(
        method: String, input: AlignmentInput, knots: [String: [HostTimeline.Knot]], source: String
    ) -> AlignmentAttempt {
        var timelines: [String: HostTimeline] = [:]
        for host in input.hosts {
            guard let own = knots[host] else { return .impossible("\(source) has no clock mapping of \(host)") }
            guard let timeline = HostTimeline(own) else {
                return .impossible("the clock mappings of \(host) in \(source) contradict each other")
            }
            timelines[host] = timeline
        }
        return .aligned(Alignment(method: method, timelines: timelines))
    }
}
