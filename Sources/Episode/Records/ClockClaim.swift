internal import Platform
package import Timing

/// What a machine's own daemons say of its wall clock: chrony, NTP, PTP.
///
/// It is recorded beside what was measured.
package struct ClockClaim: Codable, Sendable, Hashable {
    /// Whether the kernel holds the clock for synchronized.
    package var isSynchronized: Bool
    /// The known daemons that run, by the names of their processes.
    package var daemons: [String]
    /// What is still left to be slewed away.
    package var offset: Interval
    /// The rate that was set, against the oscillator's nominal one.
    package var frequencyPPM: Double
    /// What the clock is said to be wrong by, at most and likely.
    package var maximumError: Interval
    package var estimatedError: Interval
    /// TAI minus UTC as the kernel was told it; zero when nobody has.
    package var taiOffsetSeconds: Int

    package init(
        isSynchronized: Bool, daemons: [String] = [], offset: Interval = .zero, frequencyPPM: Double = 0,
        maximumError: Interval, estimatedError: Interval = .zero, taiOffsetSeconds: Int = 0
    ) {
        self.isSynchronized = isSynchronized
        self.daemons = daemons
        self.offset = offset
        self.frequencyPPM = frequencyPPM
        self.maximumError = maximumError
        self.estimatedError = estimatedError
        self.taiOffsetSeconds = taiOffsetSeconds
    }

    private static let known: Set<String> = [
        "chronyd", "ntpd", "ntpd-rs", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys", "ts2phc", "timemaster",
    ]
    private static let precise: Set<String> = ["ptp4l", "phc2sys", "ts2phc", "timemaster"]

    /// What is claimed now; nil when the kernel doesn't say.
    ///
    /// It reads the names of all processes: a few ms.
    package static var now: ClockClaim? {
        guard let kernel = ClockDiscipline.kernel else { return nil }
        var daemons: Set<String> = []
        for process in (try? Files.list("/proc")) ?? [] where process.utf8.allSatisfy({ (48...57).contains($0) }) {
            guard let bytes = try? Files.read("/proc/\(process)/comm", limit: 64) else { continue }
            let name = String(decoding: bytes.filter { $0 != 0x0A }, as: UTF8.self)
            if known.contains(name) { daemons.insert(name) }
        }
        return ClockClaim(
            isSynchronized: kernel.isSynchronized, daemons: daemons.sorted(), offset: kernel.offset,
            frequencyPPM: kernel.frequency * 1e6, maximumError: kernel.maximumError,
            estimatedError: kernel.estimatedError, taiOffsetSeconds: kernel.taiOffset)
    }

    /// What the daemons vouch for; nil when none does.
    ///
    /// The PTP daemons don't tell the kernel their error: they are held to 1 ms, a thousand times what they claim.
    package var vouched: Interval? {
        if isSynchronized { return maximumError + offset.magnitude }
        return daemons.contains(where: Self.precise.contains) ? .milliseconds(1) : nil
    }

    /// For a sentence: "chronyd, within 12 ms".
    package var words: String {
        let names = daemons.isEmpty ? "an unknown daemon" : daemons.joined(separator: " and ")
        return vouched.map { "\(names), within \(VerdictRules.text($0))" } ?? "nobody"
    }

    private enum CodingKeys: String, CodingKey {
        case isSynchronized = "synchronized"
        case daemons
        case offset = "offset_ns"
        case frequencyPPM = "frequency_ppm"
        case maximumError = "max_error_ns"
        case estimatedError = "estimated_error_ns"
        case taiOffsetSeconds = "tai_offset_s"
    }
}
