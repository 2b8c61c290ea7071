package import Timing

/// Keeps the link to one camera: decides when to look for it, to connect, to send a heartbeat, and what it is called.
///
/// Pure. The figures are SyncField Swift's (heartbeat 2 s, two misses are a bad link, pauses from 0.5 to 60 s).
package struct CameraLinkMachine: Sendable, Hashable {
    package enum State: String, Sendable, Hashable {
        case idle, searching, connecting
        case bleReady = "ble_ready"
        case bleDegraded = "ble_degraded"
        /// The host is on this camera's Wi-Fi.
        case wifiBound = "wifi_bound"
        /// Another camera's Wi-Fi is in use; this one is only kept awake.
        case bleSuspended = "ble_suspended"
        case reconnecting, lost
        case givenUp = "given_up"
    }

    package enum Event: Sendable, Hashable {
        case wanted
        /// A person or a command wants it now: pauses start anew.
        case forced
        /// No longer wanted; the disconnect that follows is meant.
        case unwanted
        case found
        case scanEmpty
        case connected
        case connectFailed(String)
        /// The kernel may tell the same end twice.
        case disconnected(String)
        case heard
        /// dBm.
        case signal(Int)
        case wifi(WiFi)
        case tick
    }

    package enum WiFi: Sendable, Hashable { case own, other, none }

    package enum Action: Sendable, Hashable {
        case scan(Interval)
        case stopScan
        case connect
        case disconnect
        case heartbeat
        case changed(State, reason: String)
        /// The camera sleeps: a person should press its button or take it out of its dock.
        case askToWake
    }

    package static let heartbeat = Interval.seconds(2)
    /// While another camera holds the Wi-Fi.
    package static let slowHeartbeat = Interval.seconds(8)
    package static let missesForDegraded = 2
    package static let weakSignal = -85
    package static let debounce = Interval.milliseconds(500)
    package static let intentionalWindow = Interval.seconds(3)
    package static let pauses: [Interval] = [0.5, 1, 2, 4, 8, 15, 30, 60, 60, 60].map { .seconds($0) }
    package static let firstScan = Interval.seconds(15)
    package static let laterScan = Interval.seconds(6)
    package static let scansForLost = 3
    package static let unseenForLost = Interval.seconds(90)
    package static let wakePrompt = Interval.seconds(12)

    package private(set) var state = State.idle
    private var attempts = 0
    private var emptyScans = 0
    private var misses = 0
    private var isWeak = false
    private var wifi = WiFi.none
    private var searchBegan: Timestamp<HostTime>?
    private var hasAsked = false
    private var lastSeen: Timestamp<HostTime>?
    private var lastDisconnect: Timestamp<HostTime>?
    private var unwantedSince: Timestamp<HostTime>?
    private var heardSinceBeat = true
    private var nextBeat: Timestamp<HostTime>?
    private var retryAt: Timestamp<HostTime>?

    package init() {}

    package var isUp: Bool {
        switch state {
        case .bleReady, .bleDegraded, .wifiBound, .bleSuspended: true
        default: false
        }
    }

    /// When `tick` is due next.
    package var deadline: Timestamp<HostTime>? {
        let wake = hasAsked ? nil : searchBegan.map { $0 + Self.wakePrompt }
        return [isUp ? nextBeat : nil, state == .reconnecting ? retryAt : nil, state == .searching ? wake : nil]
            .compactMap { $0 }.min()
    }

    package mutating func handle(_ event: Event, at now: Timestamp<HostTime>) -> [Action] {
        switch event {
        case .wanted:
            unwantedSince = nil
            switch state {
            case .idle, .lost, .givenUp: return search(Self.firstScan, "wanted", at: now)
            default: return []
            }
        case .forced:
            (attempts, emptyScans, unwantedSince) = (0, 0, nil)
            return isUp || state == .connecting ? [] : search(Self.firstScan, "asked for again", at: now)
        case .unwanted:
            unwantedSince = now
            let wasUp = isUp || state == .connecting
            let wasSearching = state == .searching
            return (wasUp ? [.disconnect] : wasSearching ? [.stopScan] : []) + change(.idle, "no longer wanted")
        case .found:
            lastSeen = now
            (emptyScans, searchBegan, hasAsked) = (0, nil, false)
            guard state == .searching else { return [] }
            return change(.connecting, "found") + [.connect]
        case .scanEmpty: return scanEmpty(at: now)
        case .connected: return connected(at: now)
        case .connectFailed(let why):
            return state == .connecting ? retry(why, at: now) : []
        case .disconnected(let why): return disconnected(why, at: now)
        case .heard:
            lastSeen = now
            heardSinceBeat = true
            misses = 0
            return judge("heard again")
        case .signal(let level):
            isWeak = level < Self.weakSignal
            return judge(isWeak ? "signal \(level) dBm" : "signal is good again")
        case .wifi(let wifi):
            self.wifi = wifi
            nextBeat = isUp ? now : nil
            return judge("Wi-Fi")
        case .tick: return tick(at: now)
        }
    }

    private mutating func change(_ new: State, _ reason: String) -> [Action] {
        guard new != state else { return [] }
        state = new
        return [.changed(new, reason: reason)]
    }

    private mutating func search(_ patience: Interval, _ reason: String, at now: Timestamp<HostTime>) -> [Action] {
        retryAt = nil
        searchBegan = searchBegan ?? now
        return change(.searching, reason) + [.scan(patience)]
    }

    private mutating func scanEmpty(at now: Timestamp<HostTime>) -> [Action] {
        guard state == .searching else { return [] }
        emptyScans += 1
        let unseen = lastSeen.map { now - $0 >= Self.unseenForLost } ?? false
        guard emptyScans < Self.scansForLost, !unseen else {
            searchBegan = nil
            return change(.lost, unseen ? "not seen for 90 s" : "not heard in \(emptyScans) scans")
        }
        return search(Self.laterScan, "not heard yet", at: now)
    }

    private mutating func connected(at now: Timestamp<HostTime>) -> [Action] {
        guard state == .connecting else { return [] }
        (attempts, misses, isWeak, heardSinceBeat) = (0, 0, false, true)
        (lastSeen, lastDisconnect, nextBeat) = (now, nil, now)
        return change(goodState, "connected")
    }

    private mutating func disconnected(_ why: String, at now: Timestamp<HostTime>) -> [Action] {
        // The same end told twice must not count as two (it made pauses of 15 s out of 0.5 s).
        if let lastDisconnect, now - lastDisconnect < Self.debounce { return [] }
        lastDisconnect = now
        if let unwantedSince, now - unwantedSince < Self.intentionalWindow { return change(.idle, "as wanted") }
        guard isUp || state == .connecting else { return [] }
        return retry(why, at: now)
    }

    private mutating func retry(_ why: String, at now: Timestamp<HostTime>) -> [Action] {
        guard attempts < Self.pauses.count else { return change(.givenUp, why) }
        if let lastSeen, now - lastSeen >= Self.unseenForLost { return change(.lost, why) }
        retryAt = now + Self.pauses[attempts]
        attempts += 1
        return change(.reconnecting, why)
    }

    private var goodState: State {
        switch wifi {
        case .own: .wifiBound
        case .other: .bleSuspended
        case .none: misses >= Self.missesForDegraded || isWeak ? .bleDegraded : .bleReady
        }
    }

    private mutating func judge(_ reason: String) -> [Action] { isUp ? change(goodState, reason) : [] }

    private mutating func tick(at now: Timestamp<HostTime>) -> [Action] {
        if state == .reconnecting, let retryAt, retryAt <= now { return search(Self.laterScan, "again", at: now) }
        if state == .searching, !hasAsked, let searchBegan, searchBegan + Self.wakePrompt <= now {
            hasAsked = true
            return [.askToWake]
        }
        guard isUp, let beat = nextBeat, beat <= now else { return [] }
        nextBeat = now + (wifi == .other ? Self.slowHeartbeat : Self.heartbeat)
        // The camera whose Wi-Fi is in use isn't disturbed.
        guard wifi != .own else { return [] }
        misses = heardSinceBeat ? 0 : misses + 1
        heardSinceBeat = false
        return judge("no sign of it for \(misses) heartbeats") + [.heartbeat]
    }
}
