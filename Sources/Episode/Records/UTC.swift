package import Timing

/// A wall-clock instant as a date and a time of day in UTC, of the Gregorian calendar whatever the locale says.
package struct UTC: Sendable, Hashable {
    package let year: Int64
    package let month: Int64
    package let day: Int64
    package let secondOfDay: Int64
    package let nanosecond: Int64

    package init(_ instant: Timestamp<WallTime>) {
        let second: Int64 = 1_000_000_000
        let seconds = Self.floorDivide(instant.nanoseconds, by: second)
        nanosecond = instant.nanoseconds - seconds * second
        let days = Self.floorDivide(seconds, by: 86_400)
        secondOfDay = seconds - days * 86_400
        // Days since 0000-03-01 in the proleptic Gregorian calendar: a year then ends with its leap day, and the
        // months from March on have a fixed pattern of 153 days in five.
        let shifted = days + 719_468
        let era = Self.floorDivide(shifted, by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// `20260411_152930`.
    package var compact: String { "\(Self.pad(year, 4))\(Self.pad(month, 2))\(Self.pad(day, 2))_\(clock("", "", ""))" }

    /// `2026-04-11T15:29:30Z`.
    package var iso: String { "\(date)T\(clock(":", ":", ""))Z" }

    /// `2026-04-11T15:29:30.123Z`.
    package var isoMilliseconds: String {
        "\(date)T\(clock(":", ":", "")).\(Self.pad(nanosecond / 1_000_000, 3))Z"
    }

    private var date: String { "\(Self.pad(year, 4))-\(Self.pad(month, 2))-\(Self.pad(day, 2))" }

    private func clock(_ first: String, _ second: String, _ end: String) -> String {
        Self.pad(secondOfDay / 3_600, 2) + first + Self.pad(secondOfDay / 60 % 60, 2) + second
            + Self.pad(secondOfDay % 60, 2) + end
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    private static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }
}
