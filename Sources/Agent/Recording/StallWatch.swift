package import Timing

/// Says when a stream that should deliver doesn't, and when it does again.
package struct StallWatch: Sendable, Hashable {
    package enum Finding: Sendable, Hashable {
        case stalled(silentFor: Interval)
        case recovered(after: Interval)
        /// The device itself says that it has broken off and tries to come back.
        case interrupted(cause: String)
    }

    /// Longer silence is a stall: max(1 s, 5 periods).
    package let threshold: Interval
    package private(set) var isStalled = false
    private var quietSince: Timestamp<HostTime>
    private var told: String?

    /// - Parameters:
    ///   - rate: samples a second, nil when irregular. For sound it is that of the sample frames.
    ///   - start: when the device was started.
    package init(rate: Double?, start: Timestamp<HostTime>) {
        let periods = rate.map { $0 > 0 && $0.isFinite ? Interval.seconds(5 / $0) : .zero } ?? .zero
        threshold = max(.seconds(1), periods)
        quietSince = start
    }

    /// Call it some times a second with when the last sample came, and with what the device says of an interruption.
    package mutating func look(
        lastArrival: Timestamp<HostTime>?, interruption: String? = nil, at now: Timestamp<HostTime>
    ) -> Finding? {
        let last = max(lastArrival ?? quietSince, quietSince)
        if let interruption {
            guard interruption != told else { return nil }
            (told, isStalled, quietSince) = (interruption, true, last)
            return .interrupted(cause: interruption)
        }
        told = nil
        if now - last >= threshold {
            guard !isStalled else { return nil }
            isStalled = true
            quietSince = last
            return .stalled(silentFor: now - last)
        }
        defer { quietSince = last }
        guard isStalled else { return nil }
        isStalled = false
        return .recovered(after: last - quietSince)
    }
}
