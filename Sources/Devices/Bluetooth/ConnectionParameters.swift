package import Timing

/// How often a low-energy link meets, and when it is given up.
package struct ConnectionParameters: Sendable, Hashable, CustomStringConvertible {
    /// In steps of 1.25 ms, 7.5 ms to 4 s (Vol 6 Part B 4.5.1).
    package var interval: Interval
    /// How many meetings the device may skip.
    package var latency: Int
    /// Silence after which the link is lost, 100 ms to 32 s.
    package var timeout: Interval

    package init(interval: Interval, latency: Int, timeout: Interval) {
        self.interval = interval
        self.latency = latency
        self.timeout = timeout
    }

    init(intervalUnits: UInt16, latency: UInt16, timeoutUnits: UInt16) {
        interval = .microseconds(Int64(intervalUnits) * 1250)
        self.latency = Int(latency)
        timeout = .milliseconds(Int64(timeoutUnits) * 10)
    }

    package var description: String {
        "every \(interval.milliseconds) ms, \(latency) may be skipped, lost after \(timeout.milliseconds) ms"
    }
}

/// What is asked for: the device meets at an interval in this range.
package struct ConnectionWish: Sendable, Hashable {
    package var interval: ClosedRange<Interval>
    package var latency = 0
    package var timeout = Interval.seconds(2)

    package init(interval: ClosedRange<Interval>) { self.interval = interval }

    /// What a stream of 100 packets a second needs without waiting.
    package static let fast = ConnectionWish(interval: .microseconds(7_500)...(.milliseconds(15)))

    /// The parameters of the command LE Connection Update (Vol 4 Part E 7.8.18) after the handle.
    var commandBytes: [UInt8] {
        func units(_ value: Interval, _ unit: Int64, _ range: ClosedRange<Int64>) -> UInt16 {
            UInt16(clamping: min(max(value.nanoseconds / unit, range.lowerBound), range.upperBound))
        }
        let fields: [UInt16] = [
            units(interval.lowerBound, 1_250_000, 6...3200), units(interval.upperBound, 1_250_000, 6...3200),
            UInt16(clamping: min(max(latency, 0), 499)), units(timeout, 10_000_000, 10...3200), 0, 0,
        ]
        return fields.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    }
}

/// How much a link is protected.
package enum LinkSecurity: Int32, Sendable, Hashable, Comparable {
    /// No encryption.
    case none = 1
    /// Encrypted, with an unauthenticated key.
    case encrypted = 2
    /// Encrypted with an authenticated key.
    case authenticated = 3

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
