internal import Platform
internal import Protocol
internal import Timing

/// Aligns by the series of clock mappings that the coordinator measured, `clock_sync.jsonl`.
///
/// A row has `host_id`, `rig_ns`, `offset_ns` (host minus rig), `skew`, `bound_ns` and `skew_bound`; the last three may
/// be absent, and then no bound is claimed. Other rows are passed over.
package struct ClockSeriesAlignment: AlignmentMethod {
    /// More rows than this for a job aren't kept; it is a row a second for 16 hosts and 17 hours.
    static let limit = 1_000_000

    package init() {}

    package func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) throws(Aligner.Unaligned) {
        guard ClockKnot.isWanted(input, draft) else { return }
        guard let path = input.clockSeries else {
            return ClockKnot.fail("no clock_sync.jsonl was given", input, &draft)
        }
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
            if let tooLong { return ClockKnot.fail("line \(tooLong) of clock_sync.jsonl is too long", input, &draft) }
        } catch {
            return ClockKnot.fail("clock_sync.jsonl can't be read (\(error))", input, &draft)
        }
        ClockKnot.place(.clockSeries, knots, source: "clock_sync.jsonl", input, &draft)
    }
}

/// Aligns by the mapping of each host in the merged `manifest.json`: `hosts[].clock`, from host time to rig time.
package struct ClockMappingAlignment: AlignmentMethod {
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

    package init() {}

    package func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) throws(Aligner.Unaligned) {
        guard ClockKnot.isWanted(input, draft) else { return }
        guard let path = input.manifest else { return ClockKnot.fail("no manifest.json was given", input, &draft) }
        let manifest: Manifest
        do { manifest = try JSONText.decode(Manifest.self, from: try Files.read(path, limit: 256 << 20)) } catch {
            return ClockKnot.fail("manifest.json has no hosts with their clocks", input, &draft)
        }
        var knots: [String: [HostTimeline.Knot]] = [:]
        for host in manifest.hosts {
            if let knot = host.clock.flatMap(ClockKnot.read) { knots[host.host] = [knot] }
        }
        ClockKnot.place(.clockMapping, knots, source: "manifest.json", input, &draft)
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

    /// Whether there are clocks of hosts that the network may place.
    static func isWanted(_ input: AlignmentInput, _ draft: AlignmentDraft) -> Bool {
        guard input.options.method != .sound, draft.common == nil || draft.common == rig else { return false }
        return input.clocks.contains { if case .host = $0 { draft.placements[$0] == nil } else { false } }
    }

    static func fail(_ reason: String, _ input: AlignmentInput, _ draft: inout AlignmentDraft) {
        for case .host(let host) in input.clocks where draft.placements[.host(host)] == nil {
            draft.fail(.host(host), reason)
        }
    }

    /// The name of the common clock.
    static let rig = "rig"

    static func place(
        _ method: ClockPlacement.Method, _ knots: [String: [HostTimeline.Knot]], source: String,
        _ input: AlignmentInput, _ draft: inout AlignmentDraft
    ) {
        for case .host(let host) in input.clocks where draft.placements[.host(host)] == nil {
            guard let own = knots[host] else {
                draft.fail(.host(host), "\(source) has no clock mapping of \(host)")
                continue
            }
            guard let timeline = HostTimeline(own) else {
                draft.fail(.host(host), "the clock mappings of \(host) in \(source) contradict each other")
                continue
            }
            let times = input.streams.filter { $0.stream.clock == .host(host) }.flatMap {
                [$0.rows.times.first, $0.rows.times.last].compactMap { $0 }
            }
            let bounds = times.map { timeline.bound(at: $0) }
            let bound = bounds.contains { $0 == nil } ? nil : bounds.compactMap { $0 }.max()
            draft.placements[.host(host)] = ClockPlacement(
                method, timeline, uncertainty: bound, isProved: bound != nil)
            draft.common = rig
        }
    }
}
