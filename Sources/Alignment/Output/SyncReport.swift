package import Protocol

/// `sync_report.json`: SyncField's keys, and ours beside them.
package struct SyncReport {
    let streams: [LoadedStream]
    let alignment: Alignment
    let map: FrameMap
    let facts: FrameMap.Facts
    let heard: [SoundHearing]
    let leftOut: [String]

    package var json: JSONValue {
        var entries: [String: JSONValue] = [:]
        for loaded in streams { entries[loaded.stream.id] = entry(loaded) }
        var members: [String: JSONValue] = [
            "summary": .object(summary), "streams": .object(entries), "alignment": .object(clocks),
        ]
        if !heard.isEmpty { members["sound"] = .array(heard.map(\.json)) }
        if !leftOut.isEmpty { members["left_out"] = .array(leftOut.map { .string($0) }) }
        return .object(members)
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

    // MARK: Streams

    private func entry(_ loaded: LoadedStream) -> JSONValue {
        let times = map.times[loaded.stream.id] ?? []
        let primary = map.times[map.primary.stream.id] ?? []
        guard let first = times.first, let last = times.last, let start = primary.first, let end = primary.last else {
            return .null
        }
        let uncertainty = uncertainty(loaded)
        var members: [String: JSONValue] = [
            "role": .string(loaded.stream.isPrimary ? "primary" : loaded.stream.isSensor ? "sensor" : "secondary"),
            "host": .string(loaded.stream.host),
            "fps": .number(last > first ? Double(times.count - 1) * 1e9 / Double(last - first) : 0),
            "original_duration_sec": .number(Double(last - first) / 1e9),
            "original_frame_count": .integer(Int64(times.count)),
            "offset_ms": .number(Double(first - start) / 1e6),
            "overlap_sec": .number(Double(max(0, min(last, end) - max(first, start))) / 1e9),
            "max_delta_ms": .number(Double(facts.largestDelta[loaded.stream.id] ?? 0) / 1e6),
            "clock_bound_ms": milliseconds(isProved(loaded) ? uncertainty : nil),
            "uncertainty_ms": milliseconds(uncertainty),
            "method": .string(word(loaded)),
        ]
        if let confidence = confidence(loaded, uncertainty) { members["confidence"] = .number(confidence) }
        var notes: [JSONValue] = []
        if loaded.rows.isTorn { notes.append(.string("the last line was broken and is left out")) }
        if loaded.rows.disorder > 0 {
            notes.append(.string("\(loaded.rows.disorder) rows were out of order and are sorted by capture_ns"))
        }
        if loaded.rows.framesAreCounted { notes.append(.string("frames are counted in the order of time")) }
        if !notes.isEmpty { members["notes"] = .array(notes) }
        return .object(members)
    }

    private func milliseconds(_ value: Int64?) -> JSONValue { value.map { .number(Double($0) / 1e6) } ?? .null }

    /// How the stream's clock was brought to the primary's.
    private func word(_ loaded: LoadedStream) -> String {
        if loaded.stream.clock == map.primary.stream.clock { return "same_clock" }
        let own = alignment.placements[loaded.stream.clock]?.method
        let other = alignment.placements[map.primary.stream.clock]?.method
        let word = own == .reference ? other : own
        return (word ?? .reference).rawValue
    }

    /// 1 while the uncertainty is within the 5 ms that the original promises between hosts, then falling with it.
    ///
    /// 0.5 when streams of one host name different clocks, as the original has it; none where nothing is known.
    private func confidence(_ loaded: LoadedStream, _ uncertainty: Int64?) -> Double? {
        let domains = streams.filter { $0.stream.host == loaded.stream.host }.flatMap { $0.rows.clockDomains }
        if Set(domains).count > 1 { return 0.5 }
        guard let uncertainty else { return nil }
        return uncertainty <= 5_000_000 ? 1 : 5_000_000 / Double(uncertainty)
    }

    /// What the clocks of the stream and of the primary may be apart, ns.
    private func uncertainty(_ loaded: LoadedStream) -> Int64? {
        if loaded.stream.clock == map.primary.stream.clock { return 0 }
        var sum: Int64 = 0
        for side in [loaded, map.primary] {
            let timeline = alignment.timeline(side.stream.clock)
            guard let first = side.rows.times.first, let last = side.rows.times.last,
                let a = timeline.bound(at: first), let b = timeline.bound(at: last)
            else { return nil }
            sum += min(max(a, b), 1 << 60)
        }
        return sum
    }

    private func isProved(_ loaded: LoadedStream) -> Bool {
        [loaded, map.primary].allSatisfy { alignment.placements[$0.stream.clock]?.isProved ?? false }
            || loaded.stream.clock == map.primary.stream.clock
    }

    /// How much the offset of the stream's clock to the primary's changes over the stream, ns.
    private func drift(_ loaded: LoadedStream) -> Int64 {
        if loaded.stream.clock == map.primary.stream.clock { return 0 }
        func change(_ side: LoadedStream) -> Int64 {
            let timeline = alignment.timeline(side.stream.clock)
            guard let first = side.rows.times.first, let last = side.rows.times.last else { return 0 }
            return timeline.offset(at: last) - timeline.offset(at: first)
        }
        let (difference, overflow) = change(loaded).subtractingReportingOverflow(change(map.primary))
        return overflow || difference == .min ? .max : abs(difference)
    }

    // MARK: Clocks

    private var clocks: [String: JSONValue] {
        var hosts: [String: JSONValue] = [:]
        var clips: [String: JSONValue] = [:]
        for (clock, placement) in alignment.placements {
            switch clock {
            case .host(let host): hosts[host] = .object(entry(clock, placement))
            case .clip(let stream, _): clips[stream] = .object(entry(clock, placement))
            }
        }
        var members: [String: JSONValue] = [
            "method": .string(alignment.method), "common_clock": .string(alignment.common), "hosts": .object(hosts),
        ]
        if !clips.isEmpty { members["clips"] = .object(clips) }
        if !alignment.notes.isEmpty { members["notes"] = .array(alignment.notes.map { .string($0) }) }
        return members
    }

    private func entry(_ clock: ClockID, _ placement: ClockPlacement) -> [String: JSONValue] {
        guard let first = streams.first(where: { $0.stream.clock == clock })?.rows.times.first else { return [:] }
        var members: [String: JSONValue] = [
            "method": .string(placement.method.rawValue),
            "offset_ns": .integer(placement.timeline.offset(at: first)),
            "bound_ns": (placement.isProved ? placement.timeline.bound(at: first) : nil).map { .integer($0) } ?? .null,
            "uncertainty_ns": placement.uncertainty.map { .integer($0) } ?? .null,
        ]
        if placement.chirps > 0 { members["chirps"] = .integer(Int64(placement.chirps)) }
        if let confidence = placement.confidence { members["confidence"] = .number(confidence) }
        if !placement.notes.isEmpty { members["notes"] = .array(placement.notes.map { .string($0) }) }
        return members
    }
}
