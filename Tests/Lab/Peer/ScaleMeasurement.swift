internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing
internal import Transport

/// What the exchanges with many hosts cost the coordinator.
enum ScaleMeasurement {
    static let firstPort: UInt16 = 7800

    /// What is known of all clocks, as the coordinator has it.
    private final class Clocks: Sendable {
        private let estimators = Mutex([Int: ClockEstimator]())

        func add(_ burst: [ClockExchange<RigTime, HostTime>], of host: Int) {
            estimators.withLock { all in
                for exchange in burst { all[host, default: ClockEstimator()].add(exchange) }
            }
        }

        var bounds: [Int64] {
            estimators.withLock { all in
                all.values.compactMap { $0.mapping(at: HostClock.rigNow)?.bound.nanoseconds }.sorted()
            }
        }
    }

    /// Many agents' ends in one process; they answer until they are killed.
    static func echoes(count: Int, key: [UInt8]) throws -> [ClockEcho] {
        try (0..<count).map { number in
            let echo = try ClockEcho(port: firstPort + UInt16(number)) { [] }
            echo.authorize(LabPeer.coordinator(0), key: key)
            return echo
        }
    }

    /// Probes all of them for a while, keeps a mapping of each as a coordinator does, and counts this process's CPU time
    /// once they have settled; true when it is within the goal.
    static func run(key: [UInt8], seconds: Int64, address: NetworkAddress, count: Int) async throws -> Bool {
        let clocks = Clocks()
        let probes = try (0..<count).map { number -> ClockProbe in
            guard let host = HostID(rawValue: "h\(number)") else { throw LabPeer.Usage() }
            return try ClockProbe(
                host: host, addresses: [address], port: firstPort + UInt16(number), coordinator: LabPeer.coordinator(0),
                key: key)
        }
        var tasks: [Task<Void, Never>] = []
        for (number, probe) in probes.enumerated() {
            tasks.append(Task { await probe.run() })
            tasks.append(Task { for await burst in probe.bursts { clocks.add(burst, of: number) } })
        }
        // The quick pace of the beginning is over.
        try await Task.sleep(for: .seconds(4))
        let (cpu, begin) = (cpuTime(), HostClock.now)
        for _ in 0..<seconds {
            try await Task.sleep(for: .seconds(1))
            // The table of the operator asks each second.
            _ = clocks.bounds
        }
        let percent = (cpuTime() - cpu).seconds / (HostClock.now - begin).seconds * 100
        for task in tasks { task.cancel() }
        let bounds = clocks.bounds
        StandardOutput.write(
            "\(bounds.count) of \(count) hosts have a clock; bound median \((bounds.quantile(0.5) ?? -1000) / 1000) µs\n"
        )
        let shown = (percent * 100).rounded() / 100
        let isPass = percent <= 2 && bounds.count == count
        StandardOutput.write(
            "netns_clock_cpu_percent[\(count) hosts] figure=\(shown) goal=2 \(isPass ? "pass" : "fail")\n")
        return isPass
    }

    private static func cpuTime() -> Interval {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Interval.milliseconds(Int64(time.tv_sec) * 1000) + .nanoseconds(Int64(time.tv_nsec))
    }
}
