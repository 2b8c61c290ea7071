internal import Platform
package import Protocol
internal import Synchronization
package import Timing

/// The coordinator's end of the clock exchange with one host.
///
/// It tries the host's addresses in turn until one answers, stays with it, and searches again when it falls silent. Only
/// the answer that carries the mark under the agreed key counts, so an address can't be taken for another host's.
///
/// Concurrency: an actor on an event loop; all probes share one thread with real-time priority. A burst runs in the
/// handlers of that thread alone, without a change of threads between its exchanges.
package actor ClockProbe {
    /// What has been exchanged so far.
    package struct Counts: Sendable, Hashable {
        package var sent = 0
        package var answered = 0
        /// Requests that the system wouldn't send: no route, no such interface.
        package var unsent = 0
        /// Datagrams that aren't an answer to a request of ours.
        package var foreign = 0
        /// Bursts that nobody took from the stream.
        package var dropped = 0
        package var wallClockSteps = 0
        package var stampFallbacks = 0
    }

    private struct Request {
        let sent: Int64
        let discipline: DisciplineReading
    }

    /// A burst that is under way.
    private struct Burst {
        var left: Int
        var sent = 0
        var answered = 0
        /// The request that is waited for, and until when.
        var waiting: UInt64 = 0
        var deadline: Timestamp<HostTime>
        let target: SocketAddress
        var done: CheckedContinuation<Void, Never>?
    }

    /// The thread of all probes.
    private static let sharedLoop = EventLoop(name: "clock-probe", fifoPriority: 60)

    /// How many probes run, for sharing the thread.
    private static let running = Mutex(0)

    /// Whether the probes' thread has real-time priority; without it bounds are wider when the machine is busy.
    package static var hasRealtimePriority: Bool { sharedLoop.hasRealtimePriority }

    package nonisolated let host: HostID

    /// The exchanges of each burst that say the most, in order; at most 64 bursts wait, the oldest are dropped and counted.
    package nonisolated let bursts: AsyncStream<[ClockExchange<RigTime, HostTime>]>

    private let loop: EventLoop
    private let continuation: AsyncStream<[ClockExchange<RigTime, HostTime>]>.Continuation
    private let coordinator: UniqueID
    private let key: DatagramKey
    private var socket: DatagramSocket
    private var discipline = ClockDiscipline()
    private var addresses: [NetworkAddress]
    private var port: UInt16
    private var sequence: UInt64
    private var outstanding: [UInt64: Request] = [:]
    private var burst: Burst?
    /// What was answered since the last burst's end, by its number.
    private var answered: [UInt64: ClockExchange<RigTime, HostTime>] = [:]
    private var search = AddressSearch()
    private var pace: ProbePace
    private var isAnswering = false
    private var patience: EventLoop.TimerID?
    private var pause: (continuation: CheckedContinuation<Void, Never>, timer: EventLoop.TimerID)?
    private var count = Counts()

    /// A probe of a host at its addresses, the likeliest first, under the 32 bytes that it gave with its welcome.
    ///
    /// Throws `SystemError`, when there is no socket left.
    package init(
        host: HostID, addresses: [NetworkAddress], port: UInt16, coordinator: UniqueID, key: [UInt8],
        schedule: ProbeSchedule = ProbeSchedule()
    ) throws {
        precondition(key.count == 32, "a clock key has 32 bytes, not \(key.count)")
        self.host = host
        self.addresses = addresses
        self.port = port
        self.coordinator = coordinator
        self.key = DatagramKey(key)
        pace = ProbePace(schedule: schedule)
        loop = Self.sharedLoop
        socket = try DatagramSocket(port: 0, stampsSends: true)
        // Greater than all that an earlier probe under the same key has used: it counts slower than the clock.
        sequence = UInt64(clamping: HostClock.rigNow.nanoseconds)
        (bursts, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(64))
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package var counts: Counts {
        var counts = count
        counts.wallClockSteps = socket.wallClockSteps
        counts.stampFallbacks = socket.stampFallbacks
        return counts
    }

    /// The address that answers; nil while none does.
    package var answering: NetworkAddress? { isAnswering ? search.current(of: addresses) : nil }

    /// Which stamps are used, for the log.
    package var stamps: String { socket.hasSendStamps ? "kernel, sent and received" : "kernel, received only" }

    /// Takes new addresses of the host; the one that answers is kept if it is still among them.
    package func update(addresses new: [NetworkAddress], port newPort: UInt16) {
        guard new != addresses || newPort != port else { return }
        let kept = answering
        addresses = new
        port = newPort
        search = AddressSearch(startingAt: kept.flatMap { new.firstIndex(of: $0) } ?? 0)
    }

    /// Exchanges fast for a while: something about the clocks was a surprise.
    package func hurry() {
        pace.hurry(at: HostClock.rigNow)
        endPause()
    }

    /// Exchanges until the task is cancelled; the stream ends then.
    package func run() async {
        let descriptor = socket.descriptor
        do {
            try loop.watch(descriptor, for: .readable) { [weak self] events in
                self?.assumeIsolated { $0.drain(events) }
            }
        } catch {
            Log("clock").error("host \(host): no clock exchange: \(error)")
            return
        }
        Self.running.withLock { $0 += 1 }
        defer {
            Self.running.withLock { $0 -= 1 }
            loop.unwatch(descriptor)
            continuation.finish()
        }
        while !Task.isCancelled {
            await performBurst()
            let hosts = Self.running.withLock { $0 }
            await rest(until: HostClock.now + pace.pause(at: HostClock.rigNow, hosts: hosts))
        }
    }

    /// Suspends until an instant, a hurry, or the end of the task.
    private func rest(until end: Timestamp<HostTime>) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let timer = loop.schedule(at: end) { [weak self] in self?.assumeIsolated { $0.endPause() } }
                pause = (continuation, timer)
            }
        } onCancel: {
            // It runs after the pause has begun, since that is on the loop's thread now.
            loop.perform { [weak self] in self?.assumeIsolated { $0.endPause() } }
        }
    }

    private func endPause() {
        guard let pause else { return }
        self.pause = nil
        loop.cancel(pause.timer)
        pause.continuation.resume()
    }

    // MARK: Private

    private func performBurst() async {
        guard let address = search.current(of: addresses),
            let target = SocketAddress(address, port: port, family: socket.family)
        else {
            count.unsent += 1
            return conclude(sent: 1, answered: 0)
        }
        burst = Burst(left: pace.burst(at: HostClock.rigNow), deadline: HostClock.now, target: target)
        await withCheckedContinuation { continuation in
            burst?.done = continuation
            next()
        }
        if let patience { loop.cancel(patience) }
        let done = burst
        burst = nil
        conclude(sent: done?.sent ?? 0, answered: done?.answered ?? 0)
    }

    /// Judges a burst, and hands over what it found.
    private func conclude(sent: Int, answered count: Int) {
        var filter = ClockFilter<RigTime, HostTime>()
        for (_, exchange) in answered.sorted(by: { $0.key < $1.key }) { _ = filter.add(exchange) }
        answered = [:]
        let now = HostClock.rigNow
        pace.note(sent: sent, answered: count, leastDelay: filter.leastDelay, at: now)
        if !filter.exchanges.isEmpty, case .dropped = continuation.yield(filter.exchanges) { self.count.dropped += 1 }
        let result = search.note(answered: count > 0, of: addresses.count)
        if case .found = result, count > 0 { isAnswering = true }
        if case .lost = result {
            isAnswering = false
            pace.lost()
            Log("clock").warning("host \(host) no longer answers clock exchanges; its clock is carried on meanwhile")
        }
    }

    /// Sends the burst's next request, or ends it.
    private func next() {
        guard var current = burst else { return }
        // A silent address is left after two requests, so that the next one has its turn soon.
        guard current.left > 0, current.answered > 0 || current.sent < 2, let sent = send(to: current.target) else {
            burst?.done?.resume()
            burst?.done = nil
            return
        }
        current.left -= 1
        current.sent += 1
        current.waiting = sent
        let isTimed = current.sent > 1
        current.deadline = HostClock.now + pace.schedule.patience
        burst = current
        // One timer for the burst: it looks again when the deadline has moved on.
        if !isTimed { watchDeadline(current.deadline) }
    }

    private func watchDeadline(_ deadline: Timestamp<HostTime>) {
        patience = loop.schedule(at: deadline) { [weak self] in
            self?.assumeIsolated { probe in
                guard let burst = probe.burst, burst.done != nil else { return }
                if burst.deadline <= HostClock.now { probe.next() }
                if let again = probe.burst, again.done != nil { probe.watchDeadline(again.deadline) }
            }
        }
    }

    /// The number of the request; nil when it can't be sent.
    private func send(to target: SocketAddress) -> UInt64? {
        sequence += 1
        forgetOld()
        let bytes = ClockDatagram(kind: .request, coordinator: coordinator, sequence: sequence).encode(key: key)
        let reading = discipline.read()
        do {
            let sent = try socket.sendStamped(bytes, to: target)
            outstanding[sequence] = Request(sent: sent, discipline: reading)
            count.sent += 1
            return sequence
        } catch {
            count.unsent += 1
            return nil
        }
    }

    private func drain(_ events: EventLoop.Events) {
        if events.contains(.error) { socket.forgetErrors() }
        for _ in 0..<64 {
            guard let datagram = socket.receive() else { return }
            guard let answer = ClockDatagram(datagram.bytes, key: key), answer.kind == .answer,
                answer.coordinator == coordinator, let request = outstanding.removeValue(forKey: answer.sequence)
            else {
                count.foreign += 1
                continue
            }
            take(answer, request, received: datagram.arrival)
        }
    }

    private func take(_ answer: ClockDatagram, _ request: Request, received: Int64) {
        count.answered += 1
        // An earlier answer left later than it could say itself; what can't be isn't believed.
        if let earlier = answered[answer.earlier.sequence],
            answer.earlier.answered >= earlier.answered.nanoseconds, answer.earlier.answered <= answer.arrived
        {
            answered[answer.earlier.sequence]?.answered = Timestamp(nanoseconds: answer.earlier.answered)
        }
        answered[answer.sequence] = ClockExchange(
            sent: Timestamp(nanoseconds: request.sent), arrived: Timestamp(nanoseconds: answer.arrived),
            answered: Timestamp(nanoseconds: answer.answered), received: Timestamp(nanoseconds: received),
            localDiscipline: request.discipline, remoteDiscipline: answer.discipline)
        while answered.count > 64, let oldest = answered.keys.min() { answered[oldest] = nil }
        guard let burst, burst.waiting == answer.sequence, burst.done != nil else { return }
        self.burst?.answered += 1
        next()
    }

    /// Requests that were never answered are forgotten when 64 are open.
    private func forgetOld() {
        while outstanding.count >= 64, let oldest = outstanding.keys.min() { outstanding[oldest] = nil }
    }
}
