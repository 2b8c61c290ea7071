package import Timing

/// From the notifications of a WitMotion sensor to samples and events.
///
/// Pure; used by one thread. The frames have neither a counter nor a stamp. But the sensor takes them at an even pace, so
/// the count of frames is its clock: it is mapped to host time by the envelope of arrivals, as a counter is, and may be
/// 2 % off its nominal rate. Frames that the sensor drops show as arrivals that are late for good; they are told as lost
/// when a second has passed in which no arrival was in time.
package struct WitMotionFlow: Sendable {
    package enum Action: Sendable {
        case deliver(Sample)
        case report(DeviceEvent)
    }

    /// Motions so far.
    package private(set) var rows: Int64 = 0
    /// The last value of a register that was asked for: its number and what it holds.
    package private(set) var register: (number: UInt16, value: UInt16)?

    private let period: Interval
    private let limits: EnvelopeFit.Limits
    private let path: DeviceClock.Path
    private var decoder = WitMotionDecoder()
    private var fit: EnvelopeFit
    /// The sensor's clock in periods.
    private var count: Int64 = 0
    private var sinceFit: Int64 = 0
    private var last: Timestamp<HostTime>?
    private var gap: (from: Timestamp<HostTime>, cause: String)?
    /// The quickest arrival of a second: how late it was, and when the second began.
    private var quickest: (late: Interval, since: Timestamp<HostTime>)?

    package init(rate: Double, path: DeviceClock.Path) {
        period = .seconds(1 / rate)
        self.path = path
        var limits = EnvelopeFit.Limits()
        limits.skew = 0.02
        limits.burst = path.burst
        limits.grid = path.grid
        self.limits = limits
        fit = EnvelopeFit(limits: limits)
    }

    /// A take begins: what was missed before is not its matter.
    package mutating func begin() { gap = nil }

    /// The link was lost: the count means nothing across it.
    package mutating func interrupted(_ cause: String) {
        decoder.restart()
        fit = EnvelopeFit(limits: limits)
        (count, sinceFit, quickest) = (0, 0, nil)
        if gap == nil, let last { gap = (last, cause) }
    }

    /// Takes in a notification.
    package mutating func take(_ bytes: [UInt8], at arrival: Timestamp<HostTime>) -> [Action] {
        var actions: [Action] = []
        var motions: [[Double]] = []
        for frame in decoder.take(bytes) {
            switch frame {
            case .motionCounts: if let values = frame.values { motions.append(values) }
            case .register(let number, let values): register = (number, UInt16(bitPattern: values.first ?? 0))
            case .time: break
            }
        }
        guard !motions.isEmpty else { return [] }
        let lost = missed(by: arrival, Int64(motions.count))
        let first = count
        count += Int64(motions.count)
        fit.add(device(count - 1), arrival: arrival)
        for (index, values) in motions.enumerated() {
            deliver(values, first + Int64(index), arrival, lost: index == 0 ? lost : 0, &actions)
        }
        return actions
    }

    // MARK: Private

    private func device(_ count: Int64) -> Timestamp<DeviceTime> {
        Timestamp(nanoseconds: (period * count).nanoseconds)
    }

    /// How many frames the sensor must have dropped; the count goes on by them.
    private mutating func missed(by arrival: Timestamp<HostTime>, _ new: Int64) -> Int64 {
        sinceFit += new
        guard let placed = fit.place(device(count + new - 1)), period * sinceFit > .milliseconds(5000) else { return 0 }
        let late = arrival - placed.host
        guard let known = quickest else {
            quickest = (late, arrival)
            return 0
        }
        quickest = (min(late, known.late), known.since)
        guard arrival - known.since >= .milliseconds(1000) else { return 0 }
        let least = min(late, known.late)
        quickest = nil
        let allowed = max(period * 3 / 2, placed.uncertainty + period)
        guard least > allowed else { return 0 }
        let dropped = Int64((least.seconds / period.seconds).rounded())
        count += dropped
        return dropped
    }

    private mutating func deliver(
        _ values: [Double], _ index: Int64, _ arrival: Timestamp<HostTime>, lost: Int64, _ actions: inout [Action]
    ) {
        rows += 1
        let (least, most) = (path.leastDelay.lowerBound, path.leastDelay.upperBound)
        var (capture, uncertainty) = (arrival, path.burst)
        if let placed = fit.place(device(index)) { (capture, uncertainty) = (placed.host, placed.uncertainty) }
        capture = min(capture - (least + most) / 2, arrival)
        uncertainty = uncertainty + (most - least) / 2
        if let last, capture < last {
            uncertainty = uncertainty + (last - capture)
            capture = last
        }
        if let open = gap {
            actions.append(.report(.gap(from: min(open.from, capture), to: capture, cause: open.cause)))
            gap = nil
        } else if lost > 0 {
            actions.append(.report(.lost(count: lost, before: capture)))
        }
        last = capture
        actions.append(
            .deliver(
                Sample(payload: .values(values), capture: capture, uncertainty: uncertainty, arrival: arrival)))
    }
}
