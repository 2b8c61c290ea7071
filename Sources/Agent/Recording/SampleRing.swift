package import Devices
internal import Platform
internal import Synchronization
package import Timing

/// The bounded queue between a device's thread and the writer of its stream.
///
/// Before a take it keeps the newest samples and lets the older ones go. In a take the writer drains it; when the writer
/// is too slow, the oldest samples go, and those at or after T0 are counted and located. Neither side ever waits for the
/// other.
///
/// Concurrency: `deliver` and `report` on the device's thread, all else anywhere; the state is in one `Mutex`.
package final class SampleRing: SampleSink {
    package struct Limits: Sendable, Hashable {
        /// What is kept before a take.
        package var span = Interval.seconds(2)
        package var idleBytes = 64 << 20
        /// What may wait for the writer in a take.
        package var takeBytes = 256 << 20
        /// The same for a stream that delivers so much that the above isn't the span: 4K without compression.
        package var mostBytes = 2 << 30
        /// Entries, always.
        package var count = 1 << 16

        package init() {}
    }

    package enum Entry: Sendable {
        case sample(Sample)
        case event(DeviceEvent)
    }

    /// Samples at or after T0 that the writer didn't get.
    package struct Overflow: Sendable, Hashable {
        /// Samples; sample frames of audio.
        package var count: Int64
        package var from: Timestamp<HostTime>
        package var last: Timestamp<HostTime>
        /// By the driver's or the device's counter, where it has one.
        package var firstSequence: Int64?
        package var lastSequence: Int64?
    }

    /// What has come in since the device was started.
    package struct Arrivals: Sendable, Hashable {
        /// Samples; sample frames of audio.
        package var samples: Int64 = 0
        package var last: Timestamp<HostTime>?
        package var failure: String?
    }

    private struct State {
        /// Set in a take.
        var takeBytes = 0
        /// Samples from here on aren't written: the first one tells the writer so, the others aren't kept.
        var stop: Timestamp<HostTime>?
        var hasPassed = false
        var entries: [Entry?] = []
        var head = 0
        var bytes = 0
        /// Set in a take.
        var start: Timestamp<HostTime>?
        var overflow: Overflow?
        var arrivals = Arrivals()
        var wake: (@Sendable () -> Void)?
        var isWoken = false
    }

    private let limits: Limits
    private let state = Mutex(State())

    package init(limits: Limits = Limits()) { self.limits = limits }

    package var arrivals: Arrivals { state.withLock { $0.arrivals } }

    /// Bytes that are kept now.
    package var bytes: Int { state.withLock { $0.bytes } }

    /// What is kept now, from the oldest on: before a take the last `span` of it.
    package var recent: [Sample] {
        state.withLock { state in
            state.entries[state.head...].compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
        }
    }

    // MARK: The device's side

    package func deliver(_ sample: Sample) {
        let now = HostClock.now
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            state.arrivals.samples += Self.weight(sample)
            state.arrivals.last = now
            if let stop = state.stop, sample.capture >= stop {
                // A writer that is behind at T1 must not lose for them what lies before it.
                if state.hasPassed { return nil }
                state.hasPassed = true
            }
            Self.append(.sample(sample), to: &state)
            trim(&state, newest: sample.capture)
            return Self.wakeUp(&state)
        }
        wake?()
    }

    package func report(_ event: DeviceEvent) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            if case .failed(let text) = event { state.arrivals.failure = text }
            Self.append(.event(event), to: &state)
            trim(&state, newest: nil)
            return Self.wakeUp(&state)
        }
        wake?()
    }

    // MARK: The writer's side

    /// From now on the writer drains: `wake` is called, from any thread, when something waits.
    ///
    /// `bytesPerSecond` is what the stream is known to deliver; the ring holds the span of it and a quarter more, when
    /// that is more than the limit for all streams.
    package func beginTake(
        at start: Timestamp<HostTime>, until stop: Timestamp<HostTime>? = nil, bytesPerSecond: Double = 0,
        wake: @escaping @Sendable () -> Void
    ) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            let wanted = min(max(bytesPerSecond, 0) * limits.span.seconds * 1.25, Double(limits.mostBytes))
            state.takeBytes = max(limits.takeBytes, Int(wanted))
            state.start = start
            (state.stop, state.hasPassed) = (stop, false)
            state.overflow = nil
            state.wake = wake
            state.isWoken = false
            return state.entries.count > state.head ? Self.wakeUp(&state) : nil
        }
        wake?()
    }

    /// T1 was moved; what lies before the new one and came after the old one is kept from now on.
    package func moveEnd(to stop: Timestamp<HostTime>) {
        state.withLock { state in (state.stop, state.hasPassed) = (stop, false) }
    }

    /// The take is over: the newest samples are kept again.
    package func endTake() {
        state.withLock { state in
            state.start = nil
            (state.stop, state.hasPassed) = (nil, false)
            state.wake = nil
            state.overflow = nil
        }
    }

    /// The device is started anew: nothing of before counts.
    package func reset() {
        state.withLock { state in
            state.entries = []
            state.head = 0
            state.bytes = 0
            state.arrivals = Arrivals()
            state.overflow = nil
        }
    }

    /// The oldest entries, and what was lost before them; an empty answer means that `wake` will be called again.
    package func take(atMost count: Int) -> (lost: Overflow?, entries: [Entry]) {
        state.withLock { state in
            let lost = state.overflow
            state.overflow = nil
            var entries: [Entry] = []
            while entries.count < count, let entry = Self.removeFirst(&state) { entries.append(entry) }
            if entries.isEmpty { state.isWoken = false }
            return (lost, entries)
        }
    }

    // MARK: Inside the lock

    private func trim(_ state: inout State, newest: Timestamp<HostTime>?) {
        let limit = state.start == nil ? limits.idleBytes : state.takeBytes
        while state.bytes > limit || state.entries.count - state.head > limits.count { Self.evict(&state) }
        guard state.start == nil, let newest else { return }
        while let first = Self.first(state), case .sample(let sample) = first, newest - sample.capture > limits.span {
            Self.evict(&state)
        }
    }

    private static func evict(_ state: inout State) {
        guard case .sample(let sample) = removeFirst(&state), let start = state.start, sample.capture >= start else {
            return
        }
        var overflow =
            state.overflow
            ?? Overflow(count: 0, from: sample.capture, last: sample.capture, firstSequence: sample.sequence)
        overflow.count += weight(sample)
        overflow.last = max(overflow.last, sample.capture)
        overflow.lastSequence = sample.sequence
        state.overflow = overflow
    }

    private static func first(_ state: State) -> Entry? {
        state.head < state.entries.count ? state.entries[state.head] : nil
    }

    private static func append(_ entry: Entry, to state: inout State) {
        state.entries.append(entry)
        state.bytes += size(entry)
    }

    private static func removeFirst(_ state: inout State) -> Entry? {
        guard state.head < state.entries.count, let entry = state.entries[state.head] else { return nil }
        state.entries[state.head] = nil
        state.head += 1
        state.bytes -= size(entry)
        if state.head == state.entries.count || state.head >= 1024 {
            state.entries.removeFirst(state.head)
            state.head = 0
        }
        return entry
    }

    private static func wakeUp(_ state: inout State) -> (@Sendable () -> Void)? {
        guard !state.isWoken, let wake = state.wake else { return nil }
        state.isWoken = true
        return wake
    }

    static func weight(_ sample: Sample) -> Int64 {
        if case .audio(_, let frames) = sample.payload { return Int64(max(0, frames)) }
        return 1
    }

    /// Bytes, with what the entry itself takes.
    private static func size(_ entry: Entry) -> Int {
        guard case .sample(let sample) = entry else { return 128 }
        switch sample.payload {
        case .frame(let bytes, _): return bytes.count + 128
        case .audio(let bytes, _): return bytes.count + 128
        case .values(let values): return values.count * 8 + 128
        }
    }
}
