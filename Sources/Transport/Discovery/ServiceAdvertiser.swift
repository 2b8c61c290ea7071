package import Platform
internal import Protocol
internal import Timing

/// Tells the network about this agent through the system's avahi-daemon.
///
/// It goes on for as long as it lives: a daemon that is absent, restarts or renames the host is waited for, and a name that
/// another host has already gets a number ("cam #2"; the host's identity is in the record, not in the name).
///
/// Concurrency: an actor on an event loop, on whose thread Avahi's callbacks run too.
package actor ServiceAdvertiser {
    /// What happens to the advertisement.
    package enum Event: Sendable, Hashable {
        /// The network can see it, under this name.
        case published(String)
        /// The daemon is away; with the cause and the cure.
        case daemonAway(String)
        /// Another service has the name; with the next one that is tried.
        case renamed(String)
    }

    private let loop: EventLoop
    private let log = Log("discovery")
    private var connection: AvahiConnection?
    private var isUp = false
    private var registration: AvahiRegistration?
    private var wanted: AgentAdvertisement?
    private var name = ""
    private var observers: [UInt64: AsyncStream<Event>.Continuation] = [:]
    private var nextObserver: UInt64 = 0
    private var last: Event?

    /// - Parameter loop: where Avahi's calls are made, some of which wait for the daemon; a loop of its own by default.
    package init(loop: EventLoop = EventLoop(name: "advertiser")) { self.loop = loop }

    isolated deinit {
        registration?.free()
        connection?.close()
        for observer in observers.values { observer.finish() }
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// What happens from now on, after what happened last; bounded, the oldest are dropped.
    package var events: AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(32))
        nextObserver += 1
        let number = nextObserver
        observers[number] = continuation
        continuation.onTermination = { [weak self, loop] _ in
            loop.perform { [weak self] in self?.assumeIsolated { $0.observers[number] = nil } }
        }
        if let last { continuation.yield(last) }
        return stream
    }

    /// Advertises this from now on, instead of what was advertised before.
    package func publish(_ advertisement: AgentAdvertisement) {
        let sameName = wanted?.host == advertisement.host
        wanted = advertisement
        if !sameName { name = Self.instanceName(advertisement.host.rawValue) }
        if connection == nil {
            let connection = AvahiConnection(loop: loop) { [weak self] change in
                self?.assumeIsolated { $0.connectionChanged(change) }
            }
            self.connection = connection
            connection.open()
        }
        register()
    }

    /// Takes the advertisement back.
    package func withdraw() {
        wanted = nil
        registration?.free()
        registration = nil
        connection?.close()
        connection = nil
        isUp = false
        last = nil
    }

    // MARK: Private

    private func connectionChanged(_ change: AvahiConnection.Change) {
        switch change {
        case .up:
            isUp = true
            register()
        case .renaming:
            registration?.reset()
        case .down(let why):
            registration?.free()
            registration = nil
            isUp = false
            log.warning("this host can't be found on the network: \(why)")
            tell(.daemonAway(why))
        }
    }

    private func register() {
        guard isUp, let client = connection?.client, let wanted else { return }
        if registration == nil {
            registration = AvahiRegistration(client: client) { [weak self] change in
                self?.assumeIsolated { $0.registrationChanged(change) }
            }
        }
        // Sixteen names that are all taken on this machine are a mistake of another kind.
        for _ in 0..<16 {
            let service = AvahiRegistration.Service(
                name: name, type: AgentAdvertisement.serviceType, port: wanted.commandPort, text: wanted.textRecord)
            switch registration?.register(service) ?? .failed("avahi-daemon refuses an entry group") {
            case .accepted: return
            case .collision: rename()
            case .failed(let why): return retryLater(why)
            }
        }
        retryLater("'\(name)' and the names like it are all taken")
    }

    private func registrationChanged(_ change: AvahiRegistration.Change) {
        switch change {
        case .established: tell(.published(name))
        case .collision:
            rename()
            register()
        case .failed(let why): retryLater(why)
        }
    }

    private func rename() {
        name = AvahiRegistration.alternative(to: name)
        log.warning("another service on the network has the name of this host already; it is advertised as '\(name)'")
        tell(.renamed(name))
    }

    private func retryLater(_ why: String) {
        log.warning("avahi-daemon doesn't advertise this host (\(why)); it is tried again in a second")
        loop.schedule(at: HostClock.now + .milliseconds(1000)) { [weak self] in
            self?.assumeIsolated { $0.register() }
        }
    }

    private func tell(_ event: Event) {
        last = event
        for observer in observers.values { observer.yield(event) }
    }

    /// At most 63 bytes (RFC 6763, 4.1.1), cut between characters.
    static func instanceName(_ host: String) -> String {
        var name = host
        while name.utf8.count > 63 { name.removeLast() }
        return name
    }
}
