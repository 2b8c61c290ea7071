internal import Protocol

/// `sync_report.json`: SyncField's keys, and ours beside them.
struct SyncReport {
    let streams: [LoadedStream]
    let alignment: Alignment
    let map: FrameMap
    let facts: FrameMap.Facts

    var json: JSONValue {
        var entries: [String: JSONValue] = [:]
        for loaded in streams { entries[loaded.stream.id] = entry(loaded) }
        return .object([
            "summary": .object(summary), "streams": .object(entries),
            "alignment": .object([
                "method": .string(alignment.method),
                "hosts": .object(alignment.timelines.mapValues { .object(clock($0)) }),
            ]),
        ])
    }

    private var summary: [String: JSONValue] {
        let frames = map.range.count
        return [
            "status": .string("success"), "synced_duration_sec": .number(Double(map.span) / 1e9),
            "total_synced_frames": .integer(Int64(frames)), "primary_stream": .string(map.primary.stream.id),
            "primary_host": .string(map.primary.stream.host),
            "max_drift_ms": .number(streams.map { Double(drift($0)) / 1e6 }.max() ?? 0),
            "max_delta_ms": .number(Double(facts.largestDelta.values.max() ?? 0) / 1e6),
            "actual_mean_fps": .number(map.span > 0 ? Double(frames - 1) * 1e9 / Double(map.span) : 0),
        ]
    }

    private func entry(_ loaded: LoadedStream) -> JSONValue {
        let times = map.times[loaded.stream.id] ?? []
        let primary = map.times[map.primary.stream.id] ?? []
        guard let first = times.first, let last = times.last, let start = primary.first, let end = primary.last else {
            return .null
        }
        let bound = bound(loaded)
        var members: [String: JSONValue] = [
            "role": .string(loaded.stream.isPrimary ? "primary" : loaded.stream.isSensor ? "sensor" : "secondary"),
            "host": .string(loaded.stream.host),
            "fps": .number(last > first ? Double(times.count - 1) * 1e9 / Double(last - first) : 0),
            "original_duration_sec": .number(Double(last - first) / 1e9),
            "original_frame_count": .integer(Int64(times.count)),
            "offset_ms": .number(Double(first - start) / 1e6),
            "overlap_sec": .number(Double(max(0, min(last, end) - max(first, start))) / 1e9),
            "max_delta_ms": .number(Double(facts.largestDelta[loaded.stream.id] ?? 0) / 1e6),
            "clock_bound_ms": bound.map { .number(Double($0) / 1e6) } ?? .null,
        ]
        if let confidence = confidence(loaded, bound) { members["confidence"] = .number(confidence) }
        var notes: [JSONValue] = []
        if loaded.rows.isTorn { notes.append(.string("the last line was broken and is left out")) }
        if loaded.rows.disorder > 0 {
            notes.append(.string("\(loaded.rows.disorder) rows were out of order and are sorted by capture_ns"))
        }
        if loaded.rows.framesAreCounted { notes.append(.string("frames are counted in the order of time")) }
        if !notes.isEmpty { members["notes"] = .array(notes) }
        return .object(members)
    }

    /// 1 while the proved bound is within the 5 ms that the original promises between hosts, then falling with it.
    ///
    /// 0.5 when streams of one host name different clocks, as the original has it; none without a bound.
    private func confidence(_ loaded: LoadedStream, _ bound: Int64?) -> Double? {
        let domains = streams.filter { $0.stream.host == loaded.stream.host }.flatMap { $0.rows.clockDomains }
        if Set(domains).count > 1 { return 0.5 }
        guard let bound else { return nil }
        return bound <= 5_000_000 ? 1 : 5_000_000 / Double(bound)
    }

    /// The limit of what the clocks of the stream's host and of the primary's can be apart, ns.
    private func bound(_ loaded: LoadedStream) -> Int64? {
        if loaded.stream.host == map.primary.stream.host { return 0 }
        var sum: Int64 = 0
        for side in [loaded, map.primary] {
            guard let timeline = alignment.timelines[side.stream.host], let first = side.rows.times.first,
                let last = side.rows.times.last, let a = timeline.bound(at: first), let b = timeline.bound(at: last)
            else { return nil }
            sum += min(max(a, b), 1 << 60)
        }
        return sum
    }

    /// How much the offset of the stream's host to the primary's host changes over the stream, ns.
    private func drift(_ loaded: LoadedStream) -> Int64 {
        if loaded.stream.host == map.primary.stream.host { return 0 }
        func change(_ side: LoadedStream) -> Int64 {
            guard let timeline = alignment.timelines[side.stream.host], let first = side.rows.times.first,
                let last = side.rows.times.last
            else { return 0 }
            return timeline.offset(at: last) - timeline.offset(at: first)
        }
        let (difference, overflow) = change(loaded).subtractingReportingOverflow(change(map.primary))
        return overflow || difference == .min ? .max : abs(difference)
    }

    private func clock(_ timeline: HostTimeline) -> [String: JSONValue] {
        let host = streams.first { alignment.timelines[$0.stream.host] == timeline }
        guard let first = host?.rows.times.first else { return [:] }
        return [
            "offset_ns": .integer(timeline.offset(at: first)),
            "bound_ns": timeline.bound(at: first).map { .integer($0) } ?? .null,
        ]
    }
}
