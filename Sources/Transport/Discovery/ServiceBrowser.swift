package import Platform
internal import Protocol
internal import Timing

/// Finds agents through the system's avahi-daemon, for as long as it lives: a daemon that is absent or restarts is waited
/// for, and browsing begins anew.
///
/// Concurrency: an actor on an event loop, on whose thread Avahi's callbacks run too.
package actor ServiceBrowser {
    /// How long after the daemon came back its hosts may take to announce themselves again.
    private static let settlingTime = Interval.milliseconds(5000)

    private let loop: EventLoop
    private let log = Log("discovery")
    private var connection: AvahiConnection?
    private var browse: AvahiBrowse?
    private var table = BrowseTable()
    private var isAway: String?
    private var observers: [UInt64: AsyncStream<BrowseEvent>.Continuation] = [:]
    private var nextObserver: UInt64 = 0
    private var settling: EventLoop.TimerID?

    /// Events that nobody took in time; the table `agents` has what they said.
    package private(set) var dropped = 0

    /// - Parameter loop: where Avahi's calls are made, some of which wait for the daemon; a loop of its own by default.
    package init(loop: EventLoop = EventLoop(name: "browser")) { self.loop = loop }

    isolated deinit {
        browse?.free()
        connection?.close()
        for observer in observers.values { observer.finish() }
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// All agents that are announced now.
    package var agents: [AgentAdvertisement] { table.agents }

    /// Starts browsing, if it didn't yet, and tells what is known and what happens from now on.
    ///
    /// The stream is bounded; the oldest events are dropped and counted.
    package func start() -> AsyncStream<BrowseEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: BrowseEvent.self, bufferingPolicy: .bufferingNewest(1024))
        nextObserver += 1
        let number = nextObserver
        observers[number] = continuation
        continuation.onTermination = { [weak self, loop] _ in
            loop.perform { [weak self] in self?.assumeIsolated { $0.observers[number] = nil } }
        }
        for agent in table.agents { continuation.yield(.found(agent)) }
        if let isAway { continuation.yield(.daemonAway(isAway)) }
        if connection == nil {
            let connection = AvahiConnection(loop: loop) { [weak self] change in
                self?.assumeIsolated { $0.connectionChanged(change) }
            }
            self.connection = connection
            connection.open()
        }
        return stream
    }

    /// Ends browsing and all streams.
    package func stop() {
        browse?.free()
        browse = nil
        connection?.close()
        connection = nil
        for observer in observers.values { observer.finish() }
        observers = [:]
        table = BrowseTable()
    }

    // MARK: Private

    private func connectionChanged(_ change: AvahiConnection.Change) {
        switch change {
        case .up:
            if isAway != nil {
                isAway = nil
                tell([.daemonBack])
            }
            guard browse == nil, let client = connection?.client else { return }
            browse = AvahiBrowse(client: client, type: AgentAdvertisement.serviceType, loop: loop) {
                [weak self] change in
                self?.assumeIsolated { $0.browseChanged(change) }
            }
            if browse == nil { log.error("avahi-daemon refuses to browse for agents") }
            dropStaleLater()
        case .renaming: break
        case .down(let why):
            browse?.free()
            browse = nil
            table.markStale()
            isAway = why
            log.warning("agents can't be found on the network: \(why)")
            tell([.daemonAway(why)])
        }
    }

    private func browseChanged(_ change: AvahiBrowse.Change) {
        switch change {
        case .resolved(let sighting, let found): tell(table.resolve(sighting, found))
        case .removed(let sighting): tell(table.remove(sighting))
        case .allForNow: break
        case .failed(let why): log.warning("browsing for agents failed: \(why)")
        }
    }

    private func dropStaleLater() {
        if let settling { loop.cancel(settling) }
        settling = loop.schedule(at: HostClock.now + Self.settlingTime) { [weak self] in
            self?.assumeIsolated { browser in
                guard browser.browse != nil else { return }
                browser.tell(browser.table.dropStale())
            }
        }
    }

    private func tell(_ events: [BrowseEvent]) {
        for event in events {
            for observer in observers.values {
                if case .dropped = observer.yield(event) { dropped += 1 }
            }
        }
    }
}
