internal import CLinux
internal import Glibc
internal import Synchronization
package import Timing

/// One named thread that is at once an epoll loop, a timer wheel and a `SerialExecutor`: the one concurrency primitive.
///
/// An actor that names a loop as its `unownedExecutor` owns C handles which only that thread touches; what blocks there
/// blocks no cooperative thread. Descriptor and timer handlers run on the loop's thread too, so a handler may use
/// `assumeIsolated` of such an actor.
///
/// Concurrency: jobs, handlers and timers are in one `Mutex`; each is run outside of it, on the loop's thread. The
/// thread lives until `stop()` or until the last owner lets go of the loop; jobs that arrive later never run.
package final class EventLoop: SerialExecutor {
    /// What a descriptor is watched for, and what was found: the bits of epoll.
    package struct Events: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let readable = Events(rawValue: EPOLLIN.rawValue)
        package static let writable = Events(rawValue: EPOLLOUT.rawValue)
        package static let priority = Events(rawValue: EPOLLPRI.rawValue)
        package static let error = Events(rawValue: EPOLLERR.rawValue)
        package static let hangup = Events(rawValue: EPOLLHUP.rawValue)
    }

    /// The right to a timer, for cancelling it.
    package struct TimerID: Hashable, Sendable { fileprivate let value: UInt64 }

    private let core: Core

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: the thread's name, at most 15 bytes.
    ///   - fifoPriority: asks for SCHED_FIFO with this priority; when it isn't granted the loop runs as it is, and
    ///     `hasRealtimePriority` says so.
    package init(name: String, fifoPriority: Int32? = nil) {
        core = Core(name: name, fifoPriority: fifoPriority)
        core.launch()
    }

    deinit { core.stop() }

    /// Whether SCHED_FIFO was asked for and granted.
    package var hasRealtimePriority: Bool { core.state.withLock { $0.realtime } }

    /// Ends the thread once the running handler has returned.
    package func stop() { core.stop() }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) { core.enqueue(UnownedJob(job), for: self) }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Whether the caller runs on this loop's thread.
    package var isOnLoop: Bool { core.isOnLoop }

    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    package func checkIsolated() { precondition(isOnLoop, "not on the event loop \(core.name)") }

    /// Runs a closure on the loop's thread, in order with the jobs.
    package func perform(_ work: @escaping @Sendable () -> Void) { core.perform(work) }

    // MARK: Descriptors

    /// Watches a descriptor.
    ///
    /// The handler is stored before the descriptor is armed, so no event can be missed.
    package func watch(_ descriptor: Int32, for events: Events, _ handler: @escaping @Sendable (Events) -> Void)
        throws(SystemError)
    {
        try core.watch(descriptor, events, handler)
    }

    /// Stops watching; call it before the descriptor is closed.
    ///
    /// Nothing happens when it wasn't watched.
    package func unwatch(_ descriptor: Int32) { core.unwatch(descriptor) }

    // MARK: Timers

    /// Runs a closure on the loop's thread at an instant of CLOCK_MONOTONIC, never before it.
    @discardableResult
    package func schedule(at deadline: Timestamp<HostTime>, _ action: @escaping @Sendable () -> Void) -> TimerID {
        core.schedule(deadline, action)
    }

    /// Takes a timer back; nothing happens when it has run already.
    package func cancel(_ timer: TimerID) { core.cancel(timer) }

    /// Suspends the caller until an instant of CLOCK_MONOTONIC; throws `CancellationError` when the task is cancelled.
    package func sleep(until deadline: Timestamp<HostTime>) async throws {
        let sleeper = Sleeper()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                guard sleeper.install(continuation) else { return }
                sleeper.timer(schedule(at: deadline) { sleeper.finish(with: .success(())) })
            }
        } onCancel: {
            if let timer = sleeper.finish(with: .failure(CancellationError())) { cancel(timer) }
        }
    }

    /// Suspends the caller for a length of CLOCK_MONOTONIC.
    package func sleep(for interval: Interval) async throws { try await sleep(until: HostClock.now + interval) }

    /// Runs blocking work on the loop's thread, and suspends the caller until it is done.
    package func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            perform { continuation.resume(with: Result { try work() }) }
        }
    }
}

/// A continuation that is resumed exactly once, by the timer or by the cancellation, whichever comes first.
private final class Sleeper: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Void, any Error>?
        var timer: EventLoop.TimerID?
        var result: Result<Void, any Error>?
    }
    private let state = Mutex(State())

    /// False when the sleep was over before it began.
    func install(_ continuation: CheckedContinuation<Void, any Error>) -> Bool {
        let early = state.withLock { state -> Result<Void, any Error>? in
            if state.result == nil { state.continuation = continuation }
            return state.result
        }
        if let early { continuation.resume(with: early) }
        return early == nil
    }

    func timer(_ timer: EventLoop.TimerID) { state.withLock { $0.timer = timer } }

    @discardableResult
    func finish(with result: Result<Void, any Error>) -> EventLoop.TimerID? {
        let (waiting, timer) = state.withLock { state -> (CheckedContinuation<Void, any Error>?, EventLoop.TimerID?) in
            guard state.result == nil else { return (nil, nil) }
            state.result = result
            defer { state.continuation = nil }
            return (state.continuation, state.timer)
        }
        waiting?.resume(with: result)
        return timer
    }
}

/// What the thread holds on to.
///
/// It is apart from `EventLoop`, so that the thread doesn't keep its owner alive.
private final class Core: Sendable {
    struct Timer {
        let deadline: Timestamp<HostTime>
        let id: UInt64
        let action: @Sendable () -> Void
    }

    enum Work {
        /// A job keeps its executor alive until it has run.
        case job(UnownedJob, EventLoop)
        case closure(@Sendable () -> Void)
    }

