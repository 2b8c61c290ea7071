package import Timing

/// From the bytes of an IIO buffer to samples and events.
///
/// Pure; used by one thread.
package struct IIOFlow: Sendable {
    package enum Action: Sendable {
        case deliver(Sample)
        case report(DeviceEvent)
    }

    /// What the buffer's stamps are.
    package enum Stamps: Sendable, Hashable {
        /// CLOCK_MONOTONIC at the trigger.
        case monotonic
        /// Another clock of the kernel, which is mapped by arrivals.
        case otherClock
        case none
    }

    /// How late a driver's interrupt may be, and how far apart a stamp and the sampling are.
    private static let stampError = Interval.milliseconds(1)
    /// A stamp that is further from its arrival is on another clock, whatever the driver says.
    private static let farthest = Interval.milliseconds(10_000)

    /// Rows so far.
    package private(set) var rows: Int64 = 0
    package private(set) var stamps: Stamps

    private let layout: IIOScanLayout
    private let converter: IIOConverter
    private let elements: [IIOScanLayout.Element]
    private let time: IIOScanLayout.Element?
    private let period: Interval
    private var clock: DeviceClock
    private var order: SampleOrder
    private var last: Timestamp<HostTime>?
    private var gap: (from: Timestamp<HostTime>, cause: String)?

    /// The layout's elements but `in_timestamp` belong to the converter's channels, in the same order; an element that
    /// repeats has several channels.
    package init(_ layout: IIOScanLayout, _ converter: IIOConverter, rate: Double?, stamps: Stamps) {
        self.layout = layout
        self.converter = converter
        elements = layout.elements.filter { $0.name != "in_timestamp" }
        time = layout.elements.first { $0.name == "in_timestamp" }
        self.stamps = time == nil ? .none : stamps
        period = .seconds(1 / max(rate ?? 50, 0.01))
        clock = DeviceClock(
            CounterShape(bits: 64, ticksPerSecond: 1_000_000_000),
            path: DeviceClock.Path(leastDelay: .zero ... .microseconds(500), burst: .milliseconds(20)))
        order = SampleOrder(rate: rate)
    }

    /// A take begins: what was missed before is not its matter.
    package mutating func begin() {
        gap = nil
        order = order.fresh
    }

    package mutating func interrupted(_ cause: String) {
        clock.linkLost()
        order.interrupted()
        if gap == nil, let last { gap = (last, cause) }
    }

    /// Takes in what one reading gave.
    package mutating func take(_ bytes: [UInt8], at arrival: Timestamp<HostTime>) -> [Action] {
        var actions: [Action] = []
        let scans = layout.scans(in: bytes)
        for (index, scan) in scans.enumerated() {
            let raw = elements.flatMap { layout.values(of: $0, in: scan) }
            guard let values = converter.row(raw) else { continue }
            let stamp = time.flatMap { layout.values(of: $0, in: scan).first }
            add(values, stamp, arrival, behind: Int64(scans.count - 1 - index), &actions)
        }
        return actions
    }

    /// Takes in a row that was read value by value from sysfs, in a stretch of time.
    package mutating func polled(
        _ raw: [Int64], from: Timestamp<HostTime>, to: Timestamp<HostTime>
    ) -> [Action] {
        guard let values = converter.row(raw) else { return [] }
        var actions: [Action] = []
        // The registers hold what was sampled up to a period before.
        let capture = max(from + (to - from) / 2 - period / 2, last ?? from - period)
        finish(values, capture, (to - from) / 2 + period / 2, to, nil, lost: 0, &actions)
        return actions
    }

    // MARK: Private

    private mutating func add(
        _ values: [Double], _ raw: Int64?, _ arrival: Timestamp<HostTime>, behind: Int64, _ actions: inout [Action]
    ) {
        if stamps == .monotonic, let raw {
            let distance = (Timestamp<HostTime>(nanoseconds: raw) - arrival).magnitude
            if distance > Self.farthest {
                stamps = .otherClock
                actions.append(
                    .report(.note("the driver's stamps aren't on CLOCK_MONOTONIC; they are mapped by their arrival")))
            }
        }
        guard let raw, stamps != .none else {
            // Those that were read together were taken one after the other.
            let capture = max(arrival - period * behind - period / 2, last ?? arrival - period * (behind + 1))
            finish(values, capture, period, arrival, nil, lost: 0, &actions)
            return
        }
        let device = Timestamp<DeviceTime>(nanoseconds: raw)
        var stamp = DeviceClock.Stamp(
            device: device, capture: Timestamp(nanoseconds: raw), uncertainty: Self.stampError, epoch: 0,
            outcome: .continuous)
        if stamps == .otherClock { stamp = clock.stamp(UInt64(clamping: raw), arrival: arrival) }
        guard case .new(let lost) = order.judge(sequence: nil, stamp: stamp, values: values) else { return }
        finish(values, stamp.capture, stamp.uncertainty, arrival, device, lost: lost, &actions)
    }

    private mutating func finish(
        _ values: [Double], _ capture: Timestamp<HostTime>, _ uncertainty: Interval, _ arrival: Timestamp<HostTime>,
        _ device: Timestamp<DeviceTime>?, lost: Int64, _ actions: inout [Action]
    ) {
        rows += 1
        if let open = gap {
            actions.append(.report(.gap(from: min(open.from, capture), to: capture, cause: open.cause)))
            gap = nil
        } else if lost > 0 {
            actions.append(.report(.lost(count: lost, before: capture)))
        }
        last = capture
        actions.append(
            .deliver(
                Sample(
                    payload: .values(values), capture: capture, uncertainty: uncertainty, arrival: arrival,
                    device: device)))
    }
}
