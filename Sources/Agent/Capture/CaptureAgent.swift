internal import Devices
internal import Episode
internal import Platform
package import Protocol
internal import Timing

/// Capture on one host: answers a coordinator's requests, and runs the take that they ask for.
///
/// What happens is decided by `TakeMachine`, `AgentStateMachine` and `LeaseKeeper`; this actor performs it. The way of a
/// take: `arm` opens the devices into their rings (`+Devices`), `commit` makes the folder and the files, T0 and T1 are
/// timers (`+Take`), and a tick some times a second looks after streams, disk and clocks (`+Watch`).
///
/// Concurrency: an actor on its own event loop. What takes long (devices, files) runs on their own loops, one step after
/// the other in `chain`; the state is changed before the first wait.
package actor CaptureAgent {
    /// Who sent a request.
    package struct Caller: Sendable, Hashable {
        /// Stands for the key that the message came with.
        package var identity: String
        /// For a person.
        package var name: String

        package init(identity: String, name: String) {
            self.identity = identity
            self.name = name
        }
    }

    /// What a coordinator must know to reach the other sockets of this host.
    package struct Ports: Sendable {
        package var bulk: UInt16
        package var clock: UInt16
        /// Lets a coordinator's clock datagrams in; called with 32 bytes.
        package var authorizeClock: @Sendable (UniqueID, [UInt8]) -> Void

        package init(bulk: UInt16, clock: UInt16, authorizeClock: @escaping @Sendable (UniqueID, [UInt8]) -> Void) {
            self.bulk = bulk
            self.clock = clock
            self.authorizeClock = authorizeClock
        }
    }

    static let log = Log("agent")

    package nonisolated let host: HostID
    package nonisolated let hostUUID: UniqueID
    nonisolated let home: AgentHome
    nonisolated let loop = EventLoop(name: "agent")
    let configuration: AgentConfiguration
    let store: TakeStore
    let scribe: EpisodeScribe
    let archive: EpisodeArchive
    let clips: ClipIngest
    /// Where a clip's small files are written.
    nonisolated let clipLoop = EventLoop(name: "sidecar")
    let tell: @Sendable (String) -> Void

    var session = AgentStateMachine()
    var machine: TakeMachine
    var lease: LeaseKeeper
    var slots: [StreamSlot] = []
    var ports: Ports?
    var clockKeys: [UniqueID: [UInt8]] = [:]

    var armWaiters: [CheckedContinuation<Message, Never>] = []
    var commitWaiters: [CheckedContinuation<Message, Never>] = []
    var chirpWaiters: [ChirpMoment: [CheckedContinuation<Message, Never>]] = [:]
    var finishWaiters: [CheckedContinuation<Void, Never>] = []
    var chirpReports: [ChirpMoment: ChirpReport] = [:]
    var playing: [Task<Void, Never>] = []
    /// Samples a second that the speaker takes; nil while it isn't open.
    var speakerRate: Int?
    var speakerError: String?

    var freeBytes: Int64 = 0
    var isDiskLow = false
    var hasToldStreaming = false
    /// Whether anchor and first manifest of the take are on the disk.
    var hasAnchor = false
    var clocks = ClockWatch()
    nonisolated let gate = StartGate()
    var droppedUntold: [StreamID: Int64] = [:]
    var ticks = 0
    var tickTimer: EventLoop.TimerID?
    var deadlineTimer: EventLoop.TimerID?
    private var chain: Task<Void, Never>?
    private let eventSink: AsyncStream<HostEvent>.Continuation

    /// What happens, for the coordinator and for the program; at most 1,024 wait, then the oldest go.
    package nonisolated let events: AsyncStream<HostEvent>

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - configuration: its devices are used by this agent alone.
    ///   - home: where state and episodes are.
    ///   - hostUUID: the identity of the host.
    ///   - ring: the limits of the streams' rings.
    ///   - networkTool: what takes the host into a camera's network and back.
    ///   - tell: takes a line for a person at each step of a take; must not block.
    package init(
        _ configuration: AgentConfiguration, home: AgentHome, hostUUID: UniqueID,
        ring: SampleRing.Limits = SampleRing.Limits(), networkTool: any NetworkTool = NetworkManager(),
        tell: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.home = home
        self.hostUUID = hostUUID
        self.tell = tell
        host = configuration.host
        machine = TakeMachine(host: configuration.host)
        lease = LeaseKeeper(host: configuration.host)
        store = TakeStore(home: home, host: configuration.host)
        scribe = EpisodeScribe(host: configuration.host, hostUUID: hostUUID)
        archive = EpisodeArchive(home: home, host: configuration.host)
        clips = ClipIngest(home: home, reserve: configuration.reserveBytes, tool: networkTool, tell: tell)
        (events, eventSink) = AsyncStream.makeStream(of: HostEvent.self, bufferingPolicy: .bufferingNewest(1_024))
        ringLimits = ring
    }

    let ringLimits: SampleRing.Limits

    // MARK: Life

    /// Repairs what an earlier run left, and begins to look after things.
    package func start() async throws {
        precondition(tickTimer == nil, "start is called once")
        try await store.load()
        for sentence in try await store.recover() {
            Self.log.warning("recovery: \(sentence)")
            tell("recovered \(sentence)")
        }
        try makeSlots()
        await recoverClips()
        freeBytes = (try? Files.freeSpace(at: home.episodes)) ?? 0
        scheduleTick()
    }

    private func makeSlots() throws {
        guard slots.isEmpty else { return }
        for device in configuration.devices {
            let stream = device.stream
            let recorder = StreamRecorder(stream, limits: ringLimits) { [weak self, loop] notice in
                loop.perform { [weak self] in self?.assumeIsolated { $0.noticed(stream, notice) } }
            }
            try session.add(stream)
            slots.append(StreamSlot(device, recorder: recorder))
        }
    }

    /// What is attached to this host, and what the configuration makes of it; works without `start` too.
    package func devices() async throws -> DeviceList {
        try makeSlots()
        return try await deviceList()
    }

    package func open(_ ports: Ports) { self.ports = ports }

    /// Ends a running take properly, with its files whole, and closes the devices.
    package func shutDown(reason: String) async {
        switch machine.phase {
        case .recording:
            handle(.halt(reason: reason))
            await finished()
        case .stopping: await finished()
        default: handle(.halt(reason: reason))
        }
        _ = await enqueue { await self.closeDevices() }.value
        if let tickTimer { loop.cancel(tickTimer) }
        eventSink.finish()
    }

    /// Waits until no take is recording or being stopped.
    private func finished() async {
        switch machine.phase {
        case .recording, .stopping: await withCheckedContinuation { finishWaiters.append($0) }
        default: return
        }
    }

    // MARK: Deciding and performing

    /// Gives an event to the take, and performs what follows.
    @discardableResult
    func handle(_ event: TakeMachine.Event) -> TakeMachine.Answer {
        let outcome = machine.handle(event, at: HostClock.now)
        for action in outcome.actions { perform(action) }
        scheduleDeadline()
        return outcome.answer
    }

    private func perform(_ action: TakeMachine.Action) {
        switch action {
        case .open(let plan): enqueue { await self.openDevices(plan) }
        case .prepare(let plan, let commit): enqueue { await self.prepare(plan, commit) }
        case .begin(let plan, let commit): begin(plan, commit)
        case .closeGate(let instant): for slot in slots { slot.recorder.closeGate(at: instant) }
        case .play(let moment, let instant): play(moment, at: instant)
        case .end(let plan, let commit, let instant, let reason): end(plan, commit, at: instant, reason: reason)
        case .disarm(let plan, let hasFolder, let reason): disarm(plan, hasFolder: hasFolder, reason: reason)
        }
    }

    /// Runs a step after all steps before it.
    ///
    /// Unstructured, since a step outlives the request that asked for it: an answer may be lost, the take goes on.
    @discardableResult
    func enqueue(_ step: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        let before = chain
        let task = Task {
            await before?.value
            await step()
        }
        chain = task
        return task
    }

    private func scheduleDeadline() {
        if let deadlineTimer { loop.cancel(deadlineTimer) }
        deadlineTimer = machine.deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in self?.assumeIsolated { _ = $0.handle(.tick) } }
        }
    }

    // MARK: Telling

    func publish(
        _ kind: HostEvent.Kind, take: UniqueID? = nil, stream: StreamID? = nil, _ message: String = "",
        stop: StopReport? = nil
    ) {
        let event = HostEvent(
            kind: kind, at: HostClock.now, take: take ?? machine.plan?.take, stream: stream, message: message,
            stop: stop)
        if case .dropped = eventSink.yield(event) { Self.log.warning("an event was lost: nobody takes them") }
    }

    /// Makes a transition that is known to be legal here.
    func transition(_ call: AgentStateMachine.Call) {
        let before = session.state
        do { try session.handle(call) } catch { return Self.log.error("\(call): \(error)") }
        if session.state != before { publish(.stateChanged, "\(before.rawValue)->\(session.state.rawValue)") }
    }

}
