internal import Protocol
internal import Timing

/// Makes the merged entry of one stream from what its host left; pure.
enum MergedStreamMaker {
    /// Paths are filled in by the caller, who makes the files.
    static func make(_ stream: StreamRecord, name: String, record: EpisodeRecord, clock: ClockSeries?) -> MergedStream {
        let rows = stream.rows
        let first = rows?.first.map { Timestamp<HostTime>(nanoseconds: $0) }
        let last = rows?.last.map { Timestamp<HostTime>(nanoseconds: $0) }
        let foreign = stream.foreignDomain(host: record.host)
        let reason = unalignedReason(stream, hasRows: first != nil, clock: clock, foreign: foreign)
        let isAligned = reason == nil
        let firstRig = isAligned ? first.flatMap { clock?.rig($0) } : nil
        let lastRig = isAligned ? last.flatMap { clock?.rig($0) } : nil
        let acknowledged = stream.acknowledgedStart.flatMap { clock?.rig($0) }
        let doubt = stream.acknowledgedUncertainty.map { $0 + (acknowledged?.bound ?? .zero) }
        return MergedStream(
            id: name, host: record.host, hostStream: stream.id, kind: stream.kind,
            capabilities: stream.capabilities
                ?? StreamCapabilities(producesFile: stream.kind != .sensor, supportsPreciseTimestamps: rows != nil),
            filePath: nil, timestampsPath: nil,
            frameCount: stream.entry?.frameCount ?? stream.samples, rows: rows?.rows ?? 0, status: stream.status,
            isPending: stream.isPending, description: stream.entry?.description, nominalRate: stream.nominalRate,
            rate: stream.entry?.rate ?? rows?.rate, dropped: stream.entry?.dropped ?? max(0, rows?.missingFrames ?? 0),
            gaps: stream.entry?.gaps ?? [], gapCount: stream.entry?.gapCount ?? 0,
            largestGap: Interval(nanoseconds: rows?.largestGap ?? 0), first: first, last: last, isAligned: isAligned,
            unalignedReason: reason, firstRig: firstRig?.time, firstBound: firstRig?.bound, lastRig: lastRig?.time,
            lastBound: lastRig?.bound, timestampSource: stream.entry?.timestampSource,
            acknowledgedStart: stream.acknowledgedStart, acknowledgedRig: acknowledged?.time,
            acknowledgedUncertainty: doubt,
            errors: stream.entry?.errors ?? [])
    }

    /// The middle of a host's samples, where its clock is judged.
    static func middle(_ record: EpisodeRecord) -> Timestamp<HostTime>? {
        let first = record.streams.compactMap { $0.rows?.first }.min() ?? record.anchor?.monotonic
        let last = record.streams.compactMap { $0.rows?.last }.max() ?? first
        guard let first, let last else { return nil }
        let start = Timestamp<HostTime>(nanoseconds: first)
        return start + (Timestamp<HostTime>(nanoseconds: last) - start) / 2
    }

    private static func unalignedReason(_ stream: StreamRecord, hasRows: Bool, clock: ClockSeries?, foreign: String?)
        -> String?
    {
        if stream.isPending { return "its clip is still on the camera" }
        if stream.isClip { return "its camera gives no time stamps: its sound aligns it" }
        if !hasRows { return "it has no time stamps" }
        if let foreign { return "its stamps are of the clock '\(foreign)', which nothing relates to the host's" }
        return clock == nil ? "the clock of its host was never compared with the rig's" : nil
    }
}
