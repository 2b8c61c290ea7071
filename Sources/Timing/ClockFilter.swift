/// Keeps the exchanges of each short slot of time that say the most, over a limited window.
///
/// Queues only ever make an exchange slower, so of a burst the one that was quickest on its way there and the one that was
/// quickest on its way back say all (often it is one exchange), and the others can be forgotten: leaving out an exchange
/// can make a bound wider, never wrong. Memory is bounded by `2 × window / slot`.
package struct ClockFilter<Local: ClockDomain, Remote: ClockDomain>: Sendable {
    /// The length of a slot; the exchanges of one burst should fall into one.
    package let slot: Interval

    /// How far back from the newest exchange the kept ones reach.
    package let window: Interval

    /// The kept exchanges, oldest first, at most two for each slot.
    package private(set) var exchanges: [ClockExchange<Local, Remote>] = []

    package init(slot: Interval = .milliseconds(100), window: Interval = .milliseconds(64_000)) {
        precondition(slot > .zero && window >= slot, "a slot of \(slot) in a window of \(window)")
        self.slot = slot
        self.window = window
    }

    /// The least delay of all that is kept.
    package var leastDelay: Interval? { exchanges.lazy.map(\.delay).min() }

    /// Takes an exchange in; false when it isn't kept: better ones of its slot are known, or it comes too late.
    package mutating func add(_ exchange: ClockExchange<Local, Remote>) -> Bool {
        let number = slotNumber(exchange.sent)
        if let last = exchanges.last, number < slotNumber(last.sent) { return false }
        var rivals: [ClockExchange<Local, Remote>] = []
        while let last = exchanges.last, rivals.count < 2, slotNumber(last.sent) == number {
            rivals.append(exchanges.removeLast())
        }
        let isKept = rivals.isEmpty || !isDominated(exchange, rivals)
        exchanges += isKept ? best(rivals.reversed() + [exchange]) : rivals.reversed()
        let oldest = exchange.sent - window
        if let first = exchanges.firstIndex(where: { $0.sent >= oldest }) { exchanges.removeFirst(first) }
        return isKept
    }

    /// Forgets all but the newest exchanges.
    package mutating func keepNewest(_ count: Int) {
        exchanges.removeFirst(max(0, exchanges.count - max(0, count)))
    }

    /// Whether others of its slot are as quick in both directions.
    private func isDominated(
        _ exchange: ClockExchange<Local, Remote>, _ rivals: [ClockExchange<Local, Remote>]
    ) -> Bool {
        rivals.contains { $0.forward <= exchange.forward } && rivals.contains { $0.backward >= exchange.backward }
    }

    /// The quickest there and the quickest back, in their order; one, when it is the same.
    private func best(_ all: [ClockExchange<Local, Remote>]) -> [ClockExchange<Local, Remote>] {
        guard let there = all.indices.min(by: { all[$0].forward < all[$1].forward }),
            let back = all.indices.max(by: { all[$0].backward < all[$1].backward })
        else { return all }
        return there == back ? [all[there]] : [all[min(there, back)], all[max(there, back)]]
    }

    private func slotNumber(_ instant: Timestamp<Local>) -> Int64 {
        let (quotient, remainder) = instant.nanoseconds.quotientAndRemainder(dividingBy: slot.nanoseconds)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
