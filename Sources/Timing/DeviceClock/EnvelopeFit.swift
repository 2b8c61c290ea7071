/// The line from a device's clock to host time which no arrival contradicts: a lower envelope.
///
/// Each sample arrives some delay after it was taken: arrival = line(device) + delay, delay ≥ 0. Delays come in bursts
/// (a BLE connection event, a USB transfer), so their mean says little; but the quickest arrivals lie along the true line.
/// The device's time is cut into slots; of each slot the quickest arrival is kept. The lower convex hull of these is below
/// all arrivals, and its edge over the middle of the window is the line (Moon, Skelly and Towsley 1999). Slopes beyond the
/// limit of a clock's skew are refused.
///
/// **The uncertainty** follows from what the fit sees. With n arrivals whose delays are spread over B, the quickest of them
/// is late by less than 3·B/n in 95 % of cases; a line by two such points, by twice that. Where the quickest arrivals of
/// the window's eighths don't lie on one line (the clock's rate wanders, the link is slow for a while), half of them are
/// off by more than their median, which is therefore the floor. Away from the middle of the window the skew's uncertainty is added:
/// the same lateness over half the window, at most what a clock can do at all. Before there are enough arrivals to show
/// their spread, the worst burst of the link stands for it.
///
/// A link that delivers at the points of a grid can be locked to the sampling: each sample then waits as long as the one
/// before it, and no arrival is quick. Where waits of all lengths up to the grid's occur, there is no such lock; where
/// they leave a hole, all arrivals may be later than they seem by up to the length of the largest hole, and this is added
/// to the uncertainty. As far as the hole is larger than chance makes one, the line is put into its middle. What remains
/// unseen is a delay that all arrivals have: see `DeviceClock`.
package struct EnvelopeFit: Sendable {
    package struct Limits: Sendable, Hashable {
        /// The largest relative rate error, as a ratio: 1000 ppm and some room.
        package var skew = 1.05e-3
        /// The length of a slot on the device's clock.
        package var slot = Interval.milliseconds(500)
        /// How much of the past counts: a minute, in which a quartz changes its rate by far less than 1 ppm.
        package var window = Interval.milliseconds(60_000)
        /// The spread of delays to expect before it has been seen.
        package var burst = Interval.milliseconds(50)
        /// The time between two instants at which the link can deliver; zero when it delivers at any time.
        package var grid = Interval.zero
        /// How much the link's own delay varies from one delivery to the next.
        package var transfer = Interval.zero

        package init() {}
    }

    private struct Slot {
        /// The slot's number since the first sample.
        var number: Int64
        /// The quickest arrival: seconds on the device's clock, and ns of arrival beyond the first one's line.
        var x: Double
        var y: Double
        /// The slowest arrival, as `y`.
        var slowest: Double
        var count: Int
        /// Some of its arrivals.
        var some: [(x: Double, y: Double)]

        /// Each arrival stays with the same chance (reservoir sampling); a stride could beat with the link's grid.
        mutating func remember(_ x: Double, _ y: Double, most: Int) {
            guard some.count >= most else { return some.append((x, y)) }
            // Knuth's multiplicative hash in place of a generator.
            let place = Int((UInt32(truncatingIfNeeded: count) &* 2_654_435_761) >> 8) % max(count, 1)
            if place < most { some[place] = (x, y) }
        }
    }

    /// Parts of the window whose quickest arrivals are compared.
    private static let groups = 8
    /// Arrivals of a slot that are looked at for holes.
    private static let some = 16
    /// Arrivals before their own spread is believed.
    private static let enough = 32
    /// Slots that are kept, however old, after a silence.
    private static let fewest = 8

    package let limits: Limits
    private var firstDevice: Timestamp<DeviceTime>?
    private var firstArrival = Timestamp<HostTime>(nanoseconds: 0)
    private var slots: [Slot] = []
    // The line: y = level + slope · (x − middle), in ns and ns/s.
    private var middle = 0.0
    private var level = 0.0
    private var slope = 0.0
    private var late = 0.0
    private var hole = 0.0
    private var shift = 0.0
    private var slopeError = 0.0

    package init(limits: Limits = Limits()) {
        self.limits = limits
        late = Double(limits.burst.nanoseconds)
        hole = Double(limits.grid.nanoseconds)
        slopeError = limits.skew * 1e9
    }

    /// Whether anything is known at all.
    package var isEmpty: Bool { slots.isEmpty }

    /// How much faster the device's clock runs than the host's, ppm; nil as long as it isn't known to 100 ppm.
    package var skewPPM: Double? {
        guard !slots.isEmpty, slopeError <= 100e3 else { return nil }
        // Host seconds for a device's second are 1 + slope; the device is fast when they are fewer.
        return (1 / (1 + slope / 1e9) - 1) * 1e6
    }

    /// The uncertainty of `skewPPM`.
    package var skewUncertaintyPPM: Double { slopeError / 1e3 }

    /// Takes in an arrival; of a packet with several samples that of its newest.
    package mutating func add(_ device: Timestamp<DeviceTime>, arrival: Timestamp<HostTime>) {
        if firstDevice == nil {
            firstDevice = device
            firstArrival = arrival
        }
        let x = seconds(device)
        let y = Double((arrival - firstArrival).nanoseconds) - x * 1e9
        let number = Int64((x / max(limits.slot.seconds, 1e-3)).rounded(.down))
        let isBelow = slots.isEmpty || y < line(at: x)
        if let last = slots.indices.last, slots[last].number >= number {
            // A late one of an older slot counts in the newest: only the quickest arrivals matter.
            slots[last].count += 1
            slots[last].remember(x, y, most: Self.some)
            slots[last].slowest = max(slots[last].slowest, y)
            if y - slope * x < slots[last].y - slope * slots[last].x { (slots[last].x, slots[last].y) = (x, y) }
            if isBelow { fit() }
        } else {
            slots.append(Slot(number: number, x: x, y: y, slowest: y, count: 1, some: [(x, y)]))
            forget(before: x)
            fit()
        }
    }

    /// The host time of a device time, with what it may be off by; nil before the first arrival.
    package func place(_ device: Timestamp<DeviceTime>) -> (host: Timestamp<HostTime>, uncertainty: Interval)? {
        guard !slots.isEmpty else { return nil }
        let x = seconds(device)
        // The whole seconds stay integers: a double has 53 bits, and a day is 47 of them.
        let host = firstArrival + (device - (firstDevice ?? device)) + .seconds((line(at: x) - shift) / 1e9)
        return (host, .seconds((late + hole + slopeError * abs(x - middle)) / 1e9))
    }

    // MARK: Private

    private func seconds(_ device: Timestamp<DeviceTime>) -> Double { (device - (firstDevice ?? device)).seconds }

    private func line(at x: Double) -> Double { level + slope * (x - middle) }

    /// Looks for lengths of wait up to the grid's that don't occur.
    private mutating func findHole() {
        let grid = Double(limits.grid.nanoseconds)
        guard grid > 0 else { return }
        let waits = slots.flatMap(\.some).map { $0.y - line(at: $0.x) }.filter { $0 < grid }.sorted()
        hole = zip([0] + waits, waits + [grid]).reduce(0) { max($0, $1.1 - $1.0) }
        // n points that are thrown at random leave a largest gap of about (ln n + 1) / n; twice that is rare.
        let chance = 2 * grid * (Self.logarithm(waits.count) + 1) / Double(waits.count + 1)
        shift = max(0, hole - chance) / 2
        // Locked waits are smeared by the transfer, which makes holes look smaller than they are.
        hole += min(hole, Double(limits.transfer.nanoseconds)) - shift
    }

    /// The natural logarithm, rounded up to a multiple of ln 2.
    private static func logarithm(_ count: Int) -> Double {
        0.6931471805599453 * Double(Int.bitWidth - count.leadingZeroBitCount)
    }

    private mutating func forget(before x: Double) {
        let oldest = x - limits.window.seconds
        let surplus = slots.count - Self.fewest
        guard surplus > 0 else { return }
        let old = slots.prefix(surplus).prefix { $0.x < oldest }.count
        // Also when the device's clock stands still: never more slots than the window has.
        let most = Int((limits.window.seconds / max(limits.slot.seconds, 1e-3)).rounded(.up)) + Self.fewest
        slots.removeFirst(max(old, slots.count - most, 0))
    }

    private mutating func fit() {
        guard let first = slots.first, let last = slots.last else { return }
        middle = (first.x + last.x) / 2
        let most = limits.skew * 1e9
        let edge = edge()
        slope = min(max(edge, -most), most)
        // The highest line of this slope that is above no arrival.
        level = slots.reduce(Double.infinity) { min($0, $1.y - slope * ($1.x - middle)) }
        judge(span: last.x - first.x)
    }

    /// The slope of the lower hull's edge over the middle (Andrew's monotone chain); the points are in order.
    private func edge() -> Double {
        var hull: [Slot] = []
        hull.reserveCapacity(slots.count)
        for slot in slots {
            while hull.count >= 2 {
                let (a, b) = (hull[hull.count - 2], hull[hull.count - 1])
                guard (b.x - a.x) * (slot.y - a.y) <= (b.y - a.y) * (slot.x - a.x) else { break }
                hull.removeLast()
            }
            hull.append(slot)
        }
        for index in hull.indices.dropFirst() where hull[index].x >= middle {
            let (a, b) = (hull[index - 1], hull[index])
            return b.x > a.x ? (b.y - a.y) / (b.x - a.x) : 0
        }
        return 0
    }

    private mutating func judge(span: Double) {
        let unsorted = slots.map { $0.y - line(at: $0.x) }
        let group = (slots.count + Self.groups - 1) / Self.groups
        let floors = stride(from: 0, to: slots.count, by: group).compactMap {
            unsorted[$0..<min($0 + group, slots.count)].min()
        }.sorted()
        let lateness = unsorted.sorted()
        let spreads = slots.map { $0.slowest - $0.y }.sorted()
        let count = slots.reduce(0) { $0 + $1.count }
        var spread = max(spreads[spreads.count * 3 / 4], lateness[lateness.count * 9 / 10])
        if count < Self.enough { spread = max(spread, Double(limits.burst.nanoseconds)) }
        late = max(min(spread, 6 * spread / Double(count)), floors[floors.count / 2])
        findHole()
        slopeError = min(2 * limits.skew * 1e9, span > 0 ? 2 * late / span : .infinity)
    }
}
