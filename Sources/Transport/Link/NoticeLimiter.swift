internal import Timing

/// Lets one notice of each subject pass in ten seconds and counts the others, so that a stranger can't flood the log.
struct NoticeLimiter {
    private static let pause = Interval.seconds(10)
    private static let maximumSubjects = 256

    private var subjects: [String: (last: Timestamp<HostTime>, held: Int)] = [:]

    /// The text to write, with the number of those that were held back since the last; nil when this one is held back.
    mutating func admit(_ text: String, subject: String, at now: Timestamp<HostTime>) -> String? {
        if let known = subjects[subject], now - known.last < Self.pause {
            subjects[subject] = (known.last, known.held + 1)
            return nil
        }
        let held = subjects[subject]?.held ?? 0
        if subjects.count >= Self.maximumSubjects && subjects[subject] == nil {
            subjects = subjects.filter { now - $0.value.last < Self.pause }
            // So many strangers at once: their lines are all held back until the first are forgotten.
            if subjects.count >= Self.maximumSubjects { return nil }
        }
        subjects[subject] = (now, 0)
        return held == 0 ? text : "\(text) (and \(held) more like it)"
    }
}
