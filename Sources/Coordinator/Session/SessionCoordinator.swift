internal import Episode
internal import Platform
package import Protocol
package import Timing
package import Transport

/// The take over all hosts: finds the agents, talks to them, follows their clocks, and performs what `TakeMachine` decides.
///
/// What is decided is in `HostRegistry` and `TakeMachine`, which are pure; here it is done. `+Hosts` connects, `+Take`
/// performs a take, `+Resume` takes over what another process began.
///
/// Concurrency: an actor on its own event loop, with its timers; the disk is used on `store`. `run` lives as long as the
/// rig is used, and ends with the cancellation of its task.
package actor SessionCoordinator {
    /// Makes the connection to an agent; another one for tests.
    package typealias Connect =
        @Sendable (_ agent: AgentAdvertisement, _ key: CurveKey, _ keys: CurveKeyPair) async throws -> any AgentLink

    /// What the coordinator is told when it is made.
    package struct Options: Sendable {
        package var home: String
        package var configuration: RigConfiguration
        /// The hosts that are meant; nil means those of the configuration, or all that are trusted.
        package var hosts: [HostID]?
        /// Whether hosts are to be commanded, and not only looked at.
        package var commands: Bool
        /// Browses through the system's avahi-daemon.
        package var browses = true
        package var ingest = IngestOptions()
        package var connect: Connect

        package init(
            home: String, configuration: RigConfiguration, hosts: [HostID]? = nil, commands: Bool,
            connect: @escaping Connect = SessionCoordinator.connectEncrypted
        ) {
            self.home = home
            self.configuration = configuration
            self.hosts = hosts
            self.commands = commands
            self.connect = connect
            browses = configuration.usesMulticast
        }
    }

    /// A host that is talked to.
    struct Talk {
        var session: HostSession
        var advertisement: AgentAdvertisement
        var task: Task<Void, Never>
        var probe: ClockProbe?
        var probeTask: Task<Void, Never>?
        var clockKey: String?
        var hasLease = false
        var snapshot: HostSnapshot?
    }

    package nonisolated static let connectEncrypted: Connect = { agent, key, keys in
        try await AgentConnection(
            host: agent.host, addresses: agent.addresses, commandPort: agent.commandPort, serverKey: key, keys: keys)
    }

    static let log = Log("coordinator")

    nonisolated let loop = EventLoop(name: "coordinator")
    /// Where the disk may block.
    nonisolated let store = EventLoop(name: "store")
    nonisolated let options: Options
    nonisolated let journal: TakeJournal

    var trust: RigTrust
    var registry = HostRegistry()
    var clocks = ClockMonitor()
    var talks: [UniqueID: Talk] = [:]
    var opening: Set<UniqueID> = []
    var discoveryProblem: String?
    private var changeWaiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter: UInt64 = 0

    // The take
    var machine: TakeMachine?
    var pendingActions: [TakeAction] = []
    var isPerforming = false
    var takeTimer: EventLoop.TimerID?
    var takeEnd: CheckedContinuation<TakeOutcome, Never>?
    var ingests: [HostID: Task<Void, Never>] = [:]
    var ingestProgress: [HostID: IngestProgress] = [:]
    var ledger: SpaceLedger
    var sealResult: SealResult?

    /// What the operator should read, as it happens; bounded, the oldest go first.
    package nonisolated let notes: AsyncStream<TakeNote>
    private nonisolated let noteSink: AsyncStream<TakeNote>.Continuation

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Reads the coordinator's trust, and makes its identity when there is none.
    package init(_ options: Options) throws {
        self.options = options
        journal = TakeJournal(home: options.home)
        trust = try RigTrust.load(home: options.home)
        ledger = SpaceLedger(reserveBytes: options.ingest.reserveBytes)
        (notes, noteSink) = AsyncStream.makeStream(of: TakeNote.self, bufferingPolicy: .bufferingNewest(256))
    }

    /// Finds hosts and talks to them until the task is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            if options.browses { group.addTask { await self.browse() } }
            for host in options.configuration.hosts {
                guard let address = host.address, isMeant(host.host) else { continue }
                group.addTask { await self.probe(host.host, at: address) }
            }
            group.addTask { await self.beat() }
        }
        close()
    }

    private func close() {
        for talk in talks.values {
            talk.task.cancel()
            talk.probeTask?.cancel()
        }
        talks = [:]
        noteSink.finish()
        changed()
    }

    /// The slow pulse: silence is noticed, and each second of the clocks is kept.
    private func beat() async {
        var count = 0
        while (try? await loop.sleep(for: .milliseconds(250))) != nil {
            registryTakes(.tick)
            count += 1
            if count % 4 == 0 { await keepClocks() }
        }
    }

    // MARK: The expected hosts

    /// The hosts that are meant, sorted.
    package var expected: [HostID] {
        if let hosts = options.hosts { return hosts.sorted() }
        let configured = options.configuration.hosts.map(\.host)
        return (configured.isEmpty ? Array(Set(trust.hosts.map(\.host))) : configured).sorted()
    }

    nonisolated func isMeant(_ host: HostID) -> Bool { options.hosts.map { $0.contains(host) } ?? true }

    /// Whether a host can be commanded now (or looked at, when nothing else is wanted).
    func isReady(_ host: HostID) -> Bool {
        guard let entry = registry.entry(of: host), entry.isAlive, entry.problem == nil,
            let talk = talks[entry.uuid], talk.snapshot != nil
        else { return false }
        return talk.hasLease || !options.commands
    }

    /// Waits until all expected hosts are ready or known to be refused, at most until the time is over.
    ///
    /// - Returns: the hosts that are ready.
    package func waitForHosts(_ patience: Interval) async -> [HostID] {
        let end = HostClock.now + patience
        while HostClock.now < end && !Task.isCancelled {
            let missing = expected.filter { host in
                !isReady(host) && registry.entry(of: host)?.problem?.isRefusal != true
            }
            if missing.isEmpty && !expected.isEmpty { break }
            await nextChange(until: end)
        }
        return expected.filter { isReady($0) }
    }

    /// Waits until a host is trusted that wasn't among those that are known; nil when the task was cancelled.
    package func waitForNewHost(known: Set<UniqueID>) async -> HostID? {
        while !Task.isCancelled {
            if let new = trust.hosts.first(where: { !known.contains($0.hostUUID) }) { return new.host }
            await nextChange(until: HostClock.now + .seconds(60))
        }
        return nil
    }

    /// Waits for anything to happen that a waiter may look at.
    func nextChange(until end: Timestamp<HostTime>) async {
        nextWaiter += 1
        let number = nextWaiter
        let timer = loop.schedule(at: end) { [weak self] in self?.assumeIsolated { $0.wake(number) } }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume() }
                changeWaiters[number] = continuation
            }
        } onCancel: {
            loop.perform { [weak self] in self?.assumeIsolated { $0.wake(number) } }
        }
        loop.cancel(timer)
    }

    private func wake(_ number: UInt64) { changeWaiters.removeValue(forKey: number)?.resume() }

    func changed() {
        let waiting = changeWaiters
        changeWaiters = [:]
        for continuation in waiting.values { continuation.resume() }
    }

    func tell(_ note: TakeNote) { noteSink.yield(note) }

    /// What is known now.
    package func view() -> RigView {
        let now = HostClock.rigNow
        var hosts: [RigView.Host] = registry.entries.values.filter { isMeant($0.host) }.map { entry in
            var host = RigView.Host(host: entry.host)
            host.uuid = entry.uuid
            host.address = entry.advertisement.addresses.first?.zeroMQ
            host.isTrusted = entry.isTrusted
            host.problem = entry.problem
            host.status = entry.status ?? talks[entry.uuid]?.snapshot?.status
            host.version = entry.welcome?.version ?? entry.advertisement.product
            host.presence =
                switch entry.link {
                case .none, .connecting: .connecting
                case .alive: .alive
                case .lost(let reason): .lost(reason)
                }
            host.clockBound = clocks.bound(of: entry.host, at: now)
            return host
        }
        let expected = expected
        for name in expected where !hosts.contains(where: { $0.host == name }) {
            hosts.append(RigView.Host(host: name))
        }
        for index in hosts.indices {
            let name = hosts[index].host
            hosts[index].isExpected = expected.contains(name)
            hosts[index].ingest = ingestProgress[name]
            hosts[index].phase = machine?.record[name]?.phase
        }
        hosts.sort { ($0.host, $0.uuid?.rawValue ?? "") < ($1.host, $1.uuid?.rawValue ?? "") }
        return RigView(hosts: hosts, take: takeView(now), discoveryProblem: discoveryProblem)
    }

    private func takeView(_ now: Timestamp<RigTime>) -> RigView.Take? {
        guard let record = machine?.record else { return nil }
        let end = record.stop.map { min($0, now) } ?? now
        return RigView.Take(
            episode: record.settings.episode, session: record.settings.session, task: record.settings.task,
            leader: record.settings.leader, phase: record.phase, elapsed: record.start.map { end - $0 },
            duration: record.settings.duration)
    }

    /// What each host that is there has on its disk and is doing.
    package func snapshots() -> [HostID: HostSnapshot] {
        var found: [HostID: HostSnapshot] = [:]
        for (uuid, talk) in talks {
            guard let entry = registry.entries[uuid], entry.isAlive else { continue }
            found[entry.host] = talk.snapshot
        }
        return found
    }

    /// What is attached to a host and what its configuration makes of it.
    package func devices(of host: HostID) async throws -> DeviceList {
        guard let link = link(to: host) else { throw LinkError.closed }
        let answer = try await link.request(.devices(Empty()), timeout: .seconds(15))
        guard case .deviceList(let list) = answer else { throw LinkError.closed }
        return list
    }

    func link(to host: HostID) -> (any AgentLink)? {
        registry.entry(of: host).flatMap { talks[$0.uuid]?.session.link }
    }

    /// Gives all leases back, so that the agents let go of their devices.
    package func giveBackLeases() async {
        await withTaskGroup(of: Void.self) { group in
            for talk in talks.values where talk.hasLease {
                group.addTask { await talk.session.giveBackLease() }
            }
        }
        for uuid in talks.keys { talks[uuid]?.hasLease = false }
    }
}
