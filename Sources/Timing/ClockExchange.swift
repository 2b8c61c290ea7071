/// One exchange with four stamps between a local and a remote clock, as in NTP and PTP.
///
/// `sent` and `received` are of the local clock, `arrived` and `answered` of the remote one.
package struct ClockExchange<Local: ClockDomain, Remote: ClockDomain>: Sendable, Hashable {
    package var sent: Timestamp<Local>
    package var arrived: Timestamp<Remote>
    package var answered: Timestamp<Remote>
    package var received: Timestamp<Local>

    /// How the local clock was steered, read between `sent` and `received` (or right before); nil: not known.
    package var localDiscipline: DisciplineReading?

    /// How the remote clock was steered, read between `arrived` and `answered`; nil: not known.
    package var remoteDiscipline: DisciplineReading?

    package init(
        sent: Timestamp<Local>, arrived: Timestamp<Remote>, answered: Timestamp<Remote>, received: Timestamp<Local>,
        localDiscipline: DisciplineReading? = nil, remoteDiscipline: DisciplineReading? = nil
    ) {
        self.sent = sent
        self.arrived = arrived
        self.answered = answered
        self.received = received
        self.localDiscipline = localDiscipline
        self.remoteDiscipline = remoteDiscipline
    }

    /// Time on the wire in both directions together; negative only when a stamp is wrong.
    package var delay: Interval { (received - sent) - (answered - arrived) }

    /// Remote minus local clock, taking both directions as equally long.
    ///
    /// The true offset lies within half the delay of it, whatever the asymmetry of the path: a message can't arrive
    /// before it was sent.
    package var offset: Interval {
        // The mean without overflow: both are differences of 63-bit clocks.
        Interval(nanoseconds: (forward >> 1) + (backward >> 1) + (forward & backward & 1))
    }

    /// The local instant that the offset belongs to.
    package var midpoint: Timestamp<Local> { sent + (received - sent) / 2 }

    /// Arrived minus sent in ns: remote minus local clock is at most that.
    var forward: Int64 { arrived.nanoseconds &- sent.nanoseconds }

    /// Answered minus received in ns: remote minus local clock is at least that.
    var backward: Int64 { answered.nanoseconds &- received.nanoseconds }

    /// Whether both ends said how their clocks are steered.
    var isFollowed: Bool { localDiscipline != nil && remoteDiscipline != nil }
}
