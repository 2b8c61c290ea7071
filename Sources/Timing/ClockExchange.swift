/// One exchange with four stamps between a local and a remote clock, as in NTP and PTP.
///
/// `sent` and `received` are of the local clock, `arrived` and `answered` of the remote one.
package struct ClockExchange<Local: ClockDomain, Remote: ClockDomain>: Sendable, Hashable {
    package var sent: Timestamp<Local>
    package var arrived: Timestamp<Remote>
    package var answered: Timestamp<Remote>
    package var received: Timestamp<Local>

    package init(
        sent: Timestamp<Local>, arrived: Timestamp<Remote>, answered: Timestamp<Remote>, received: Timestamp<Local>
    ) {
        self.sent = sent
        self.arrived = arrived
        self.answered = answered
        self.received = received
    }

    /// Time on the wire in both directions together; negative only when a stamp is wrong.
    package var delay: Interval { (received - sent) - (answered - arrived) }

    /// Remote minus local clock, taking both directions as equally long.
    ///
    /// The true offset lies within half the delay of it, whatever the asymmetry of the path: a message can't arrive
    /// before it was sent.
    package var offset: Interval {
        let forward = arrived.nanoseconds &- sent.nanoseconds
        let backward = answered.nanoseconds &- received.nanoseconds
        // The mean without overflow: both are differences of 63-bit clocks.
        return Interval(nanoseconds: (forward >> 1) + (backward >> 1) + (forward & backward & 1))
    }

    /// The local instant that the offset belongs to.
    package var midpoint: Timestamp<Local> { sent + (received - sent) / 2 }
}
