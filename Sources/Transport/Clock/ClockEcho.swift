internal import Platform
package import Protocol
internal import Synchronization
internal import Timing

/// The agent's end of the clock exchange, on its own thread: answers a coordinator's request with the kernel's receive
/// stamp and the time of the answer, and the question who it is.
///
/// Only requests under the key of an authorized coordinator are answered, each sequence number once. Everything else is
/// counted and dropped.
///
/// Concurrency: all state is in one `Mutex`; the socket is used by the loop's thread only.
package final class ClockEcho: Sendable {
    /// What has come in so far.
    package struct Counts: Sendable, Hashable {
        package var answered = 0
        package var identified = 0
        /// No datagram of ours: wrong length, magic or layout.
        package var foreign = 0
        /// Coordinators that aren't authorized, and marks that are wrong.
        package var unauthorized = 0
        package var replayed = 0
        /// Identify questions that came too often.
        package var limited = 0
        /// Answers that couldn't be sent at once.
        package var unsent = 0
        /// Steps of the wall clock that were noticed.
        package var wallClockSteps = 0
        /// Datagrams whose kernel stamp couldn't be used; their stamp is later, and the bound wider.
        package var stampFallbacks = 0
    }

    private struct Coordinator {
        let key: DatagramKey
        var window = ReplayWindow()
        /// When the last answer really left.
        var departure = ClockDatagram.Departure()
        /// For forgetting the one that was quiet for longest.
        var heard: Timestamp<HostTime>
    }

    private struct State: ~Copyable {
        var socket: DatagramSocket
        var discipline = ClockDiscipline()
        var coordinators: [UniqueID: Coordinator] = [:]
        var limit = RateLimit(perAddress: (rate: 5, burst: 10), overall: (rate: 200, burst: 400), capacity: 512)
        var counts = Counts()
    }

    /// So many coordinators can be authorized at a time.
    package static let coordinatorLimit = 64

    /// The UDP port.
    package let port: UInt16

    private let loop: EventLoop
    private let state: Mutex<State>
    private let descriptor: Int32
    private let identify: @Sendable () -> [UInt8]

    /// Binds and starts to answer.
    ///
    /// - Parameters:
    ///   - port: zero for any that is free.
    ///   - identify: the advertisement as text, `AgentAdvertisement.identifyText`; called on the echo's thread.
    /// - Throws: `SystemError`, when the port is taken.
    package init(port: UInt16, identify: @escaping @Sendable () -> [UInt8]) throws {
        let socket = try DatagramSocket(port: port, stampsSends: true)
        self.port = socket.port
        self.identify = identify
        descriptor = socket.descriptor
        state = Mutex(State(socket: socket))
        loop = EventLoop(name: "clock-echo", fifoPriority: 60)
        try loop.watch(descriptor, for: .readable) { [weak self] in self?.drain($0) }
    }

    deinit { stop() }

    /// Whether the thread has real-time priority; without it the bound is wider when the machine is busy.
    package var hasRealtimePriority: Bool { loop.hasRealtimePriority }

    /// Which stamps are used, for the log.
    package var stamps: String {
        state.withLock { $0.socket.hasSendStamps } ? "kernel, sent and received" : "kernel, received only"
    }

    package var counts: Counts {
        state.withLock { state in
            var counts = state.counts
            counts.wallClockSteps = state.socket.wallClockSteps
            counts.stampFallbacks = state.socket.stampFallbacks
            return counts
        }
    }

    /// Answers this coordinator from now on; a new key takes the place of the old one.
    ///
    /// The key has 32 bytes, was agreed over an encrypted connection, and is used for no other pair.
    package func authorize(_ coordinator: UniqueID, key: [UInt8]) {
        precondition(key.count == 32, "a clock key has 32 bytes, not \(key.count)")
        state.withLock { state in
            if state.coordinators[coordinator] == nil, state.coordinators.count >= Self.coordinatorLimit,
                let quiet = state.coordinators.min(by: { $0.value.heard < $1.value.heard })?.key
            {
                state.coordinators[quiet] = nil
            }
            state.coordinators[coordinator] = Coordinator(key: DatagramKey(key), heard: HostClock.now)
        }
    }

    /// Answers this coordinator no longer.
    package func revoke(_ coordinator: UniqueID) {
        state.withLock { state in state.coordinators[coordinator] = nil }
    }

    /// Stops to answer; the port is free when the last owner lets go.
    package func stop() {
        loop.unwatch(descriptor)
        loop.stop()
    }

    /// Answers what waits, at most 64 datagrams: the loop calls again for the rest.
    private func drain(_ events: EventLoop.Events) {
        state.withLock { state in
            if events.contains(.error) { state.socket.forgetErrors() }
            for _ in 0..<64 {
                guard let datagram = state.socket.receive() else { return }
                if datagram.bytes.prefix(4).elementsEqual(IdentifyDatagram.magic) {
                    answerQuestion(datagram, &state)
                } else {
                    answerRequest(datagram, &state)
                }
            }
        }
    }

    private func answerRequest(_ datagram: DatagramSocket.Datagram, _ state: inout State) {
        guard let claimed = ClockDatagram.claimedCoordinator(datagram.bytes) else {
            state.counts.foreign += 1
            return
        }
        guard let key = state.coordinators[claimed]?.key, var answer = ClockDatagram(datagram.bytes, key: key),
            answer.kind == .request
        else {
            state.counts.unauthorized += 1
            return
        }
        guard state.coordinators[claimed]?.window.admit(answer.sequence) == true else {
            state.counts.replayed += 1
            return
        }
        answer.kind = .answer
        answer.arrived = datagram.arrival
        answer.discipline = state.discipline.read()
        answer.earlier = state.coordinators[claimed]?.departure ?? ClockDatagram.Departure()
        // As late as can be; when it has really left, the next answer says it.
        let now = HostClock.now
        answer.answered = now.nanoseconds
        state.coordinators[claimed]?.heard = now
        do {
            let left = try state.socket.sendStamped(answer.encode(key: key), to: datagram.from)
            state.coordinators[claimed]?.departure = .init(sequence: answer.sequence, answered: left)
            state.counts.answered += 1
        } catch {
            state.counts.unsent += 1
        }
    }

    private func answerQuestion(_ datagram: DatagramSocket.Datagram, _ state: inout State) {
        guard let nonce = IdentifyDatagram.nonce(ofQuestion: datagram.bytes) else {
            state.counts.foreign += 1
            return
        }
        let asker = datagram.from.networkAddress?.text ?? ""
        guard state.limit.admit(asker, at: HostClock.now) else {
            state.counts.limited += 1
            return
        }
        guard let answer = IdentifyDatagram.answer(nonce: nonce, text: identify()) else {
            state.counts.unsent += 1
            return
        }
        do {
            _ = try state.socket.sendStamped(answer, to: datagram.from)
            state.counts.identified += 1
        } catch {
            state.counts.unsent += 1
        }
    }
}
