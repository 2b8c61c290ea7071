internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing
internal import Transport

/// Finds the hosts, exchanges with each, and compares the mapping with the truth that the lab made.
///
/// It prints a table and one line for each figure.
struct ClockMeasurement {
    /// What was seen of one host, in ns.
    private struct Series: Sendable {
        var errors: [Int64] = []
        var bounds: [Int64] = []
        var violations = 0
        /// From the first exchange to a bound of 100 µs.
        var convergence: Int64?
        /// The bound one second after the first exchange.
        var afterOneSecond: Int64?
        var leastDelay: Int64?
        var address = "-"
        var restarts = 0
        var worstRatio = 0.0

        mutating func check(error: Int64, bound: Int64) {
            if error > bound { violations += 1 }
            worstRatio = max(worstRatio, Double(error) / Double(max(bound, 1)))
        }
    }

    /// A host that is measured, and the true difference of its clock.
    private struct Target: Sendable {
        var host: HostID
        var addresses: [NetworkAddress]
        var port: UInt16
        var coordinator: UniqueID
        var truth: Int64
    }

    private let key: [UInt8]
    private let seconds: Int64
    private let truths: [HostID: Int64]
    /// Paths that are given instead of found: through a relay.
    ///
    /// Their bounds are as wide as the paths are slow.
    private var paths: [Target] = []

    init(_ arguments: [String]) throws {
        guard arguments.count >= 4, let key = Hex.decode(arguments[1]), key.count == 32,
            let seconds = Int64(arguments[2])
        else { throw LabPeer.Usage() }
        self.key = key
        self.seconds = seconds
        var truths: [HostID: Int64] = [:]
        for argument in arguments.dropFirst(3) {
            let parts = argument.split(separator: "=")
            if parts.count == 3 {
                paths.append(try Self.path(parts, number: paths.count))
                continue
            }
            guard parts.count == 2, let host = HostID(rawValue: String(parts[0])), let truth = Int64(parts[1]) else {
                throw LabPeer.Usage()
            }
            truths[host] = truth
        }
        self.truths = truths
    }

    /// LABEL=TRUTH=ADDRESS:PORT; each path is a coordinator of its own, since each counts its datagrams by itself.
    private static func path(_ parts: [Substring], number: Int) throws -> Target {
        let (endpoint, colon) = (parts[2], parts[2].lastIndex(of: ":"))
        guard let host = HostID(rawValue: String(parts[0])), let truth = Int64(parts[1]), let colon,
            let address = NetworkAddress(String(endpoint[..<colon])),
            let port = UInt16(endpoint[endpoint.index(after: colon)...])
        else { throw LabPeer.Usage() }
        return Target(
            host: host, addresses: [address], port: port, coordinator: LabPeer.coordinator(number), truth: truth)
    }

    /// True when all figures reach their goals.
    func run() async throws -> Bool {
        if !paths.isEmpty { return report(try await measure(paths), isRelayed: true) }
        let found = await findAll()
        let missing = truths.keys.filter { found[$0] == nil }.sorted()
        for host in missing { StandardError.write("lab-peer: host \(host) was not found\n") }
        let targets = found.compactMap { host, agent in
            truths[host].map {
                Target(
                    host: host, addresses: agent.addresses, port: agent.clockPort,
                    coordinator: LabPeer.coordinator(0), truth: $0)
            }
        }
        return report(try await measure(targets), isRelayed: false) && missing.isEmpty
    }

    private func measure(_ targets: [Target]) async throws -> [HostID: Series] {
        try await withThrowingTaskGroup(of: (HostID, Series).self) { group in
            for target in targets { group.addTask { (target.host, try await measure(target)) } }
            return try await group.reduce(into: [HostID: Series]()) { $0[$1.0] = $1.1 }
        }
    }

    private func findAll() async -> [HostID: AgentAdvertisement] {
        let browser = ServiceBrowser()
        let began = HostClock.now
        let events = await browser.start()
        let limit = Task {
            try? await Task.sleep(for: .seconds(20))
            await browser.stop()
        }
        var found: [HostID: AgentAdvertisement] = [:]
        for await event in events {
            guard case .found(let agent) = event else { continue }
            found[agent.host] = agent
            // Both families are wanted, IPv4 to measure by.
            if truths.keys.allSatisfy({ (found[$0]?.addresses.count ?? 0) >= 2 }) { break }
        }
        limit.cancel()
        await browser.stop()
        for agent in found.values.sorted(by: { $0.host < $1.host }) {
            StandardOutput.write(
                "found \(agent.host) at \(agent.addresses.map(\.description).joined(separator: ", "))\n")
        }
        StandardOutput.write("found all after \((HostClock.now - began).milliseconds) ms\n")
        return found
    }

    private func measure(_ target: Target) async throws -> Series {
        let truth = target.truth
        let probe = try ClockProbe(
            host: target.host, addresses: target.addresses, port: target.port, coordinator: target.coordinator, key: key
        )
        let task = Task { await probe.run() }
        let end = HostClock.rigNow + .seconds(Double(seconds))
        let estimator = Mutex(ClockEstimator())
        let sampler = Task { await sample(estimator, truth: truth, until: end) }
        for await burst in probe.bursts {
            estimator.withLock { estimator in for exchange in burst { estimator.add(exchange) } }
            if HostClock.rigNow > end { break }
        }
        var series = await sampler.value
        series.address = await probe.answering?.description ?? "-"
        task.cancel()
        await task.value
        estimator.withLock { estimator in
            series.leastDelay = estimator.leastDelay?.nanoseconds
            series.restarts = estimator.restarts
        }
        return series
    }

