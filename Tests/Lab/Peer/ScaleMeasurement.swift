internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing
internal import Transport

/// What the exchanges with many hosts cost the coordinator.
enum ScaleMeasurement {
    static let firstPort: UInt16 = 7800

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
        let estimators = Mutex([Int: ClockEstimator]())
        let probes = try (0..<count).map { number -> ClockProbe in
            guard let host = HostID(rawValue: "h\(number)") else { throw LabPeer.Usage() }
            return try ClockProbe(
                host: host, addresses: [address], port: firstPort + UInt16(number), coordinator: LabPeer.coordinator(0),
                key: key)
        }
        let tasks = probes.enumerated().flatMap { number, probe in
            [
                Task { await probe.run() },
                Task {
                    for await burst in probe.bursts {
                        estimators.withLock { all in
                            for exchange in burst { all[number, default: ClockEstimator()].add(exchange) }
                        }
                    }
                },
            ]
        }
        // The quick pace of the beginning is over.
        try await Task.sleep(for: .seconds(4))
        let (cpu, begin) = (cpuTime(), HostClock.now)
        for _ in 0..<seconds {
            try await Task.sleep(for: .seconds(1))
            // The table of the operator asks each second.
            estimators.withLock { all in for one in all.values { _ = one.mapping(at: HostClock.rigNow) } }
        }
        let percent = (cpuTime() - cpu).seconds / (HostClock.now - begin).seconds * 100
        for task in tasks { task.cancel() }
        let bounds = estimators.withLock { all in
            all.values.compactMap { $0.mapping(at: HostClock.rigNow)?.bound.nanoseconds }.sorted()
        }
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
        var usage = rusage()
        getrusage(RUSAGE_SELF, &usage)
        let seconds = Int64(usage.ru_utime.tv_sec) + Int64(usage.ru_stime.tv_sec)
        return .milliseconds(seconds * 1000)
            + .microseconds(Int64(usage.ru_utime.tv_usec) + Int64(usage.ru_stime.tv_usec))
    }
}
