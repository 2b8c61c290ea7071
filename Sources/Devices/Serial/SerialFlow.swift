internal import Protocol
package import Timing

/// From bytes of a serial line to samples and events.
///
/// Pure; used by one thread.
package struct SerialFlow: Sendable {
    package enum Action: Sendable {
        case deliver(Sample)
        case report(DeviceEvent)

        var isRow: Bool { if case .deliver = self { true } else { false } }
    }

    /// Whole rows so far.
    package private(set) var rows: Int64 = 0
    /// A line that isn't a row, for a person; nil when there was none.
    package private(set) var firstUnfit: String?

    private let parser: LineParser
    private let path: DeviceClock.Path
    private var lines = LineAssembler()
    private var clock: DeviceClock?
    private var order: SampleOrder
    private var damaged: Int64 = 0
    /// Damaged since the last row.
    private var damagedNow: Int64 = 0
    private var gap: (from: Timestamp<HostTime>, cause: String)?
    private var last: Timestamp<HostTime>?
    private var silent = false
    private var epoch = 0

    package init(_ layout: LineLayout, rate: Double?, path: DeviceClock.Path) {
        parser = LineParser(layout)
        self.path = path
        clock = layout.counter.map { DeviceClock($0.shape, path: path) }
        order = SampleOrder(rate: rate)
    }

    /// A take begins: what was missed or damaged before is not its matter.
    package mutating func begin() {
        gap = nil
        silent = false
        (damaged, damagedNow) = (0, 0)
        order = order.fresh
    }

    /// The line was lost; what comes next is after a gap.
    package mutating func interrupted(_ cause: String) {
        lines.restart()
        clock?.linkLost()
        order.interrupted()
        if gap == nil, let last { gap = (last, cause) }
    }

    /// Tells that nothing came for a while; true the first time.
    package mutating func noteSilence() -> Bool {
        defer { silent = true }
        if !silent, gap == nil, let last { gap = (last, "no row came from the sensor") }
        return !silent
    }

    /// What was left out, in words; nil when nothing was.
    package var summary: String? {
        let parts = [
            order.duplicates > 0 ? "\(order.duplicates) rows that came twice" : nil,
            damaged > 0 ? "\(damaged) damaged lines" : nil,
        ].compactMap { $0 }
        let skew = clock?.skewPPM.map { "the sensor's clock is \(Self.signed($0)) ppm off" }
        let left = parts.isEmpty ? nil : "left out: \(parts.joined(separator: ", "))"
        let all = [left, skew].compactMap { $0 }
        return all.isEmpty ? nil : all.joined(separator: "; ")
    }

    @discardableResult
    package mutating func take(_ bytes: [UInt8], at arrival: Timestamp<HostTime>) -> [Action] {
        var texts: [[UInt8]] = []
        let overlong = lines.overlong
        lines.take(bytes) { texts.append($0) }
        damaged += lines.overlong - overlong
        damagedNow += lines.overlong - overlong
        var actions: [Action] = []
        for text in texts {
            switch parser.parse(text) {
            case .row(let row): handle(row, arrival, &actions)
            case .damaged:
                damaged += 1
                damagedNow += 1
                keep(text)
            case .other: keep(text)
            }
        }
        return actions
    }

    // MARK: Private

    private mutating func handle(_ row: LineParser.Row, _ arrival: Timestamp<HostTime>, _ actions: inout [Action]) {
        rows += 1
        let stamp = row.counter.flatMap { clock?.stamp($0, arrival: arrival) }
        let sequence = row.sequence.map { Int64(clamping: $0) }
        var lost: Int64 = 0
        switch order.judge(sequence: sequence, stamp: stamp, values: row.values) {
        case .duplicate: return
        case .newCount: actions.append(.report(.note("the sensor's sample counter began anew")))
        case .new(let count): lost = count
        }
        // Where nothing counts the samples, a damaged line is one that is lost.
        if row.sequence == nil, lost < damagedNow, gap == nil { lost = damagedNow }
        damagedNow = 0
        if let stamp, stamp.epoch != epoch {
            epoch = stamp.epoch
            actions.append(.report(.note("the sensor's clock began anew")))
        }
        let (capture, uncertainty) = stamp.map { ($0.capture, $0.uncertainty) } ?? byArrival(arrival)
        if let open = gap {
            actions.append(.report(.gap(from: min(open.from, capture), to: capture, cause: open.cause)))
            gap = nil
        } else if lost > 0 {
            actions.append(.report(.lost(count: lost, before: capture)))
        }
        silent = false
        last = capture
        actions.append(
            .deliver(
                Sample(
                    payload: .values(row.values), capture: capture, uncertainty: uncertainty, arrival: arrival,
                    device: stamp?.device, sequence: sequence)))
    }

    /// Several lines of one reading were not taken at once, but in order.
    private func byArrival(_ arrival: Timestamp<HostTime>) -> (Timestamp<HostTime>, Interval) {
        let (least, most) = (path.leastDelay.lowerBound, path.leastDelay.upperBound)
        let capture = arrival - (least + most) / 2
        let held = (last ?? capture) > capture ? (last ?? capture) - capture : .zero
        return (capture + held, path.burst + (most - least) / 2 + held)
    }

    private mutating func keep(_ text: [UInt8]) {
        guard firstUnfit == nil else { return }
        firstUnfit = String(decoding: text.prefix(60).map { $0 >= 0x20 && $0 < 0x7F ? $0 : 0x3F }, as: UTF8.self)
    }

    private static func signed(_ value: Double) -> String {
        let rounded = Int64(value.rounded())
        return rounded > 0 ? "+\(rounded)" : "\(rounded)"
    }
}
