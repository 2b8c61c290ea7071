/// How well two clocks are known to each other.
package enum ClockState: String, Sendable, Hashable, Codable, CaseIterable {
    /// There has been no exchange: nothing is known.
    case unsynchronized
    /// The offset has a bound, and the skew is not yet narrowed down.
    case converging
    /// Offset and skew are known, from exchanges that are fresh.
    case locked
    /// No exchange for some seconds: the mapping is carried on, and its bound grows.
    case holdover
}
