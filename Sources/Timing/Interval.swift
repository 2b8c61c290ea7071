/// A length of time: signed Int64 nanoseconds, saturating.
///
/// The standard `Duration` is 128 bits of attoseconds; this type is what goes over the wire and into the files.
package struct Interval: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// Signed nanoseconds.
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package init(from decoder: any Decoder) throws {
        nanoseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(nanoseconds)
    }

    package static let zero = Interval(nanoseconds: 0)

    package static func nanoseconds(_ value: Int64) -> Self { Self(nanoseconds: value) }
    package static func microseconds(_ value: Int64) -> Self { Self(nanoseconds: value.saturatingMultiply(1000)) }
    package static func milliseconds(_ value: Int64) -> Self { Self(nanoseconds: value.saturatingMultiply(1_000_000)) }

    /// A whole or broken number of seconds, rounded to the nanosecond; NaN is zero, and what doesn't fit saturates.
    package static func seconds(_ value: Double) -> Self {
        let ns = value * 1e9
        if ns.isNaN { return .zero }
        if ns >= 9.2e18 { return Self(nanoseconds: .max) }
        if ns <= -9.2e18 { return Self(nanoseconds: .min) }
        return Self(nanoseconds: Int64(ns.rounded()))
    }

    /// Seconds as a floating number, for display and for ratios; never for a stamp.
    package var seconds: Double { Double(nanoseconds) / 1e9 }

    /// Milliseconds as a floating number, for display.
    package var milliseconds: Double { Double(nanoseconds) / 1e6 }

    /// The same length as the standard library's type, exactly.
    package var duration: Duration { .nanoseconds(nanoseconds) }

    package var magnitude: Self { nanoseconds < 0 ? -self : self }

    package static prefix func - (a: Self) -> Self { Self(nanoseconds: Int64(0).saturatingSubtract(a.nanoseconds)) }

    package static func + (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds.saturatingAdd(b.nanoseconds)) }

    package static func - (a: Self, b: Self) -> Self {
        Self(nanoseconds: a.nanoseconds.saturatingSubtract(b.nanoseconds))
    }

    package static func * (a: Self, b: Int64) -> Self { Self(nanoseconds: a.nanoseconds.saturatingMultiply(b)) }

    package static func / (a: Self, b: Int64) -> Self { Self(nanoseconds: b == 0 ? 0 : a.nanoseconds / b) }

    package static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

    package var description: String { "\(nanoseconds) ns" }
}
