/// Makes of a counter that begins anew a time line that doesn't, and notices when the device itself began anew.
///
/// A sample can't come from the future, and it isn't older than the link could hold back. So of all instants which the
/// counter may mean, the latest that isn't in the future is the right one, also after a silence in which the counter
/// went around several times. "Now" on the device's clock is known from the quickest arrival so far, loosened by
/// 1050 ppm of the time since.
///
/// A value that fits nowhere is either damaged or the first after a reset: the next value decides which. An `epoch` is a
/// stretch in which the device's clock ran through; device stamps of two epochs can't be compared.
package struct CounterUnwrapper: Sendable {
    package enum Outcome: Sendable, Hashable {
        /// It goes on as expected.
        case continuous
        /// It doesn't fit what came before; the next one tells whether it was damaged.
        case suspect
        /// It doesn't fit what came before, but the one before it: the device's clock began anew.
        case newEpoch
    }

    package struct Reading: Sendable, Hashable {
        /// Unwrapped, since the counter's zero in this epoch.
        package var device: Timestamp<DeviceTime>
        package var epoch: Int
        package var outcome: Outcome
    }

    private struct Anchor {
        var ticks: Int64
        /// The greatest of `ticks − arrival` so far, in ticks: the quickest arrival.
        var lead: Int64
        var arrival: Timestamp<HostTime>
    }

    /// How far a device's clock may be from its nominal rate.
    private static let skewPPM: Int64 = 1050
    /// What an arrival's stamp and the first packets' delays may make a sample look younger by.
    private static let future = Interval.milliseconds(100)
    /// A BLE link that is silent for longer is lost: its supervision time-out is at most 32 s.
    private static let mostHeldBack = Interval.milliseconds(35_000)
    /// How far back a late duplicate may lie behind its successors.
    private static let reordering = Interval.milliseconds(1000)
    /// What a device may have kept over a lost link.
    private static let keptOverLoss = Interval.milliseconds(2000)

    package let shape: CounterShape
    /// Counts up with each new beginning of the device's clock.
    package private(set) var epoch = 0
    /// Values that fitted nowhere, and were not the first of a new epoch.
    package private(set) var damaged: Int64 = 0

    private var anchor: Anchor?
    private var suspect: Anchor?
    private var lostLink = false

    package init(_ shape: CounterShape) { self.shape = shape }

    /// Tells that the link was lost: the device may have been switched off and on before the next value.
    package mutating func linkLost() { lostLink = true }

    /// Takes in the counter of a sample that arrived now; bits above the counter's width are ignored.
    package mutating func unwrap(_ raw: UInt64, arrival: Timestamp<HostTime>) -> Reading {
        let raw = shape.bits == 64 ? raw : raw & ((1 << UInt64(shape.bits)) - 1)
        let value = Int64(clamping: raw)
        guard let known = anchor else {
            anchor = fresh(value, arrival)
            lostLink = false
            return reading(value, .continuous)
        }
        if let ticks = place(value, arrival, after: known) {
            advance(&anchor, to: ticks, arrival)
            if suspect != nil {
                suspect = nil
                damaged += 1
            }
            lostLink = false
            return reading(ticks, .continuous)
        }
        if let other = suspect, let ticks = place(value, arrival, after: other) {
            anchor = other
            suspect = nil
            lostLink = false
            advance(&anchor, to: ticks, arrival)
            epoch += 1
            return reading(ticks, .newEpoch)
        }
        if suspect != nil { damaged += 1 }
        suspect = fresh(value, arrival)
        return reading(value, .suspect)
    }

    // MARK: Private

    private func reading(_ ticks: Int64, _ outcome: Outcome) -> Reading {
        Reading(
            device: Timestamp(nanoseconds: shape.nanoseconds(ofTicks: ticks)), epoch: epoch, outcome: outcome)
    }

    private func fresh(_ value: Int64, _ arrival: Timestamp<HostTime>) -> Anchor {
        Anchor(ticks: value, lead: value.saturatingSubtract(hostTicks(arrival)), arrival: arrival)
    }

    private func hostTicks(_ instant: Timestamp<HostTime>) -> Int64 {
        shape.ticks(of: .nanoseconds(instant.nanoseconds))
    }

    /// What a clock at the limit of its rate gains or loses in a time.
    private func drift(_ elapsed: Interval) -> Int64 {
        shape.ticks(of: Interval(nanoseconds: elapsed.magnitude.nanoseconds / 1_000_000) * Self.skewPPM)
    }

    private func advance(_ anchor: inout Anchor?, to ticks: Int64, _ arrival: Timestamp<HostTime>) {
        guard let old = anchor else { return }
        let loosened = old.lead.saturatingSubtract(drift(arrival - old.arrival))
        let lead = max(loosened, ticks.saturatingSubtract(hostTicks(arrival)))
        anchor = Anchor(ticks: max(old.ticks, ticks), lead: lead, arrival: max(old.arrival, arrival))
    }

    /// The instant that a value means, when it can be one after what is known.
    private func place(_ value: Int64, _ arrival: Timestamp<HostTime>, after known: Anchor) -> Int64? {
        let elapsed = arrival - known.arrival
        let now = hostTicks(arrival).saturatingAdd(known.lead)
        let slack = shape.ticks(of: Self.future).saturatingAdd(drift(elapsed).saturatingMultiply(2))
        // One tick more: both clocks round down.
        let latest = now.saturatingAdd(slack).saturatingAdd(1)
        let ticks: Int64
        var heldBack = shape.ticks(of: lostLink ? Self.keptOverLoss : Self.mostHeldBack).saturatingAdd(slack)
        if shape.bits < 63 {
            let period = Int64(1) << Int64(shape.bits)
            let (rounds, _) = floored(latest.saturatingSubtract(value), by: period)
            ticks = rounds.saturatingMultiply(period).saturatingAdd(value)
            heldBack = min(heldBack, period - period / 10)
        } else {
            ticks = value
        }
        let isOld = now.saturatingSubtract(ticks) > heldBack
        let back = lostLink ? 0 : shape.ticks(of: Self.reordering)
        let isBefore = ticks < known.ticks.saturatingSubtract(back)
        return ticks > latest || isOld || isBefore ? nil : ticks
    }

    private func floored(_ value: Int64, by divisor: Int64) -> (Int64, Int64) {
        let (quotient, rest) = value.quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? (quotient - 1, rest + divisor) : (quotient, rest)
    }
}
