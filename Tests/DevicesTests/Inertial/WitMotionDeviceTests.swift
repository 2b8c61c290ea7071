internal import Devices
internal import Platform
internal import Protocol
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Timing

@Suite("WitMotion sensor against the emulated one, over a socket", .serialized, .timeLimit(.minutes(1)))
struct WitMotionDeviceTests {
    /// When each frame was taken, by its number.
    private final class Truth: Sendable {
        let taken = Mutex<[Timestamp<HostTime>]>([])
    }

    private let folder: TemporaryFolder
    private var path: String { "\(folder.path)/WT901.sock" }

    init() throws { folder = try TemporaryFolder() }

    private func sensor(_ more: String = "rate: 200") throws -> any CaptureDevice {
        try EmulatedConfigurationTests.device("{id: 'wrist', kind: 'witmotion', address: 'unix:\(path)', \(more)}")
    }

    private func emulator(_ truth: Truth, burst: Double = 0, skewPPM: Double = 0) async throws -> SocketPeripheral {
        let socket = SocketPeripheral(path: path) {
            var script = WitMotionPeripheral.Script()
            script.skewPPM = skewPPM
            let device = WitMotionPeripheral(script, at: HostClock.now)
            device.faults.burst = burst
            device.onSample = { _, taken, _ in truth.taken.withLock { $0.append(taken) } }
            return device
        }
        try await socket.begin()
        return socket
    }

    @Test("the rate is set and confirmed, the rows are in SI, and their time is right while arrivals burst")
    func stream() async throws {
        let truth = Truth()
        let socket = try await emulator(truth, burst: 0.045, skewPPM: -400)
        let sensor = try sensor()
        let description = try await sensor.open()
        #expect(description.nominalRate == 200)
        #expect(!description.label.contains("not confirmed"))
        #expect(
            description.sensor?.channels.map(\.unit) == [
                "m/s^2", "m/s^2", "m/s^2", "rad/s", "rad/s", "rad/s", "rad", "rad", "rad",
            ])
        let sink = EmulatedCollector()
        try await sensor.start(sink)
        let content = await sink.wait(forSamples: 1000)
        await sensor.close()
        await socket.end()
        let samples = content.samples
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.capture <= $1.capture })
        let taken = truth.taken.withLock { $0 }
        let outside = samples.filter { sample in
            let nearest = taken.map { ($0 - sample.capture).magnitude }.min() ?? .seconds(99)
            return nearest > sample.uncertainty
        }
        #expect(Double(outside.count) <= 0.05 * Double(samples.count))
        guard case .values(let row) = samples[0].payload else { return }
        // Gravity is somewhere among 2 m/s² and its neighbours on each axis.
        #expect(abs((row[0] * row[0] + row[1] * row[1] + row[2] * row[2]).squareRoot() - 9.8) < 7)
    }

    @Test("a lost link costs a gap and nothing else")
    func reconnect() async throws {
        let truth = Truth()
        let socket = try await emulator(truth)
        let sensor = try sensor()
        _ = try await sensor.open()
        let sink = EmulatedCollector()
        try await sensor.start(sink)
        _ = await sink.wait(forSamples: 50)
        await socket.with { ($0 as? WitMotionPeripheral)?.disconnect(for: 0.5, at: HostClock.now) }
        let content = await sink.wait { content in
            content.samples.count > 100 && content.events.contains { if case .gap = $0 { true } else { false } }
        }
        await sensor.close()
        await socket.end()
        let gaps = content.events.filter { if case .gap = $0 { true } else { false } }
        #expect(gaps.count == 1)
        #expect(!content.events.contains { if case .failed = $0 { true } else { false } })
    }

    @Test("a device that isn't there, and a rate that there isn't")
    func refused() async throws {
        let error = #expect(throws: ConfigReader.Invalid.self) { try sensor("rate: 150") }
        #expect(error?.description.contains("0.2, 0.5, 1.0") == true)
        let badAddress = #expect(throws: ConfigReader.Invalid.self) {
            try EmulatedConfigurationTests.device("{id: 'w', kind: 'witmotion', address: '12:34'}")
        }
        #expect(badAddress?.description.contains("C0:FF:EE:00:00:01") == true)
    }
}

@Suite("WitMotion flow")
struct WitMotionFlowTests {
    private let start = Timestamp<HostTime>(nanoseconds: 7_000_000_000)

    @Test("frames that the sensor drops are told as lost, and the time comes right again")
    func dropped() {
        var flow = WitMotionFlow(
            rate: 100, path: DeviceClock.Path(leastDelay: .zero ... .milliseconds(1), burst: .milliseconds(50)))
        var lost: Int64 = 0
        var late: [Double] = []
        for index in 0..<3000 where !(1500..<1507).contains(index) {
            // The sensor is 0.5 % fast; the link adds 0 to 15 ms.
            let taken = start + .seconds(Double(index) / 100.5)
            let arrival = taken + .microseconds(Int64(index * 7919 % 15_000))
            for action in flow.take(WitMotionTests.motion, at: arrival) {
                switch action {
                case .report(.lost(let count, _)): lost += count
                case .deliver(let sample) where index > 2000: late.append((sample.capture - taken).milliseconds)
                default: break
                }
            }
        }
        #expect(lost == 7)
        #expect(late.allSatisfy { abs($0) < 5 })
    }
}
