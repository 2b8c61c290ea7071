internal import Devices
internal import TestSupport
internal import Testing
internal import Timing

@Suite("From serial bytes to samples")
struct SerialFlowTests {
    private static let start = Timestamp<HostTime>(nanoseconds: 10_000_000_000)
    private static let path = DeviceClock.Path(leastDelay: .zero ... .microseconds(500), burst: .milliseconds(20))

    private static func flow(sequence: Bool = true) -> SerialFlow {
        let layout = LineLayout(
            format: .csv, channels: [.init(name: "a", unit: "", place: .field(2))],
            counter: .init(place: .field(1), shape: .microseconds32), sequence: sequence ? .field(0) : nil)
        var flow = SerialFlow(layout, rate: 100, path: path)
        flow.take(Array("\n".utf8), at: start)
        return flow
    }

    private func samples(_ actions: [SerialFlow.Action]) -> [Sample] {
        actions.compactMap { if case .deliver(let sample) = $0 { sample } else { nil } }
    }

    private func events(_ actions: [SerialFlow.Action]) -> [DeviceEvent] {
        actions.compactMap { if case .report(let event) = $0 { event } else { nil } }
    }

    /// Rows 10 ms apart that arrive at once.
    private func line(_ index: Int) -> [UInt8] { Array("\(index),\(index * 10_000),\(index)\n".utf8) }

    private func arrival(_ index: Int) -> Timestamp<HostTime> { Self.start + .milliseconds(Int64(index) * 10) }

    @Test("duplicates are left out and counted, losses are told, the order is the sensor's", arguments: [true, false])
    func order(sequence: Bool) {
        var flow = Self.flow(sequence: sequence)
        var actions: [SerialFlow.Action] = []
        for index in 0..<300 where ![100, 101, 102, 200].contains(index) {
            actions += flow.take(line(index) + (index % 50 == 7 ? line(index) : []), at: arrival(index))
        }
        let samples = samples(actions)
        #expect(samples.count == 296)
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.capture <= $1.capture })
        let lost = events(actions).compactMap { if case .lost(let count, _) = $0 { count } else { nil } }
        #expect(lost == [3, 1])
        #expect(flow.summary?.contains("6 rows that came twice") == true)
        #expect(samples.last?.device == Timestamp(nanoseconds: 2_990_000_000))
    }

    @Test("a line that was lost is a gap, from the last sample to the next one")
    func gap() throws {
        var flow = Self.flow()
        for index in 0..<100 { flow.take(line(index), at: arrival(index)) }
        flow.interrupted("the cable was pulled")
        // The rest of a line whose beginning nobody saw, then whole ones.
        let actions = flow.take(Array("9000,7\n".utf8) + line(400), at: arrival(400))
        let event = try #require(events(actions).first)
        guard case .gap(let from, let to, let cause) = event else {
            Issue.record("\(event)")
            return
        }
        #expect((from - arrival(99)).magnitude < .milliseconds(2))
        #expect((to - arrival(400)).magnitude < .milliseconds(2))
        #expect(cause == "the cable was pulled")
        #expect(events(actions).count == 1)
        #expect(samples(actions).count == 1)
    }

    @Test("a damaged line is one lost row where nothing counts the rows")
    func damaged() {
        var flow = Self.flow(sequence: false)
        for index in 0..<50 { flow.take(line(index), at: arrival(index)) }
        flow.take(Array("50,500?00,1\n".utf8), at: arrival(50))
        let actions = flow.take(line(51), at: arrival(51))
        #expect(events(actions).contains { if case .lost(1, _) = $0 { true } else { false } })
        #expect(flow.summary?.contains("1 damaged lines") == true)
        #expect(flow.firstUnfit == "50,500?00,1")
    }

    @Test("without a counter a row has its arrival and says how far that may be off")
    func arrivals() throws {
        let layout = LineLayout(format: .csv, channels: [.init(name: "a", unit: "", place: .field(0))])
        var flow = SerialFlow(layout, rate: nil, path: Self.path)
        flow.take(Array("\n".utf8), at: Self.start)
        let sample = try #require(samples(flow.take(Array("1\n".utf8), at: Self.start)).first)
        #expect(sample.device == nil)
        #expect((Self.start - sample.capture).magnitude <= sample.uncertainty)
        #expect(sample.uncertainty >= .milliseconds(20))
    }

    @Test("no bytes crash the flow", arguments: 0..<6 as Range<UInt64>)
    func wild(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var flow = Self.flow(sequence: seed % 2 == 0)
        for index in 0..<2000 {
            var bytes = line(Int.random(in: 0...index, using: &generator))
            for _ in 0..<Int.random(in: 0...2, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            flow.take(bytes, at: arrival(index))
            if index % 300 == 299 { flow.interrupted("test") }
        }
    }
}
