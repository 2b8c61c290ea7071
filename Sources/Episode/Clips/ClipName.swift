internal import Platform
package import Timing

/// A clip's file name on the camera's card: `VID_20260401_120000_00_007.mp4`, or `.insv`.
package struct ClipName: Sendable, Hashable {
    package let name: String
    /// What the camera's clock showed at the start of the file, read as if it were UTC.
    package let begin: Timestamp<WallTime>
    /// The last number.
    package let index: Int

    /// Nil for what is no clip: previews (`LRV_…`), photos, and names of another shape.
    package init?(_ path: String) {
        let name = FilePath.name(of: path)
        let lower = name.lowercased()
        guard lower.hasSuffix(".mp4") || lower.hasSuffix(".insv"), !lower.contains("lrv"), lower.hasPrefix("vid_"),
            let dot = name.lastIndex(of: ".")
        else { return nil }
        let parts = name[..<dot].split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 5, parts.allSatisfy({ !$0.isEmpty }), let index = Int(parts[4]), index >= 0,
            let begin = UTC.instant(date: parts[1], clock: parts[2])
        else { return nil }
        (self.name, self.begin, self.index) = (name, begin, index)
    }
}

extension UTC {
    /// `20260401` and `120000` as an instant; nil when they are no date and time.
    static func instant(date: some StringProtocol, clock: some StringProtocol) -> Timestamp<WallTime>? {
        guard date.utf8.count == 8, clock.utf8.count == 6, date.utf8.allSatisfy({ (48...57).contains($0) }),
            clock.utf8.allSatisfy({ (48...57).contains($0) }), let day = Int64(date), let time = Int64(clock)
        else { return nil }
        return instant(
            year: day / 10_000, month: day / 100 % 100, day: day % 100, hour: time / 10_000, minute: time / 100 % 100,
            second: time % 100)
    }

    /// `2026-04-11T15:29:30Z`, with or without a fraction, which is passed over; nil for other shapes and zones.
    static func parse(_ text: String) -> Timestamp<WallTime>? {
        guard text.utf8.count <= 40, text.hasSuffix("Z"), let middle = text.firstIndex(of: "T") else { return nil }
        let clock = text[text.index(after: middle)...].dropLast().prefix { $0 != "." }
        return instant(
            date: String(text[..<middle].filter { $0 != "-" }), clock: String(clock.filter { $0 != ":" }))
    }

    private static func instant(
        year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64
    ) -> Timestamp<WallTime>? {
        guard (1970...2200).contains(year), (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
            second < 61
        else { return nil }
        // Days since 0000-03-01, as in `init`.
        let shifted = month <= 2 ? year - 1 : year
        let fromMarch = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * fromMarch + 2) / 5 + day - 1
        let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
        let instant = Timestamp<WallTime>(
            nanoseconds: (days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000_000_000)
        // A 31st of April comes out as the 1st of May.
        let check = UTC(instant)
        return check.day == day && check.month == month ? instant : nil
    }
}
