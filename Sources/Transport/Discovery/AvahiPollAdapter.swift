internal import CAvahi
internal import Glibc
internal import Platform
internal import Timing

/// Avahi's event interface (`AvahiPoll`) on an `EventLoop`, so that Avahi needs no thread of its own and its callbacks run
/// where its owner's code runs.
///
/// Concurrency: everything here runs on the loop's thread, which is what makes `@unchecked Sendable` true. It must outlive
/// the Avahi client that uses it.
final class AvahiPollAdapter: @unchecked Sendable {
    /// One watch of Avahi; D-Bus has two for one descriptor, the event loop only takes one handler for each.
    fileprivate final class Watch {
        let descriptor: Int32
        var wanted: AvahiWatchEvent
        var found = AvahiWatchEvent(rawValue: 0)
        let callback: AvahiWatchCallback
        let userdata: UnsafeMutableRawPointer?
        let adapter: AvahiPollAdapter
        var isFreed = false

        init(
            _ descriptor: Int32, _ wanted: AvahiWatchEvent, _ callback: @escaping AvahiWatchCallback,
            _ userdata: UnsafeMutableRawPointer?, _ adapter: AvahiPollAdapter
        ) {
            self.descriptor = descriptor
            self.wanted = wanted
            self.callback = callback
            self.userdata = userdata
            self.adapter = adapter
        }
    }

    /// One timer of Avahi.
    fileprivate final class Timeout: @unchecked Sendable {
        let callback: AvahiTimeoutCallback
        let userdata: UnsafeMutableRawPointer?
        let loop: EventLoop
        var timer: EventLoop.TimerID?

        init(
            _ callback: @escaping AvahiTimeoutCallback, _ userdata: UnsafeMutableRawPointer?, _ loop: EventLoop
        ) {
            self.callback = callback
            self.userdata = userdata
            self.loop = loop
        }

        /// - Parameter instant: of CLOCK_REALTIME, as Avahi counts; nil switches it off.
        func set(_ instant: UnsafePointer<timeval>?) {
            if let timer { loop.cancel(timer) }
            timer = nil
            guard let instant = instant?.pointee else { return }
            let at = Timestamp<WallTime>(
                nanoseconds: Int64(instant.tv_sec) &* 1_000_000_000 &+ Int64(instant.tv_usec) &* 1000)
            let wait = max(at - HostClock.wall, .zero)
            timer = loop.schedule(at: HostClock.now + wait) { self.fire() }
        }

        private func fire() {
            guard timer != nil else { return }
            timer = nil
            callback(OpaquePointer(Unmanaged.passUnretained(self).toOpaque()), userdata)
        }
    }

    let loop: EventLoop
    /// What `avahi_client_new` takes.
    let poll: UnsafeMutablePointer<AvahiPoll>
    private var watches: [Int32: [Watch]] = [:]

