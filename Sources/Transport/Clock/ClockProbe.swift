internal import Platform
package import Protocol
package import Timing

/// The coordinator's end of the clock exchange with one host.
///
/// It tries the host's addresses in turn until one answers, stays with it, and searches again when it falls silent. Only
/// the answer that carries the mark under the agreed key counts, so an address can't be taken for another host's.
///
/// Concurrency: an actor on an event loop; all probes share one thread with real-time priority.
package actor ClockProbe {
    /// What has been exchanged so far.
    package struct Counts: Sendable, Hashable {
        package var sent = 0
        package var answered = 0
        /// Requests that the system wouldn't send: no route, no such interface.
        package var unsent = 0
        /// Datagrams that aren't an answer to a request of ours.
        package var foreign = 0
        /// Exchanges that nobody took from the stream.
        package var dropped = 0
        package var wallClockSteps = 0
        package var stampFallbacks = 0
    }

    private struct Request {
        let sent: Int64
        let address: NetworkAddress
    }

    /// The thread of all probes.
    private static let sharedLoop = EventLoop(name: "clock-probe", fifoPriority: 60)

    package nonisolated let host: HostID

    /// The exchanges as they come, at most 256 waiting; the oldest are dropped and counted.
    package nonisolated let exchanges: AsyncStream<ClockExchange<RigTime, HostTime>>

    private let loop: EventLoop
    private let continuation: AsyncStream<ClockExchange<RigTime, HostTime>>.Continuation
    private let coordinator: UniqueID
    private let schedule: ProbeSchedule
    private let key: DatagramKey
    private var socket: DatagramSocket
    private var addresses: [NetworkAddress]
    private var port: UInt16
    private var sequence: UInt64
    private var outstanding: [UInt64: Request] = [:]
    private var waiter: (sequence: UInt64, continuation: CheckedContinuation<Bool, Never>)?
    private var search = AddressSearch()
    private var contact: Timestamp<RigTime>?
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
        self.schedule = schedule
        self.key = DatagramKey(key)
        loop = Self.sharedLoop
        socket = try DatagramSocket(port: 0)
        // Greater than all that an earlier probe under the same key has used: it counts slower than the clock.
        sequence = UInt64(clamping: HostClock.rigNow.nanoseconds)
        (exchanges, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package var counts: Counts {
        var counts = count
        counts.wallClockSteps = socket.wallClockSteps
        counts.stampFallbacks = socket.stampFallbacks
        return counts
    }

    /// The address that answers; nil while none does.
    package var answering: NetworkAddress? { contact == nil ? nil : search.current(of: addresses) }

    /// Takes new addresses of the host; the one that answers is kept if it is still among them.
    package func update(addresses new: [NetworkAddress], port newPort: UInt16) {
        guard new != addresses || newPort != port else { return }
        let kept = answering
        addresses = new
        port = newPort
        search = AddressSearch(startingAt: kept.flatMap { new.firstIndex(of: $0) } ?? 0)
    }

    /// Exchanges until the task is cancelled; the stream ends then.
    package func run() async {
        let descriptor = socket.descriptor
        do {
            try loop.watch(descriptor, for: .readable) { [weak self] _ in self?.assumeIsolated { $0.drain() } }
        } catch {
            Log("clock").error("host \(host): no clock exchange: \(error)")
            return
        }
        defer {
            loop.unwatch(descriptor)
            continuation.finish()
        }
        while !Task.isCancelled {
            await burst()
            let pause = schedule.pause(sinceContact: contact.map { HostClock.rigNow - $0 })
            guard (try? await loop.sleep(for: pause)) != nil else { return }
        }
    }

    // MARK: Private

    private func burst() async {
        var answers = 0
        for number in 0..<max(1, schedule.burst) {
            // A silent address is left after two requests, so that the next one has its turn soon.
            if Task.isCancelled || answers == 0 && number >= 2 { break }
            if await exchange() { answers += 1 }
        }
        let wasKnown = contact != nil
        if search.note(answered: answers > 0, of: addresses.count) == .lost, wasKnown {
            contact = nil
            Log("clock").warning("host \(host) no longer answers clock exchanges; its clock is carried on meanwhile")
        }
    }

    /// True when the answer came in time.
    private func exchange() async -> Bool {
        guard let address = search.current(of: addresses),
            let target = SocketAddress(address, port: port, family: socket.family)
        else {
            count.unsent += 1
            return false
        }
        sequence += 1
        let number = sequence
        forgetOld()
        var bytes = ClockDatagram(kind: .request, coordinator: coordinator, sequence: number, sent: 0).unsigned()
        let sent = ClockDatagram.stamp(&bytes, .sent, now: { HostClock.rigNow.nanoseconds }, key: key)
        do {
            try socket.send(bytes, to: target)
        } catch {
            count.unsent += 1
            return false
        }
        count.sent += 1
        outstanding[number] = Request(sent: sent, address: address)
        let deadline = HostClock.now + schedule.patience
        return await withCheckedContinuation { continuation in
            waiter = (number, continuation)
            loop.schedule(at: deadline) { [weak self] in self?.assumeIsolated { $0.giveUp(number) } }
        }
    }

    private func drain() {
        for _ in 0..<64 {
            guard let datagram = socket.receive() else { return }
            guard let answer = ClockDatagram(datagram.bytes, key: key), answer.kind == .answer,
                answer.coordinator == coordinator, let request = outstanding[answer.sequence],
                request.sent == answer.sent
            else {
                count.foreign += 1
                continue
            }
            outstanding[answer.sequence] = nil
            take(answer, received: datagram.arrival)
        }
    }

    private func take(_ answer: ClockDatagram, received: Int64) {
        count.answered += 1
        if contact == nil { contact = HostClock.rigNow }
        let exchange = ClockExchange<RigTime, HostTime>(
            sent: Timestamp(nanoseconds: answer.sent), arrived: Timestamp(nanoseconds: answer.arrived),
            answered: Timestamp(nanoseconds: answer.answered), received: Timestamp(nanoseconds: received))
        if case .dropped = continuation.yield(exchange) { count.dropped += 1 }
        resume(answer.sequence, true)
    }

    private func giveUp(_ number: UInt64) { resume(number, false) }

    private func resume(_ number: UInt64, _ answered: Bool) {
        guard let waiter, waiter.sequence == number else { return }
        self.waiter = nil
        waiter.continuation.resume(returning: answered)
    }

    /// Requests that were never answered are forgotten when 64 are open.
    private func forgetOld() {
        while outstanding.count >= 64, let oldest = outstanding.keys.min() { outstanding[oldest] = nil }
    }
}
