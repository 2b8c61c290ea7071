internal import Protocol
internal import Timing

/// One kind of rows of a glove on their way to a sink: counted, stamped, and in order.
///
/// Used by one thread, the glove's. It runs as long as the glove is open, so the clock is fitted before a take begins.
struct GloveRows {
    let modality: GloveModality
    var sink: (any SampleSink)?
    private(set) var rows: Int64 = 0
    private var ledger: GloveLedger
    private var clock: DeviceClock
    private var lastCapture: Timestamp<HostTime>?
    /// Where rows began to be missing since the link was lost, and why.
    private var outage: (from: Timestamp<HostTime>, cause: String)?
    private var toldDuplicates: Int64 = 0
    private var toldDamage: Int64 = 0

    init(_ modality: GloveModality, rate: Double, path: DeviceClock.Path) {
        self.modality = modality
        ledger = GloveLedger(rate: rate)
        clock = DeviceClock(.microseconds32, path: path)
    }

    var path: DeviceClock.Path { clock.path }
    var duplicates: Int64 { ledger.duplicates }
    var missing: Int64 { ledger.missing }
    var skewPPM: Double? { clock.skewPPM }

    mutating func linkLost(_ cause: String, at now: Timestamp<HostTime>) {
        ledger.linkLost()
        clock.linkLost()
        if outage == nil { outage = (lastCapture ?? now, cause) }
    }

    /// Another path, as after a change of the connection's parameters: the fit begins anew.
    mutating func replacePath(_ path: DeviceClock.Path) { clock = DeviceClock(.microseconds32, path: path) }

    mutating func take(_ readings: [GloveReading], arrival: Timestamp<HostTime>) {
        var kept: [(reading: GloveReading, missing: Int64)] = []
        for reading in readings where reading.modality == modality {
            switch ledger.judge(reading) {
            case .next(let missing): kept.append((reading, missing))
            case .restarted:
                sink?.report(.note("the glove began to count anew: it was switched off and on"))
                kept.append((reading, 0))
            case .duplicate, .suspect: break
            }
        }
        guard !kept.isEmpty else { return }
        let stamps = clock.stamps(for: kept.map { UInt64($0.reading.counter) }, arrival: arrival)
        for (item, stamp) in zip(kept, stamps) { deliver(item.reading, item.missing, stamp, arrival) }
    }

    private mutating func deliver(
        _ reading: GloveReading, _ missing: Int64, _ stamp: DeviceClock.Stamp, _ arrival: Timestamp<HostTime>
    ) {
        rows += 1
        lastCapture = stamp.capture
        let outage = self.outage
        self.outage = nil
        guard let sink else { return }
        if let outage {
            sink.report(.gap(from: min(outage.from, stamp.capture), to: stamp.capture, cause: outage.cause))
        } else if missing > 0 {
            sink.report(.lost(count: missing, before: stamp.capture))
        }
        sink.deliver(
            Sample(
                payload: .values(reading.values.map(Double.init)), capture: stamp.capture,
                uncertainty: stamp.uncertainty, arrival: arrival, device: stamp.device,
                sequence: reading.sequence.map { Int64($0) }))
    }

    /// The end of a delivery: what is still missing is told.
    mutating func finish(at now: Timestamp<HostTime>) {
        guard let sink else { return }
        if let outage { sink.report(.gap(from: min(outage.from, now), to: now, cause: outage.cause)) }
        let (again, damaged) = (duplicates - toldDuplicates, ledger.damaged - toldDamage)
        (toldDuplicates, toldDamage) = (duplicates, ledger.damaged)
        if again > 0 { sink.report(.note("\(again) rows came twice; each is in the file once")) }
        if damaged > 0 { sink.report(.note("\(damaged) damaged rows were left out")) }
        self.sink = nil
    }
}
