internal import Protocol
package import Timing

/// Where green ends and where amber ends.
///
/// The figures are for the usual work with such data: 30 frames a second, actions of some tenths of a second.
package struct VerdictRules: Sendable {
    /// Part of the promised samples that may be lacking.
    package var amberLoss = 0.005
    package var redLoss = 0.05
    /// Part of the promised samples that may be too many: a rate that is wrong rather than a loss.
    package var amberExcess = 0.02
    /// A time without samples; the amber one is never under three intervals of the stream.
    package var amberGap = Interval.milliseconds(100)
    package var redGap = Interval.seconds(1)
    /// The first sample after T0 and the last before T1, both beside one interval of the stream.
    package var amberEdge = Interval.milliseconds(150)
    package var redEdge = Interval.seconds(1)
    package var amberClock = Interval.milliseconds(1)
    package var redClock = Interval.milliseconds(20)

    package init() {}

    /// Judges a take; pure.
    package func judge(_ figures: VerdictFigures) -> EpisodeVerdict {
        let hosts = figures.hosts.map { judge($0, figures) }
        var reasons: [EpisodeVerdict.Reason] = figures.findings.map { .init(.red, $0) }
        if figures.hosts.allSatisfy({ $0.streams.isEmpty }) { reasons.append(.init(.red, "nothing was recorded")) }
        if figures.duration == nil {
            reasons.append(
                .init(
                    .amber,
                    "the instants at which the take began and ended aren't both known: no coordinator was there to the end"
                ))
        }
        reasons += witnessReasons(figures.witness)
        let color = (hosts.map(\.color) + reasons.map(\.color)).max() ?? .green
        return EpisodeVerdict(
            session: figures.session, episode: figures.episode, color: color,
            durationSeconds: figures.duration?.seconds, reasons: reasons, hosts: hosts, witness: figures.witness)
    }

    /// Two clocks that sound and network don't agree on: the rows of one of the hosts have wrong times.
    private func witnessReasons(_ witness: SoundWitness?) -> [EpisodeVerdict.Reason] {
        guard let witness else { return [] }
        var reasons = witness.pairs.filter { $0.opinion == .disagree }.map {
            EpisodeVerdict.Reason(.red, "hosts \($0.text)")
        }
        if let suspect = witness.suspect {
            reasons.append(.init(.red, "host \(suspect): it is the one that sound contradicts; its times are wrong"))
        }
        return reasons
    }

    // MARK: Hosts

    private func judge(_ host: VerdictFigures.Host, _ figures: VerdictFigures) -> EpisodeVerdict.Host {
        let streams = host.streams.map { judge($0, duration: figures.duration) }
        var reasons: [EpisodeVerdict.Reason] = []
        if let missing = host.missing {
            let color: VerdictColor = figures.policy == .strict ? .red : figures.policy == .warn ? .amber : .green
            reasons.append(.init(color, "host \(host.id) is missing or not whole: \(missing)"))
        }
        if host.isRecovered {
            reasons.append(.init(.amber, "host \(host.id): its program died in the take; what was on the disk is here"))
        }
        if !host.streams.isEmpty { reasons += clockReasons(host) + chirpReasons(host, figures.chirp) }
        if let wall = host.wallClock, let reason = WallClockRule.judge(host.id, wall) { reasons.append(reason) }
        reasons += host.events.map { .init(.amber, "host \(host.id): \($0)") }
        reasons += host.errors.map { .init(.amber, "host \(host.id): \($0)") }
        let color = (reasons.map(\.color) + streams.map(\.color)).max() ?? .green
        return EpisodeVerdict.Host(
            id: host.id, color: color, reasons: reasons, streams: streams,
            clockBoundMicroseconds: host.clockBound.map { Double($0.nanoseconds) / 1_000 },
            gateLatencyMicroseconds: host.gateLatency.map { Double($0.nanoseconds) / 1_000 },
            hasRealtimePriority: host.hasRealtimePriority)
    }

    private func clockReasons(_ host: VerdictFigures.Host) -> [EpisodeVerdict.Reason] {
        guard let bound = host.clockBound else {
            let heard = host.startChirpHeard == true || host.stopChirpHeard == true
            return [
                .init(
                    heard ? .amber : .red,
                    "host \(host.id): its clock against the rig's isn't known"
                        + (heard ? "; its chirps can align it" : ", and no chirp is known in its sound"))
            ]
        }
        if bound > redClock { return [.init(.red, "host \(host.id): its clock may be off by \(Self.text(bound))")] }
        if bound > amberClock { return [.init(.amber, "host \(host.id): its clock may be off by \(Self.text(bound))")] }
        return []
    }

    private func chirpReasons(_ host: VerdictFigures.Host, _ preset: ChirpPreset) -> [EpisodeVerdict.Reason] {
        var reasons: [EpisodeVerdict.Reason] = []
        if preset != .off {
            for (word, heard) in [("start", host.startChirpHeard), ("stop", host.stopChirpHeard)] where heard == false {
                reasons.append(
                    .init(
                        .amber,
                        "host \(host.id): the \(word) chirp isn't in its sound: "
                            + (host.hearingProblem ?? "check microphone and speaker"))
                )
            }
        }
        return reasons
    }

    // MARK: Streams

    private func judge(_ stream: VerdictFigures.Stream, duration: Interval?) -> EpisodeVerdict.Stream {
        var reasons: [EpisodeVerdict.Reason] = []
        let name = "stream \(stream.id)"
        let expected = Self.expected(stream.nominalRate, duration)
        if stream.isPending {
            reasons.append(.init(.amber, "\(name): its clip is still on the camera; ingest it"))
        } else if stream.samples <= 0 {
            reasons.append(.init(.red, "\(name) has no samples"))
        } else {
            reasons += lossReasons(stream, name, expected)
            reasons += timeReasons(stream, name)
            reasons += countReasons(stream, name)
        }
        reasons += stream.errors.map { .init(.amber, "\(name): \($0)") }
        switch stream.status {
        case ManifestStream.Status.failed.rawValue where stream.samples > 0:
            reasons.append(.init(.red, "\(name) failed"))
        case ManifestStream.Status.truncated.rawValue, ManifestStream.Status.partial.rawValue:
            reasons.append(.init(.amber, "\(name) is \(stream.status ?? "")"))
        default: break
        }
        return EpisodeVerdict.Stream(
            id: stream.id, kind: stream.kind, color: reasons.map(\.color).max() ?? .green, reasons: reasons,
            samples: stream.samples, expected: expected, dropped: stream.dropped,
            largestGapMilliseconds: stream.largestGap.milliseconds,
            firstAfterStartMilliseconds: stream.firstAfterStart?.milliseconds)
    }

    private func lossReasons(_ stream: VerdictFigures.Stream, _ name: String, _ expected: Int64?) -> [EpisodeVerdict
        .Reason]
    {
        var reasons: [EpisodeVerdict.Reason] = []
        if let expected, expected > 0 {
            // A sample more or less at each end is no loss.
            let lacking = max(0, Double(expected - stream.samples) - 1) / Double(expected)
            let excess = Double(stream.samples - expected - 1) / Double(expected)
            let counts = "\(stream.samples) of \(expected) samples"
            if lacking > amberLoss {
                let percent = Self.tenths(lacking * 100)
                reasons.append(
                    .init(lacking > redLoss ? .red : .amber, "\(name) has \(counts): \(percent) % are lacking"))
            } else if excess > amberExcess {
                reasons.append(.init(.amber, "\(name) has \(counts): its rate isn't what was promised"))
            }
        }
        if stream.dropped > 0 {
            let part = Double(stream.dropped) / Double(max(1, stream.samples + stream.dropped))
            reasons.append(.init(part > redLoss ? .red : .amber, "\(name) lost \(stream.dropped) samples"))
        }
        return reasons
    }

    private func timeReasons(_ stream: VerdictFigures.Stream, _ name: String) -> [EpisodeVerdict.Reason] {
        var reasons: [EpisodeVerdict.Reason] = []
        if !stream.isAligned, !stream.isClip {
            let why = stream.unalignedReason ?? "its time on the rig isn't known"
            reasons.append(.init(.amber, "\(name) is unaligned: \(why)"))
        }
        // Sound comes in blocks, whose rows are a tenth of a second apart and more.
        let step = stream.kind == .audio ? .milliseconds(100) : Self.step(stream.nominalRate)
        if stream.largestGap > max(amberGap, step * 3) {
            let color: VerdictColor = stream.largestGap > max(redGap, step * 3) ? .red : .amber
            reasons.append(.init(color, "\(name) has a gap of \(Self.text(stream.largestGap))"))
        }
        for (distance, what) in [
            (stream.firstAfterStart, "begins \(Self.text(stream.firstAfterStart ?? .zero)) after the start"),
            (stream.lastBeforeStop, "ends \(Self.text(stream.lastBeforeStop ?? .zero)) before the stop"),
        ] {
            guard let distance, distance > amberEdge + step else { continue }
            reasons.append(.init(distance > redEdge + step ? .red : .amber, "\(name) \(what)"))
        }
        return reasons
    }

    private func countReasons(_ stream: VerdictFigures.Stream, _ name: String) -> [EpisodeVerdict.Reason] {
        guard stream.kind == .video, !stream.isClip else { return [] }
        if stream.rows == 0 { return [.init(.red, "\(name) has no time stamps")] }
        guard let frames = stream.containerFrames, frames != stream.rows else { return [] }
        return [.init(.red, "\(name) has \(frames) frames and \(stream.rows) time stamps")]
    }

    // MARK: Arithmetic on figures that may be anything

    private static func expected(_ rate: Double?, _ duration: Interval?) -> Int64? {
        guard let rate, let duration, rate.isFinite, rate > 0, duration > .zero else { return nil }
        let product = (rate * duration.seconds).rounded()
        return product < 1e15 ? Int64(product) : nil
    }

    private static func step(_ rate: Double?) -> Interval {
        guard let rate, rate.isFinite, rate > 0 else { return .zero }
        return .seconds(1 / rate)
    }

    static func text(_ interval: Interval) -> String {
        let magnitude = Double(interval.magnitude.nanoseconds)
        if magnitude < 1e6 { return "\(tenths(magnitude / 1e3)) µs" }
        if magnitude < 1e9 { return "\(tenths(magnitude / 1e6)) ms" }
        return "\(tenths(magnitude / 1e9)) s"
    }

    /// With one digit behind the point, and with none where it would be 0.
    static func tenths(_ value: Double) -> String {
        let text = ((value * 10).rounded() / 10).description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