    init(loop: EventLoop) {
        self.loop = loop
        poll = .allocate(capacity: 1)
        poll.initialize(
            to: AvahiPoll(
                userdata: nil, watch_new: newWatch, watch_update: updateWatch, watch_get_events: foundEvents,
                watch_free: freeWatch, timeout_new: newTimeout, timeout_update: updateTimeout, timeout_free: freeTimeout
            ))
        poll.pointee.userdata = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit { poll.deallocate() }

    fileprivate func add(_ watch: Watch) {
        watches[watch.descriptor, default: []].append(watch)
        arm(watch.descriptor)
    }

    fileprivate func remove(_ watch: Watch) {
        watch.isFreed = true
        watches[watch.descriptor]?.removeAll { $0 === watch }
        arm(watch.descriptor)
    }

    /// Watches a descriptor for all that its watches want together.
    fileprivate func arm(_ descriptor: Int32) {
        let all = watches[descriptor] ?? []
        if all.isEmpty { watches[descriptor] = nil }
        var wanted: EventLoop.Events = []
        for watch in all {
            if watch.wanted.rawValue & AVAHI_WATCH_IN.rawValue != 0 { wanted.insert(.readable) }
            if watch.wanted.rawValue & AVAHI_WATCH_OUT.rawValue != 0 { wanted.insert(.writable) }
        }
        guard !wanted.isEmpty else { return loop.unwatch(descriptor) }
        do {
            try loop.watch(descriptor, for: wanted) { [weak self] events in self?.dispatch(descriptor, events) }
        } catch {
            Log("discovery").error("the connection to avahi-daemon can't be watched: \(error)")
        }
    }

    private func dispatch(_ descriptor: Int32, _ events: EventLoop.Events) {
        var found: UInt32 = 0
        if events.contains(.readable) { found |= AVAHI_WATCH_IN.rawValue }
        if events.contains(.writable) { found |= AVAHI_WATCH_OUT.rawValue }
        if events.contains(.error) { found |= AVAHI_WATCH_ERR.rawValue }
        if events.contains(.hangup) { found |= AVAHI_WATCH_HUP.rawValue }
        let always = AVAHI_WATCH_ERR.rawValue | AVAHI_WATCH_HUP.rawValue
        // A callback may free any watch, also one that is still to come.
        for watch in watches[descriptor] ?? [] where !watch.isFreed {
            let mine = found & (watch.wanted.rawValue | always)
            guard mine != 0 else { continue }
            watch.found = AvahiWatchEvent(rawValue: mine)
            watch.callback(
                OpaquePointer(Unmanaged.passUnretained(watch).toOpaque()), descriptor, watch.found, watch.userdata)
            watch.found = AvahiWatchEvent(rawValue: 0)
        }
    }
}

// What Avahi calls: free functions that find their object behind the pointer. The pointer of a watch or a timeout holds
// one reference, which `…_free` gives back.

private func adapter(_ api: UnsafePointer<AvahiPoll>?) -> AvahiPollAdapter? {
    api?.pointee.userdata.map { Unmanaged<AvahiPollAdapter>.fromOpaque($0).takeUnretainedValue() }
}

private func watch(_ pointer: OpaquePointer?) -> Unmanaged<AvahiPollAdapter.Watch>? {
    pointer.map { Unmanaged.fromOpaque(UnsafeRawPointer($0)) }
}

private func timeout(_ pointer: OpaquePointer?) -> Unmanaged<AvahiPollAdapter.Timeout>? {
    pointer.map { Unmanaged.fromOpaque(UnsafeRawPointer($0)) }
}

private func newWatch(
    _ api: UnsafePointer<AvahiPoll>?, _ descriptor: Int32, _ events: AvahiWatchEvent, _ callback: AvahiWatchCallback?,
    _ userdata: UnsafeMutableRawPointer?
) -> OpaquePointer? {
    guard let adapter = adapter(api), let callback else { return nil }
    let watch = AvahiPollAdapter.Watch(descriptor, events, callback, userdata, adapter)
    adapter.add(watch)
    return OpaquePointer(Unmanaged.passRetained(watch).toOpaque())
}

private func updateWatch(_ pointer: OpaquePointer?, _ events: AvahiWatchEvent) {
    guard let watch = watch(pointer)?.takeUnretainedValue() else { return }
    watch.wanted = events
    watch.adapter.arm(watch.descriptor)
}

private func foundEvents(_ pointer: OpaquePointer?) -> AvahiWatchEvent {
    watch(pointer)?.takeUnretainedValue().found ?? AvahiWatchEvent(rawValue: 0)
}

private func freeWatch(_ pointer: OpaquePointer?) {
    guard let reference = watch(pointer) else { return }
    let watch = reference.takeRetainedValue()
    watch.adapter.remove(watch)
}

private func newTimeout(
    _ api: UnsafePointer<AvahiPoll>?, _ instant: UnsafePointer<timeval>?, _ callback: AvahiTimeoutCallback?,
    _ userdata: UnsafeMutableRawPointer?
) -> OpaquePointer? {
    guard let adapter = adapter(api), let callback else { return nil }
    let timeout = AvahiPollAdapter.Timeout(callback, userdata, adapter.loop)
    timeout.set(instant)
    return OpaquePointer(Unmanaged.passRetained(timeout).toOpaque())
}

private func updateTimeout(_ pointer: OpaquePointer?, _ instant: UnsafePointer<timeval>?) {
    timeout(pointer)?.takeUnretainedValue().set(instant)
}

private func freeTimeout(_ pointer: OpaquePointer?) { timeout(pointer)?.takeRetainedValue().set(nil) }
