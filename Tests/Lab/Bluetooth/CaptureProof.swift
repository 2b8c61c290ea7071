internal import Devices
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// When each sample of a glove was really taken.
final class Truth: Sendable {
    private let samples = Mutex<[Int: Timestamp<HostTime>]>([:])

    private let deliveries = Mutex<[Int: Timestamp<HostTime>]>([:])

    /// When the packet whose newest sample this is was handed to the kernel.
    func delivered(_ index: Int, _ instant: Timestamp<HostTime>) { deliveries.withLock { $0[index] = instant } }
    var allDeliveries: [Int: Timestamp<HostTime>] { deliveries.withLock { $0 } }

    func note(_ index: Int64, _ taken: Timestamp<HostTime>) { samples.withLock { $0[Int(index)] = taken } }
    var all: [Int: Timestamp<HostTime>] { samples.withLock { $0 } }
}

/// Two gloves through the kernel for a while, in bursts, with repeated packets and a broken link; then each row is held
/// against the truth.
struct CaptureProof {
    /// Takes all that a device delivers.
    final class Collector: SampleSink {
        struct Content: Sendable {
            var samples: [Sample] = []
            var events: [DeviceEvent] = []
        }
        private let content = Mutex(Content())
        var all: Content { content.withLock { $0 } }
        func deliver(_ sample: Sample) { content.withLock { $0.samples.append(sample) } }
        func report(_ event: DeviceEvent) { content.withLock { $0.events.append(event) } }
    }

    /// Packets are held back for up to this long, s.
    private static let burst = 0.045
    let seconds: Double

    func run() async throws {
        let truths = [Truth(), Truth()]
        let adapter = try BluetoothLab.adapter(scripts, truth: truths)
        try await adapter.begin()
        let loop = EventLoop(name: "lab")
        // The kernel sets the adapter up; it stays off.
        for _ in 0..<100 {
            if ((try? BluetoothAdapter.all()) ?? []).contains(where: { $0.address == BluetoothLab.own }) { break }
            try await loop.sleep(for: .milliseconds(100))
        }
        let surroundings = Surroundings(host: HostID(unchecked: "lab"))
        // The left one by its address; the right one by what it says of itself.
        let devices = [
            try device("{id: 'left', kind: 'oglo', side: 'left', address: '\(BluetoothLab.left)'}", surroundings),
            try device("{id: 'right', kind: 'oglo', side: 'right'}", surroundings),
            try device(
                "{id: 'wrist_imu_left', kind: 'oglo', side: 'left', rows: 'imu', address: '\(BluetoothLab.left)'}",
                surroundings),
            try device("{id: 'mag_right', kind: 'oglo', side: 'right', rows: 'mag'}", surroundings),
        ]
        let begun = HostClock.now
        try await withThrowingTaskGroup(of: StreamDescription.self) { group in
            for device in devices { group.addTask { try await device.open() } }
            for try await description in group {
                StandardOutput.write("opened \(description.id): \(description.label)\n")
            }
        }
        figure("open_s", (HostClock.now - begun).seconds)
        let sinks = devices.map { _ in Collector() }
        for (device, sink) in zip(devices, sinks) { try await device.start(sink) }
        try await loop.sleep(for: .seconds(seconds))
        for device in devices { await device.stop() }
        for device in devices { await device.close() }
        await adapter.end()
        report("left", sinks[0].all, truths[0])
        report("right", sinks[1].all, truths[1])
        figure("left_imu_rows", Double(sinks[2].all.samples.count))
        figure("right_mag_rows", Double(sinks[3].all.samples.count))
        let words = sinks[0].all.events.compactMap { event -> String? in
            if case .gap(_, _, let cause) = event { cause } else { nil }
        }
        figure("reason_told", words.contains { $0.contains("the device ended it") } ? 1 : 0)
    }

    private var scripts: [GloveScript] {
        var left = GloveScript(side: .left)
        (left.skewPPM, left.seed, left.burst) = (80, 1, Self.burst)
        left.counterStart = 4_294_967_295 - 30_000_000
        left.moments = [.init(at: seconds / 2 + 5, .disconnect(down: 1))]
        var right = GloveScript(side: .right)
        (right.skewPPM, right.seed, right.burst, right.schema) = (-120, 2, Self.burst, 6)
        right.duplicatePercent = 5
        return [left, right]
    }

    private func device(_ text: String, _ surroundings: Surroundings) throws -> any CaptureDevice {
        var reader = try ConfigReader(file: "lab", text: Array(text.utf8))
        return try DeviceCatalog.device(from: &reader, in: surroundings)
    }

