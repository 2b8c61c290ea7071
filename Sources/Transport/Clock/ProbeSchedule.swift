package import Timing

/// When exchanges are made: dense bursts until the clocks are known, then sparse ones.
package struct ProbeSchedule: Sendable, Hashable {
    /// Exchanges in a burst, each sent when the one before is answered or given up.
    package var burst = 16
    /// From burst to burst in the first time.
    package var quickPause = Interval.milliseconds(50)
    /// From burst to burst later.
    package var steadyPause = Interval.milliseconds(500)
    /// How long after the first answer (or after the host was silent) the quick pause holds.
    package var quickTime = Interval.milliseconds(1500)
    /// How long an answer is waited for before the next request goes out; a later answer counts all the same.
    package var patience = Interval.milliseconds(100)
    /// From burst to burst while nobody answers.
    package var searchPause = Interval.milliseconds(200)

    package init() {}

    /// The pause after a burst, from how long ago the host answered for the first time after silence; nil: it is silent.
    func pause(sinceContact: Interval?) -> Interval {
        guard let sinceContact else { return searchPause }
        return sinceContact < quickTime ? quickPause : steadyPause
    }
}
