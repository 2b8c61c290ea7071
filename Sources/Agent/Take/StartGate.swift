internal import Platform
internal import Synchronization
internal import Timing

/// The instant at which a host really acts on T0, on a thread of its own with real-time priority.
///
/// What is in the files doesn't depend on it: the gates go by the samples' stamps. It is measured because it says what a
/// device would have to bear that has to be started by a call, and how well this machine keeps time.
final class StartGate: Sendable {
    private struct State {
        var start: Timestamp<HostTime>?
        var opened: Timestamp<HostTime>?
        var timer: EventLoop.TimerID?
    }

    private let loop = EventLoop(name: "gate", fifoPriority: 55)
    private let state = Mutex(State())

    /// Whether the thread has real-time priority; without it the gate opens late when all cores are busy.
    var hasRealtimePriority: Bool { loop.hasRealtimePriority }

    /// Opens at an instant; an earlier one is forgotten.
    func arm(at start: Timestamp<HostTime>) {
        state.withLock { state in
            if let timer = state.timer { loop.cancel(timer) }
            state = State(start: start)
            state.timer = loop.schedule(at: start) { [weak self] in
                let now = HostClock.now
                self?.state.withLock { if $0.start == start { $0.opened = now } }
            }
        }
    }

    /// When it opened for a start; nil: it hasn't yet.
    func opened(for start: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        state.withLock { $0.start == start ? $0.opened : nil }
    }

    /// Waits until it has opened for a start, at most a second; nil when it hasn't even then.
    func wait(for start: Timestamp<HostTime>) async -> Timestamp<HostTime>? {
        for _ in 0..<100 {
            if let opened = opened(for: start) { return opened }
            guard (try? await loop.sleep(for: .milliseconds(10))) != nil else { return nil }
        }
        return opened(for: start)
    }
}