    struct State {
        var work: [Work] = []
        var handlers: [Int32: @Sendable (EventLoop.Events) -> Void] = [:]
        /// Sorted by deadline, the next one last; a loop has a handful of timers.
        var timers: [Timer] = []
        var nextTimer: UInt64 = 0
        var stopping = false
        var realtime = false
        var thread: pthread_t?
    }

    let name: String
    let fifoPriority: Int32?
    let state = Mutex(State())
    private let poll: Int32
    private let wakeup: Int32
    private let timer: Int32

    init(name: String, fifoPriority: Int32?) {
        self.name = name
        self.fifoPriority = fifoPriority
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
        // Without descriptors nothing can work at all; there is nobody to report it to who could go on.
        precondition(poll >= 0 && wakeup >= 0 && timer >= 0, "no file descriptor left for event loop \(name)")
        for descriptor in [wakeup, timer] { add(descriptor, .readable) }
    }

    deinit {
        for descriptor in [poll, wakeup, timer] { _ = close(descriptor) }
    }

    func launch() {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        let failed = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Core>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, context)
        precondition(failed == 0, "no thread left for event loop \(name)")
        pthread_detach(thread)
    }

    var isOnLoop: Bool {
        state.withLock { state in state.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    func stop() {
        state.withLock { $0.stopping = true }
        wake()
    }

    func enqueue(_ job: UnownedJob, for loop: EventLoop) {
        let first = state.withLock { state in
            state.work.append(.job(job, loop))
            return state.work.count == 1
        }
        if first { wake() }
    }

    func perform(_ closure: @escaping @Sendable () -> Void) {
        let first = state.withLock { state in
            state.work.append(.closure(closure))
            return state.work.count == 1
        }
        if first { wake() }
    }

    func watch(
        _ descriptor: Int32, _ events: EventLoop.Events, _ handler: @escaping @Sendable (EventLoop.Events) -> Void
    ) throws(SystemError) {
        let known = state.withLock { $0.handlers.updateValue(handler, forKey: descriptor) != nil }
        var event = epoll_event(events: events.rawValue, data: epoll_data_t(fd: descriptor))
        let operation = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD
        guard epoll_ctl(poll, operation, descriptor, &event) == 0 else {
            let error = Errno.current
            _ = state.withLock { $0.handlers.removeValue(forKey: descriptor) }
            throw SystemError(error, "watching descriptor \(descriptor)")
        }
    }

    func unwatch(_ descriptor: Int32) {
        let known = state.withLock { $0.handlers.removeValue(forKey: descriptor) != nil }
        if known { _ = epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, nil) }
    }

    func schedule(_ deadline: Timestamp<HostTime>, _ action: @escaping @Sendable () -> Void) -> EventLoop.TimerID {
        let (id, isNext) = state.withLock { state -> (UInt64, Bool) in
            state.nextTimer += 1
            let new = Timer(deadline: deadline, id: state.nextTimer, action: action)
            let place = state.timers.firstIndex { $0.deadline <= deadline } ?? state.timers.endIndex
            state.timers.insert(new, at: place)
            if place == state.timers.count - 1 { arm(deadline) }
            return (new.id, true)
        }
        _ = isNext
        return EventLoop.TimerID(value: id)
    }

    func cancel(_ timer: EventLoop.TimerID) {
        state.withLock { state in state.timers.removeAll { $0.id == timer.value } }
    }

    // MARK: The thread

    private func run() {
        clinux_set_thread_name(name)
        let granted = fifoPriority.map { clinux_set_thread_fifo($0) == 0 } ?? false
        state.withLock { state in
            state.thread = pthread_self()
            state.realtime = granted
        }
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while !state.withLock({ $0.stopping }) {
            let count = epoll_wait(poll, &events, Int32(events.count), -1)
            guard count > 0 else { continue }
            for event in events.prefix(Int(count)) {
                let descriptor = event.data.fd
                if descriptor == wakeup || descriptor == timer {
                    drain(descriptor)
                } else if let handler = state.withLock({ $0.handlers[descriptor] }) {
                    handler(EventLoop.Events(rawValue: event.events))
                }
            }
            runTimers()
            runWork()
        }
        runWork()
    }

    private func runWork() {
        let work = state.withLock { state in
            let work = state.work
            state.work = []
            return work
        }
        for item in work {
            switch item {
            case .job(let job, let loop): job.runSynchronously(on: loop.asUnownedSerialExecutor())
            case .closure(let closure): closure()
            }
        }
    }

    private func runTimers() {
        while true {
            let due = state.withLock { state -> Timer? in
                guard let next = state.timers.last else { return nil }
                guard next.deadline <= HostClock.now else {
                    arm(next.deadline)
                    return nil
                }
                return state.timers.removeLast()
            }
            guard let due else { return }
            due.action()
        }
    }

    private func arm(_ deadline: Timestamp<HostTime>) {
        // A deadline in the past fires at once; zero would disarm the timer.
        let at = max(deadline.nanoseconds, 1)
        var setting = itimerspec(
            it_interval: timespec(),
            it_value: timespec(tv_sec: Int(at / 1_000_000_000), tv_nsec: Int(at % 1_000_000_000)))
        timerfd_settime(timer, Int32(TFD_TIMER_ABSTIME), &setting, nil)
    }

    private func add(_ descriptor: Int32, _ events: EventLoop.Events) {
        var event = epoll_event(events: events.rawValue, data: epoll_data_t(fd: descriptor))
        epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event)
    }

    private func wake() {
        var one: UInt64 = 1
        _ = write(wakeup, &one, 8)
    }

    private func drain(_ descriptor: Int32) {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}
