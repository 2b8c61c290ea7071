package import Platform
package import Protocol
internal import Timing
package import Transport

/// The conversation with one agent: hello, lease, snapshot, then heartbeats, again after each interruption.
///
/// Concurrency: an actor that waits for the link and blocks nothing; `report` is called in order, one at a time.
package actor HostSession {
    /// Who is talking.
    package struct Identity: Sendable {
        package var coordinator: UniqueID
        package var name: String

        package init(coordinator: UniqueID, name: String) {
            self.coordinator = coordinator
            self.name = name
        }
    }

    package enum Update: Sendable {
        case welcomed(Welcome)
        case snapshot(HostSnapshot)
        case status(HostStatus)
        case event(HostEvent)
        case disconnected(String)
        case refused(HostProblem)
        /// The right to command it is ours.
        case leased
        case dropped(Int)
    }

    private static let heartbeat = Interval.milliseconds(500)
    private static let leaseLength = Interval.seconds(10)

    package nonisolated let uuid: UniqueID
    package nonisolated let link: any AgentLink
    private let identity: Identity
    private let report: @Sendable (Update) async -> Void
    private let loop: EventLoop
    private var needsGreeting = true
    private var wantsLease: Bool
    private var hasLease = false

    /// - Parameters:
    ///   - uuid: who is expected to answer.
    ///   - link: of its own; it is closed at the end of `run`.
    ///   - identity: who is talking.
    ///   - wantsLease: whether the host is to be commanded, and not only looked at.
    ///   - loop: whose timers are used.
    ///   - report: takes what happens.
    package init(
        uuid: UniqueID, link: any AgentLink, identity: Identity, wantsLease: Bool, loop: EventLoop,
        report: @escaping @Sendable (Update) async -> Void
    ) {
        self.uuid = uuid
        self.link = link
        self.identity = identity
        self.wantsLease = wantsLease
        self.loop = loop
        self.report = report
    }

    /// Talks until the task is cancelled.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.listen() }
            group.addTask { await self.talk() }
            await group.next()
            group.cancelAll()
        }
        await link.close()
    }

    /// Asks for the lease from now on.
    package func wantLease() { wantsLease = true }

    /// Gives the lease back, so that the agent lets go of its devices; it isn't asked for again.
    package func giveBackLease() async {
        wantsLease = false
        guard hasLease else { return }
        hasLease = false
        _ = try? await link.request(.lease(lease(.zero)), timeout: .seconds(1))
    }

    private func lease(_ length: Interval) -> LeaseRequest {
        LeaseRequest(coordinator: identity.coordinator, name: identity.name, length: length)
    }

    private func listen() async {
        for await event in link.events {
            switch event {
            case .connected: needsGreeting = true
            case .disconnected(let reason):
                hasLease = false
                await report(.disconnected(reason))
            case .wrongKey(let text): await report(.refused(.wrongKey(text)))
            case .event(let event): await report(.event(event))
            case .dropped(let count):
                // What was missed is in the snapshot.
                needsGreeting = true
                await report(.dropped(count))
            }
        }
    }

    private func talk() async {
        while !Task.isCancelled {
            do {
                if needsGreeting {
                    needsGreeting = false
                    try await greet()
                } else if wantsLease && !hasLease {
                    try await askForLease()
                }
                if case .status(let status) = try await link.request(.heartbeat(Empty()), timeout: .seconds(2)) {
                    await report(.status(status))
                }
            } catch {
                await failed(error)
            }
            guard (try? await loop.sleep(for: Self.heartbeat)) != nil else { return }
        }
    }

    private func greet() async throws {
        hasLease = false
        let hello = Hello(
            coordinator: identity.coordinator, name: identity.name, version: ProductVersion.current)
        guard case .welcome(let welcome) = try await link.request(.hello(hello), timeout: .seconds(5)) else { return }
        await report(.welcomed(welcome))
        guard welcome.hostUUID == uuid else { return }
        if wantsLease { try await askForLease() }
        guard case .snapshot(let snapshot) = try await link.request(.snapshotRequest(Empty()), timeout: .seconds(5))
        else { return }
        await report(.snapshot(snapshot))
    }

    private func askForLease() async throws {
        do {
            if case .leased = try await link.request(.lease(lease(Self.leaseLength)), timeout: .seconds(2)) {
                hasLease = true
                await report(.leased)
            }
        } catch let refusal as Refusal where refusal.code == .leasedToOther {
            await report(.refused(.leasedToOther(refusal.message)))
        }
    }

    private func failed(_ error: any Error) async {
        if error is CancellationError { return }
        needsGreeting = true
        switch error {
        case let refusal as Refusal where refusal.code == .wrongVersion:
            await report(.refused(.unreadable(refusal.message)))
        case LinkError.wrongKey(let text): await report(.refused(.wrongKey(text)))
        default: break
        }
    }
}
