package import Protocol
package import Timing

/// What is known of a take when it is judged; all figures, no opinion.
package struct VerdictFigures: Sendable {
    package struct Stream: Sendable {
        package var id: String
        package var kind: StreamKind
        /// Samples a second that were promised; nil when irregular.
        package var nominalRate: Double?
        package var samples: Int64
        package var dropped: Int64
        package var largestGap: Interval
        /// First sample minus T0, and T1 minus last sample; nil when one of them isn't known.
        package var firstAfterStart: Interval?
        package var lastBeforeStop: Interval?
        package var isPending: Bool
        /// A clip without stamps of a camera that recorded by itself.
        package var isClip = false
        package var status: String?
        package var isAligned: Bool
        package var unalignedReason: String?
        /// Rows of the time stamp file, and frames of the container where it was read.
        package var rows: Int64
        package var containerFrames: Int64?
        package var errors: [String]

        package init(id: String, kind: StreamKind, nominalRate: Double?, samples: Int64) {
            self.id = id
            self.kind = kind
            self.nominalRate = nominalRate
            self.samples = samples
            dropped = 0
            largestGap = .zero
            isPending = false
            isAligned = true
            rows = samples
            errors = []
        }
    }

    package struct Host: Sendable {
        package var id: String
        /// Nil when it handed over its episode, else why not.
        package var missing: String?
        package var isRecovered: Bool
        /// The limit of the error of its clock in the take; nil when it isn't known.
        package var clockBound: Interval?
        /// The limit of the error with which it was told T0.
        package var startBound: Interval?
        /// Whether each chirp is in its sound; nil when nobody looked.
        package var startChirpHeard: Bool?
        package var stopChirpHeard: Bool?
        /// Why its microphone heard nothing; nil when it heard, or nobody looked.
        package var hearingProblem: String?
        /// Its wall clock against the coordinator's.
        package var wallClock: WallClockRule.Comparison?
        /// When it acted on T0 minus T0, by its own clock.
        package var gateLatency: Interval?
        package var hasRealtimePriority: Bool?
        package var events: [String]
        package var errors: [String]
        package var streams: [Stream]

        package init(id: String, streams: [Stream] = []) {
            self.id = id
            self.streams = streams
            isRecovered = false
            events = []
            errors = []
        }
    }

    package var session: String
    package var episode: String
    /// T1 minus T0; nil when the take had no proper end.
    package var duration: Interval?
    package var policy: AbsencePolicy
    package var chirp: ChirpPreset
    package var hosts: [Host]
    /// What a check of sizes, hashes and counts found.
    package var findings: [String]
    /// Network and sound beside each other; nil when nobody listened.
    package var witness: SoundWitness?

    package init(session: String, episode: String, hosts: [Host]) {
        self.session = session
        self.episode = episode
        self.hosts = hosts
        policy = .strict
        chirp = .off
        findings = []
    }

    /// From a merged episode, and the check of its files where there was one; the caller adds what was heard.
    package init(_ merged: MergedManifest, aggregated: AggregatedManifest, check: EpisodeVerifier.Report? = nil) {
        self.init(session: merged.session, episode: merged.episode, hosts: [])
        findings = check?.findings ?? []
        let (start, stop) = (merged.start, merged.stop)
        if let start, let stop { duration = stop - start }
        hosts = merged.hosts.map { part in
            var host = Host(id: part.host)
            host.isRecovered = part.state != .finished
            host.clockBound = part.clockBound
            if let difference = part.wallDifference, let bound = part.wallBound {
                host.wallClock = WallClockRule.Comparison(
                    difference: difference, bound: bound, host: part.clockClaim, rig: merged.clockClaim)
            }
            host.gateLatency = part.gateLatency
            host.hasRealtimePriority = part.hasRealtimePriority
            host.events = part.events.map(\.message)
            host.errors = part.errors
            host.missing = aggregated.hosts.first { $0.id == part.host && $0.status != .ok }
                .map { $0.error ?? $0.status.rawValue }
            host.streams = merged.streams.filter { $0.host == part.host }.map { stream in
                var figures = Stream(
                    id: stream.id, kind: stream.kind, nominalRate: stream.nominalRate, samples: stream.frameCount)
                figures.dropped = stream.dropped
                figures.largestGap = stream.largestGap
                figures.isPending = stream.isPending
                figures.isClip = stream.isClip
                figures.status = stream.status
                figures.isAligned = stream.isAligned
                figures.unalignedReason = stream.unalignedReason
                figures.rows = stream.rows
                figures.errors = stream.errors
                figures.containerFrames = check?.containerFrames[stream.id]
                if let start, let first = stream.firstRig { figures.firstAfterStart = first - start }
                if let stop, let last = stream.lastRig { figures.lastBeforeStop = stop - last }
                return figures
            }
            return host
        }
        for host in aggregated.hosts where !merged.hosts.contains(where: { $0.host == host.id }) {
            var absent = Host(id: host.id)
            absent.missing = host.error ?? host.status.rawValue
            hosts.append(absent)
        }
    }

    /// Takes in what was heard.
    package mutating func add(_ witness: SoundWitness?) {
        self.witness = witness
        guard let witness else { return }
        for index in hosts.indices {
            // A host without a microphone can't be asked what it heard.
            guard let ear = witness.ears.first(where: { $0.host == hosts[index].id }), ear.stream != nil else {
                continue
            }
            hosts[index].startChirpHeard = ear.hasStart
            hosts[index].stopChirpHeard = ear.hasStop
            hosts[index].hearingProblem = ear.problem
        }
    }
}