    /// Looks at the mapping every 7 ms, whenever that is between the exchanges.
    private func sample(_ estimator: borrowing Mutex<ClockEstimator>, truth: Int64, until end: Timestamp<RigTime>) async
        -> Series
    {
        var series = Series()
        var first: Timestamp<RigTime>?
        while HostClock.rigNow < end {
            try? await Task.sleep(for: .milliseconds(7))
            let (mapping, begin) = estimator.withLock { estimator in
                (estimator.mapping(at: HostClock.rigNow), estimator.exchanges.first?.sent)
            }
            guard let mapping else { continue }
            first = first ?? begin
            let error = abs(mapping.offset.nanoseconds - truth)
            let bound = mapping.bound.nanoseconds
            series.check(error: error, bound: bound)
            // And a second ahead, as a start is planned.
            let later = mapping.reference + .milliseconds(1000)
            let ahead = abs(mapping.map(later).nanoseconds - later.nanoseconds - truth)
            series.check(error: ahead, bound: mapping.bound(at: later).nanoseconds)
            let age = first.map { mapping.reference - $0 } ?? .zero
            if bound <= 100_000, series.convergence == nil { series.convergence = age.nanoseconds }
            if age >= .milliseconds(1000), series.afterOneSecond == nil { series.afterOneSecond = bound }
            // The figures are of the settled clock; the violations of all.
            if age >= .milliseconds(5000) {
                series.errors.append(error)
                series.bounds.append(bound)
            }
        }
        return series
    }

    private func report(_ series: [HostID: Series], isRelayed: Bool) -> Bool {
        var errors: [Int64] = []
        var bounds: [Int64] = []
        StandardOutput.write(
            "host        samples  error p50/p95/max µs     bound p50/p99/max µs     least delay µs  address\n")
        for (host, one) in series.sorted(by: { $0.key < $1.key }) {
            errors += one.errors
            bounds += one.bounds
            let (e, b) = (one.errors.sorted(), one.bounds.sorted())
            let columns = [
                host.rawValue.padded(isRelayed ? 24 : 11), "\(e.count)".padded(8),
                "\(micro(e.quantile(0.5)))/\(micro(e.quantile(0.95)))/\(micro(e.last))".padded(24),
                "\(micro(b.quantile(0.5)))/\(micro(b.quantile(0.99)))/\(micro(b.last))".padded(24),
                micro(one.leastDelay).padded(15), one.address,
            ]
            StandardOutput.write(columns.joined(separator: " ") + "\n")
        }
        let all = series.values
        let converged = all.map { $0.convergence ?? .max }.max() ?? .max
        let afterOneSecond = all.map { $0.afterOneSecond ?? .max }.max() ?? .max
        let worst = (all.map(\.worstRatio).max() ?? 0) * 1000
        StandardOutput.write(
            "worst error/bound: \(worst.rounded() / 1000); real-time priority of the probes: "
                + "\(ClockProbe.hasRealtimePriority ? "granted" : "not granted")\n")
        let always: [(String, Double, Double)] = [
            ("errors_over_bound", Double(all.reduce(0) { $0 + $1.violations }), 0),
            ("clock_restarts", Double(all.reduce(0) { $0 + $1.restarts }), 0),
            ("hosts_without_clock", Double(truths.count + paths.count - all.count { !$0.errors.isEmpty }), 0),
        ]
        let quick: [(String, Double, Double)] = [
            ("error_p95_us", errors.sorted().quantile(0.95).map { Double($0) / 1000 } ?? .infinity, 2),
            ("bound_p99_us", bounds.sorted().quantile(0.99).map { Double($0) / 1000 } ?? .infinity, 10),
            ("bound_after_1s_us", Double(afterOneSecond) / 1000, 1000),
            ("bound_100us_after_ms", Double(converged) / 1e6, 1000),
        ]
        let figures = (isRelayed ? [] : quick) + always
        var allPass = true
        for (name, figure, goal) in figures {
            let passes = figure <= goal
            allPass = allPass && passes
            let shown = (figure * 1000).rounded() / 1000
            StandardOutput.write(
                "netns_\(isRelayed ? "relay_" : "")\(name) figure=\(shown) goal=\(goal) \(passes ? "pass" : "fail")\n")
        }
        return allPass
    }

    private func micro(_ nanoseconds: Int64?) -> String {
        guard let nanoseconds else { return "-" }
        let tenths = (nanoseconds + 50) / 100
        return "\(tenths / 10).\(tenths % 10)"
    }
}

extension [Int64] {
    /// Of a sorted array; nil when it is empty.
    func quantile(_ part: Double) -> Int64? {
        isEmpty ? nil : self[Swift.min(count - 1, Int(Double(count) * part))]
    }
}

extension String {
    func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
