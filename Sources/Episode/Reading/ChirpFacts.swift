internal import Protocol
internal import Timing

/// What a sync point says of chirps, and whether it can be true; pure.
enum ChirpFacts {
    static func read(_ point: JSONValue, anchor: Int64?, lastSample: Int64?) -> ([EpisodeRecord.Chirp], [EpisodeNote]) {
        var chirps: [EpisodeRecord.Chirp] = []
        var notes: [EpisodeNote] = []
        let spec = point["chirp_spec"].flatMap(Self.spec)
        for moment in ChirpMoment.allCases {
            let time = point["chirp_\(moment.rawValue)_ns"]?.integer
            let word = point["chirp_\(moment.rawValue)_source"]?.string
            guard time != nil || word != nil else { continue }
            let source = word.flatMap(ChirpSource.init(rawValue:))
            var isCredible = time != nil && source != .silent
            func doubt(_ text: String) {
                isCredible = false
                notes.append(EpisodeNote(.warning, "the \(moment.rawValue) chirp \(text)"))
            }
            if source == .silent { doubt("was silent: there's no sound to find") }
            if let word, source == nil { doubt("has the unknown source '\(word)'") }
            if let time, let anchor, time < anchor { doubt("is of a time before the take: it is an earlier take's") }
            if let time, let lastSample, time > lastSample { doubt("is of a time after the last sample") }
            chirps.append(
                EpisodeRecord.Chirp(
                    moment: moment, emitted: time.map { Timestamp(nanoseconds: $0) }, source: source,
                    spec: moment == .stop ? spec?.reversed : spec, isCredible: isCredible))
        }
        let starts = chirps.filter { $0.moment == .start }.compactMap(\.emitted)
        let stops = chirps.filter { $0.moment == .stop }.compactMap(\.emitted)
        if let start = starts.first, let stop = stops.first, stop <= start {
            for index in chirps.indices { chirps[index].isCredible = false }
            notes.append(EpisodeNote(.warning, "the stop chirp is of a time before the start chirp"))
        }
        if starts.isEmpty, !stops.isEmpty {
            notes.append(EpisodeNote(.information, "only a stop chirp is told of; it aligns the host by itself"))
        }
        return (chirps, notes)
    }

    private static func spec(_ value: JSONValue) -> ChirpSpec? {
        guard let from = value["from_hz"]?.double, let to = value["to_hz"]?.double,
            (1.0...96_000).contains(from), (1.0...96_000).contains(to)
        else { return nil }
        return ChirpSpec(
            fromHz: from, toHz: to, durationMilliseconds: value["duration_ms"]?.double ?? 500,
            amplitude: value["amplitude"]?.double ?? 0.8, envelopeMilliseconds: value["envelope_ms"]?.double ?? 15)
    }
}
