internal import Platform
internal import Protocol
internal import Timing

/// Aligns by the series of clock mappings that the coordinator measured, `clock_sync.jsonl`.
///
/// A row has `host_id`, `rig_ns`, `offset_ns` (host minus rig), `skew`, `bound_ns` and `skew_bound`; the last three may
/// be absent, and then no bound is claimed. Other rows are passed over.
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
                    let host = row["host_id"]?.string, let knot = ClockKnot.read(row)
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

/// Aligns by the mapping of each host in the merged `manifest.json`: `hosts[].clock`, from host time to rig time.
struct ClockMappingAlignment: AlignmentMethod {
    /// The part of the manifest that counts here.
    private struct Manifest: Decodable {
        struct Host: Decodable {
            let host: String
            let clock: ClockMapping<HostTime, RigTime>?

            private enum CodingKeys: String, CodingKey {
                case host = "host_id"
                case clock
            }
        }
        let hosts: [Host]
    }

    func align(_ input: AlignmentInput) -> AlignmentAttempt {
        guard let path = input.manifest else { return .impossible("no manifest.json was given") }
        let manifest: Manifest
        do { manifest = try JSONText.decode(Manifest.self, from: try Files.read(path, limit: 256 << 20)) } catch {
            return .impossible("manifest.json has no hosts with their clocks (\(error))")
        }
        var knots: [String: [HostTimeline.Knot]] = [:]
        for host in manifest.hosts {
            if let knot = host.clock.flatMap(ClockKnot.read) { knots[host.host] = [knot] }
        }
        return ClockKnot.alignment(method: "clock_mapping", input: input, knots: knots, source: "manifest.json")
    }
}

/// Clock mappings from the files as knots; nil when a number is no clock's.
enum ClockKnot {
    static func read(_ row: JSONValue) -> HostTimeline.Knot? {
        guard let reference = row["rig_ns"]?.integer, let offset = row["offset_ns"]?.integer else { return nil }
        let (host, overflow) = reference.addingReportingOverflow(offset)
        return overflow
            ? nil
            : checked(
                HostTimeline.Knot(
                    host: host, offset: offset, skew: row["skew"]?.double ?? 0, bound: row["bound_ns"]?.integer,
                    skewBound: row["skew_bound"]?.double))
    }

    static func read(_ mapping: ClockMapping<HostTime, RigTime>) -> HostTimeline.Knot? {
        guard mapping.skew.magnitude < 0.01 else { return nil }
        return checked(
            HostTimeline.Knot(
                host: mapping.reference.nanoseconds, offset: (-mapping.offset).nanoseconds,
                skew: -mapping.skew / (1 + mapping.skew), bound: mapping.bound.nanoseconds,
                skewBound: mapping.skewBound))
    }

    private static func checked(_ knot: HostTimeline.Knot) -> HostTimeline.Knot? {
        let far = SampleRows.farthest.magnitude
        guard knot.host.magnitude < far, knot.offset.magnitude < far, (0..<1 << 60).contains(knot.bound ?? 0),
            (0..<0.01).contains(knot.skewBound ?? 0)
        else { return nil }
        return knot
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
