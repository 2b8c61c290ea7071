internal import Episode
internal import Platform

/// Finds out how the places in a recording belong to a clock.
enum SoundTiming {
    struct Unknown: Error, CustomStringConvertible { let description: String }

    static func clock(_ source: SoundSource, rate: Double) throws -> SoundClock {
        let points: [(place: Double, time: Int64)]
        var doubt = 0.0
        switch source.timing {
        case .none: points = [(0, 0), (rate, 1_000_000_000), (2 * rate, 2_000_000_000)]
        case .samples(let rows): points = try samples(rows)
        case .frames(let rows): (points, doubt) = try frames(source.path, rows, rate: rate)
        }
        guard let clock = SoundClock(points, rate: rate, doubt: doubt) else {
            throw Unknown(description: "its sound has no time stamps")
        }
        return clock
    }

    /// The rows say where the sample of a number is, in both dialects.
    ///
    /// SyncField's Python writes the number of sample frames up to and with a block beside the instant at which the block
    /// came; ours the number before a block beside the instant at which it began.
    private static func samples(_ rows: String) throws -> [(place: Double, time: Int64)] {
        var points: [(place: Double, time: Int64)] = []
        try RowFile.read(rows) { row in
            guard let frame = row.frame, frame >= 0, points.count < SampleRows.limit else { return }
            points.append((Double(frame), row.capture))
        }
        points.sort { $0.place < $1.place }
        return points
    }

    private static func frames(
        _ path: String, _ rows: String, rate: Double
    ) throws -> (points: [(place: Double, time: Int64)], doubt: Double) {
        let shown = try VideoTimes.read(path)
        var captures: [Int64] = []
        try RowFile.read(rows) { row in
            if captures.count < SampleRows.limit { captures.append(row.capture) }
        }
        captures.sort()
        guard !shown.isEmpty, !captures.isEmpty else {
            throw Unknown(description: "its video has no frames with stamps, so its sound has no times")
        }
        // The k-th frame shown is the k-th one stamped. When the numbers differ, it isn't known which ones are missing.
        let lacking = abs(shown.count - captures.count)
        let interval = shown.count > 1 ? Double(shown[shown.count - 1] - shown[0]) / Double(shown.count - 1) : 0
        let points = zip(shown, captures).map { (place: Double($0) / 1e9 * rate, time: $1) }
        return (points, lacking == 0 ? 0 : Double(lacking) * interval)
    }
}
