/// Keeps the least delayed exchange of each short slot of time, over a limited window.
///
/// Queues only ever make an exchange slower, so the least delayed one of a burst says the most about the clocks, and the
/// others can be forgotten: leaving out an exchange can make a bound wider, never wrong. Memory is bounded by
/// `window / slot`.
package struct ClockFilter<Local: ClockDomain, Remote: ClockDomain>: Sendable {
    /// The length of a slot; the exchanges of one burst should fall into one.
    package let slot: Interval

    /// How far back from the newest exchange the kept ones reach.
    package let window: Interval

    /// The kept exchanges, oldest first, at most one for each slot.
    package private(set) var exchanges: [ClockExchange<Local, Remote>] = []

    package init(slot: Interval = .milliseconds(100), window: Interval = .milliseconds(64_000)) {
        precondition(slot > .zero && window >= slot, "a slot of \(slot) in a window of \(window)")
        self.slot = slot
        self.window = window
    }

    /// The least delay of all that is kept.
    package var leastDelay: Interval? { exchanges.lazy.map(\.delay).min() }

    /// Takes an exchange in; false when it isn't kept: a better one of its slot is known, or it comes too late.
    package mutating func add(_ exchange: ClockExchange<Local, Remote>) -> Bool {
        if let last = exchanges.last {
            let (old, new) = (slotNumber(last.sent), slotNumber(exchange.sent))
            if new < old || new == old && last.delay <= exchange.delay { return false }
            if new == old { exchanges.removeLast() }
        }
        exchanges.append(exchange)
        let oldest = exchange.sent - window
        if let first = exchanges.firstIndex(where: { $0.sent >= oldest }) { exchanges.removeFirst(first) }
        return true
    }

    /// Forgets all but the newest exchanges.
    package mutating func keepNewest(_ count: Int) {
        exchanges.removeFirst(max(0, exchanges.count - max(0, count)))
    }

    private func slotNumber(_ instant: Timestamp<Local>) -> Int64 {
        let (quotient, remainder) = instant.nanoseconds.quotientAndRemainder(dividingBy: slot.nanoseconds)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
