/// An instant on one time line: Int64 nanoseconds since that line's own origin.
///
/// Arithmetic saturates at the ends of Int64 (±292 years): a wild stamp from a device is a bad stamp, never a crash.
package struct Timestamp<Domain: ClockDomain>: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// Nanoseconds since the origin of the domain.
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package init(from decoder: any Decoder) throws {
        nanoseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(nanoseconds)
    }

    package static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

    package static func - (a: Self, b: Self) -> Interval {
        Interval(nanoseconds: a.nanoseconds.saturatingSubtract(b.nanoseconds))
    }

    package static func + (a: Self, b: Interval) -> Self {
        Self(nanoseconds: a.nanoseconds.saturatingAdd(b.nanoseconds))
    }

    package static func - (a: Self, b: Interval) -> Self {
        Self(nanoseconds: a.nanoseconds.saturatingSubtract(b.nanoseconds))
    }

    package static func += (a: inout Self, b: Interval) { a = a + b }

    package var description: String { "\(nanoseconds) ns" }
}
