internal import Platform
package import Protocol

/// How good something is.
package enum VerdictColor: String, Codable, Sendable, Hashable, Comparable, CaseIterable {
    /// It can be used.
    case green
    /// It can be used, with care: the sentences say with which.
    case amber
    /// It should be taken again.
    case red

    private var rank: Int {
        switch self {
        case .green: 0
        case .amber: 1
        case .red: 2
        }
    }

    package static func < (a: Self, b: Self) -> Bool { a.rank < b.rank }
}

/// `verdict.json`: whether a take was good, for each stream, each host and the whole, with the reasons in sentences.
package struct EpisodeVerdict: Codable, Sendable, Hashable {
    package struct Reason: Codable, Sendable, Hashable {
        package var color: VerdictColor
        package var text: String

        package init(_ color: VerdictColor, _ text: String) {
            self.color = color
            self.text = text
        }
    }

    package struct Stream: Codable, Sendable, Hashable {
        package var id: String
        package var kind: StreamKind
        package var color: VerdictColor
        package var reasons: [Reason]
        package var samples: Int64
        /// What the promised rate makes in the time of the take.
        package var expected: Int64?
        package var dropped: Int64
        package var largestGapMilliseconds: Double
        /// The first sample minus T0 on rig time: the device's part of the start's skew.
        package var firstAfterStartMilliseconds: Double?

        private enum CodingKeys: String, CodingKey {
            case id = "stream_id"
            case kind, color, reasons, samples, expected, dropped
            case largestGapMilliseconds = "largest_gap_ms"
            case firstAfterStartMilliseconds = "first_after_start_ms"
        }
    }

    package struct Host: Codable, Sendable, Hashable {
        package var id: String
        /// The worst of its own reasons and of its streams.
        package var color: VerdictColor
        package var reasons: [Reason]
        package var streams: [Stream]
        package var clockBoundMicroseconds: Double?
        /// When it acted on T0 minus T0: the scheduling's part of the start's skew.
        package var gateLatencyMicroseconds: Double?
        package var hasRealtimePriority: Bool?

        private enum CodingKeys: String, CodingKey {
            case id = "host_id"
            case color, reasons, streams
            case clockBoundMicroseconds = "clock_bound_us"
            case gateLatencyMicroseconds = "gate_latency_us"
            case hasRealtimePriority = "realtime_priority"
        }
    }

    package var session: String
    package var episode: String
    /// The worst of all.
    package var color: VerdictColor
    package var durationSeconds: Double?
    package var reasons: [Reason]
    package var hosts: [Host]
    /// Network and sound beside each other; nil when nobody listened.
    package var witness: SoundWitness?

    /// All sentences that aren't good news, the worst first, each with its host or stream in it.
    package var sentences: [String] {
        let all = reasons + hosts.flatMap { host in host.reasons + host.streams.flatMap(\.reasons) }
        return [VerdictColor.red, .amber].flatMap { color in all.filter { $0.color == color }.map(\.text) }
    }

    package func write(to path: String) throws {
        try AtomicFile.write(try JSONText.encodePretty(self), to: path)
    }

    private enum CodingKeys: String, CodingKey {
        case session = "session_id"
        case episode, color
        case durationSeconds = "duration_s"
        case reasons, hosts, witness
    }
}
