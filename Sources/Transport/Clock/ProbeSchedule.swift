package import Timing

/// When exchanges are made: dense bursts until the clocks are known, then sparse ones, and denser ones again when less is
/// known than could be.
package struct ProbeSchedule: Sendable, Hashable {
    /// Exchanges in a burst, each sent when the one before is answered or given up.
    package var quickBurst = 16
    package var steadyBurst = 8
    /// From burst to burst in the first time.
    package var quickPause = Interval.milliseconds(50)
    /// From burst to burst later.
    package var steadyPause = Interval.milliseconds(1000)
    /// From burst to burst when the path is slower than it was, or loses datagrams: so the bound grows least.
    package var disturbedPause = Interval.milliseconds(250)
    /// How long after the first answer, after silence, or after a surprise the quick pause holds.
    package var quickTime = Interval.milliseconds(1500)
    /// How long an answer is waited for before the next request goes out; a later answer counts all the same.
    package var patience = Interval.milliseconds(100)
    /// From burst to burst while nobody answers.
    package var searchPause = Interval.milliseconds(200)
    /// With many hosts each has its turn more seldom: so much of a pause for each of them.
    ///
    /// 64 hosts: 2.6 s, which costs the coordinator under 2 % of a core and the bounds some tenths of a µs.
    package var shareOfHost = Interval.milliseconds(40)

    package init() {}
}

/// How fast the exchanges with one host go; pure.
struct ProbePace: Sendable {
    let schedule: ProbeSchedule
    private var quickUntil: Timestamp<RigTime>?
    private var isDisturbed = false
    private var isKnown = false
    /// The least delay of each of the last bursts.
    private var delays: [Interval] = []

    init(schedule: ProbeSchedule) { self.schedule = schedule }

    /// How many exchanges the next burst has.
    func burst(at now: Timestamp<RigTime>) -> Int {
        max(1, isQuick(at: now) || isDisturbed || !isKnown ? schedule.quickBurst : schedule.steadyBurst)
    }

    /// The pause after a burst, when so many hosts are probed.
    func pause(at now: Timestamp<RigTime>, hosts: Int = 1) -> Interval {
        let share = schedule.shareOfHost * Int64(hosts)
        guard isKnown else { return schedule.searchPause }
        if isQuick(at: now) { return schedule.quickPause }
        return isDisturbed ? max(schedule.disturbedPause, share / 4) : max(schedule.steadyPause, share)
    }

    /// Takes a burst's outcome in: its least delay, nil when nothing was answered.
    mutating func note(sent: Int, answered: Int, leastDelay: Interval?, at now: Timestamp<RigTime>) {
        guard answered > 0, let leastDelay else {
            isDisturbed = isKnown
            return
        }
        if !isKnown { hurry(at: now) }
        isKnown = true
        let usual = delays.min() ?? leastDelay
        // Twice the usual delay doubles the bound; below 20 µs more it isn't worth the datagrams.
        isDisturbed = leastDelay > usual * 2 + .microseconds(20) || answered * 4 < sent * 3
        delays.append(leastDelay)
        if delays.count > 60 { delays.removeFirst() }
    }

    /// The host has fallen silent for good: the search begins anew.
    mutating func lost() {
        isKnown = false
        delays = []
    }

    /// Something about the clocks was a surprise: they are to be known anew soon.
    mutating func hurry(at now: Timestamp<RigTime>) { quickUntil = now + schedule.quickTime }

    private func isQuick(at now: Timestamp<RigTime>) -> Bool { quickUntil.map { now < $0 } ?? false }
}