    private func report(_ side: String, _ content: Collector.Content, _ truths: Truth) {
        let truth = truths.all
        let numbers = content.samples.map { sample -> Int in
            guard case .values(let values) = sample.payload, values.count >= 2 else { return -1 }
            return Int(values[0]) | Int(values[1]) << 12
        }
        figure("\(side)_rows", Double(numbers.count))
        figure("\(side)_repeated", Double(numbers.count - Set(numbers).count))
        figure(
            "\(side)_out_of_order",
            Double(
                zip(content.samples, content.samples.dropFirst()).count { $0.capture > $1.capture }
                    + zip(numbers, numbers.dropFirst()).count { $0 >= $1 }))
        var gaps: [(from: Timestamp<HostTime>, to: Timestamp<HostTime>)] = []
        var lost = 0.0
        for event in content.events {
            switch event {
            case .gap(let from, let to, let cause):
                gaps.append((from, to))
                StandardOutput.write("\(side): gap of \((to - from).seconds) s: \(cause)\n")
            case .lost(let count, _): lost += Double(count)
            case .note(let text): StandardOutput.write("\(side): \(text)\n")
            case .clock(let clock): figure("\(side)_skew_ppm", clock.skewPPM ?? .nan)
            case .failed(let text): StandardOutput.write("\(side): failed: \(text)\n")
            case .interrupted(_, let cause): StandardOutput.write("\(side): interrupted: \(cause)\n")
            case .epoch: break
            }
        }
        figure("\(side)_gaps", Double(gaps.count))
        figure("\(side)_gap_s", gaps.reduce(0) { $0 + ($1.to - $1.from).seconds })
        figure("\(side)_lost_told", lost)
        // Of all that was taken between the first and the last row, what is in no row and in no gap.
        let have = Set(numbers)
        let (first, last) = (numbers.min() ?? 0, numbers.max() ?? 0)
        var inGaps = Set<Int>()
        for (a, b) in zip(content.samples.indices, content.samples.indices.dropFirst())
        where gaps.contains(where: { $0.from <= content.samples[a].capture && content.samples[b].capture <= $0.to }) {
            inGaps.formUnion(numbers[a]...max(numbers[a], numbers[b]))
        }
        figure(
            "\(side)_missing", Double((first...max(first, last)).count { !have.contains($0) && !inGaps.contains($0) }))
        // From the emulator's hand to ours: what the emulated machine takes for it, ten times as slow as a real one. No fit
        // can see a delay that every packet has, so its median is told beside the error, and taken off it.
        let deliveries = truths.allDeliveries
        let ways = zip(numbers, content.samples).compactMap { number, sample in
            deliveries[number].map { (sample.arrival - $0).milliseconds }
        }.sorted()
        let machine = ways.isEmpty ? 0 : ways[ways.count / 2]
        figure("\(side)_machine_ms", machine)
        let plain = zip(numbers, content.samples).compactMap { number, sample in
            truth[number].map { abs((sample.capture - $0).milliseconds) }
        }.sorted()
        if !plain.isEmpty { figure("\(side)_plain_error_p95_ms", plain[plain.count * 95 / 100]) }
        let errors = zip(numbers, content.samples).compactMap { number, sample -> (error: Double, bound: Double)? in
            truth[number].map { (abs((sample.capture - $0).milliseconds - machine), sample.uncertainty.milliseconds) }
        }
        let sorted = errors.map(\.error).sorted()
        guard !sorted.isEmpty else { return }
        figure("\(side)_error_p50_ms", sorted[sorted.count / 2])
        figure("\(side)_error_p95_ms", sorted[sorted.count * 95 / 100])
        figure("\(side)_error_max_ms", sorted[sorted.count - 1])
        figure("\(side)_beyond_bound", Double(errors.count { $0.error > $0.bound }))
        let delays = zip(numbers, content.samples).compactMap { number, sample in
            truth[number].map { (sample.arrival - $0).milliseconds }
        }.sorted()
        figure("\(side)_delay_least_ms", delays[0])
        figure("\(side)_delay_p1_ms", delays[delays.count / 100])
        let waits = content.samples.map { ($0.arrival - $0.capture).milliseconds }.sorted()
        figure("\(side)_wait_p95_ms", waits[waits.count * 95 / 100])
    }

    private func figure(_ name: String, _ value: Double) {
        StandardOutput.write("figure \(name) \((value * 1000).rounded() / 1000)\n")
    }
}
