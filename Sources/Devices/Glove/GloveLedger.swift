/// Keeps one kind of rows of a glove in order: what came twice, what is missing, what can't be.
///
/// Pure. The glove's own count decides where it has one, else its clock: SyncField's rule of a gap longer than one and a
/// half intervals.
package struct GloveLedger: Sendable {
    package enum Verdict: Sendable, Hashable {
        /// So many rows are missing before it.
        case next(missing: Int64)
        /// It was there before, or it is older than what was: a second delivery.
        case duplicate
        /// Its count jumps further than a link can lose; it is left out, and the next one decides what it was.
        case suspect
        /// The glove's count began anew: it was switched off and on.
        case restarted
    }

    /// A larger step is a damaged frame (TAG frames have no checksum), unless the next one goes on from there.
    private static let mostMissing: Int64 = 1_000_000
    private static let mostMissingByTime: Int64 = 10_000
    /// How far back a repeated row may lie.
    private static let reach: Int64 = 100_000

    private let period: Double
    private var last: UInt32?
    private var suspected: UInt32?
    private var linkWasLost = false
    package private(set) var duplicates: Int64 = 0
    package private(set) var missing: Int64 = 0
    package private(set) var damaged: Int64 = 0

    /// - Parameter rate: rows a second.
    package init(rate: Double) { period = 1e6 / max(rate, 0.001) }

    /// The link was lost: the glove may begin anew.
    package mutating func linkLost() { linkWasLost = true }

    package mutating func judge(_ reading: GloveReading) -> Verdict {
        let number = reading.sequence ?? reading.counter
        guard let last else {
            self.last = number
            linkWasLost = false
            return .next(missing: 0)
        }
        let step = Int64(Int32(bitPattern: number &- last))
        let verdict = reading.sequence != nil ? counted(number, step) : timed(number, step)
        switch verdict {
        case .next(let count):
            self.last = number
            missing += count
            if suspected != nil { damaged += 1 }
            (suspected, linkWasLost) = (nil, false)
        case .restarted:
            self.last = number
            (suspected, linkWasLost) = (nil, false)
        case .duplicate: duplicates += 1
        case .suspect:
            if suspected != nil { damaged += 1 }
            suspected = number
        }
        return verdict
    }

    private func counted(_ number: UInt32, _ step: Int64) -> Verdict {
        if (1...Self.mostMissing).contains(step) { return .next(missing: step - 1) }
        if let suspected, (1...1000).contains(Int64(Int32(bitPattern: number &- suspected))) { return .restarted }
        // After a lost link a count that is near zero is that of a glove that was switched on again.
        if step < 0, linkWasLost, number < 1000, step < -1000 || number < 10 { return .restarted }
        if step <= 0, step > -Self.reach { return .duplicate }
        return .suspect
    }

    private func timed(_ time: UInt32, _ step: Int64) -> Verdict {
        if step <= 0 {
            if let suspected, time > suspected { return .restarted }
            // A clock that begins anew is told from a repeated row by the row after it.
            return step > -Self.reach * 10 ? .duplicate : .suspect
        }
        let rows = Double(step) / period
        guard rows > 2.5 else { return .next(missing: 0) }
        let count = Int64(rows.rounded()) - 1
        // What can't be a loss is told as a gap in time by its stamps.
        return .next(missing: count < Self.mostMissingByTime ? count : 0)
    }
}
