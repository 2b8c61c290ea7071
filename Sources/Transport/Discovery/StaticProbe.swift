internal import Glibc
internal import Platform
internal import Synchronization
package import Timing

/// Why a host of the static list couldn't be identified; each says what to do.
package enum IdentifyError: Error, Sendable, Hashable, CustomStringConvertible {
    case badEndpoint(String)
    case unresolvable(String, String)
    case silent(String, after: Interval)
    case unreadable(String, String)

    package var description: String {
        switch self {
        case .badEndpoint(let endpoint):
            "'\(endpoint.prefix(80))' is no endpoint: legal is HOST or HOST:PORT, and [ADDRESS]:PORT for IPv6"
        case .unresolvable(let endpoint, let why):
            "\(endpoint): no address is known for this name (\(why)); check its spelling, or write the address"
        case .silent(let endpoint, let after):
            "\(endpoint): no agent answered within \(after.seconds) s; check that downbeat-agent runs there and that UDP "
                + "to its clock port is let through"
        case .unreadable(let endpoint, let why):
            "\(endpoint): what answered is no agent that this version can talk to: \(why)"
        }
    }
}

/// Asks a named host who it is, by UDP to its clock port: for networks that block multicast.
///
/// Concurrency: an actor on an event loop of its own, whose thread may wait for the name service.
package actor StaticProbe {
    /// The clock port of an agent that wasn't configured otherwise.
    package static let defaultPort: UInt16 = 7710

    private let loop = EventLoop(name: "identify")

    package init() {}

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Asks all addresses of a name, again and again, until one answers or the time is over.
    ///
    /// An endpoint is "host", "host:port" or "[fe80::1%eth0]:port". Throws `IdentifyError`, `SystemError` or
    /// `CancellationError`.
    package func identify(_ endpoint: String, timeout: Interval) async throws -> AgentAdvertisement {
        guard let (name, port) = Self.parse(endpoint) else { throw IdentifyError.badEndpoint(endpoint) }
        let deadline = HostClock.now + timeout
        let question = try Question(endpoint: endpoint)
        let targets: [SocketAddress]
        do {
            targets = try SocketAddress.resolve(name, port: port, family: question.family)
        } catch {
            throw IdentifyError.unresolvable(endpoint, error.reason)
        }
        try loop.watch(question.descriptor, for: .readable) { _ in question.drain() }
        defer { loop.unwatch(question.descriptor) }
        while true {
            question.ask(targets)
            let next = min(deadline, HostClock.now + .milliseconds(250))
            if let answer = try await question.answer(until: next, on: loop) { return try answer.get() }
            if HostClock.now >= deadline { throw IdentifyError.silent(endpoint, after: timeout) }
        }
    }

    /// Name and port of an endpoint; nil when it is none.
    static func parse(_ endpoint: String) -> (name: String, port: UInt16)? {
        if NetworkAddress(endpoint) != nil, endpoint.first != "[" { return (endpoint, defaultPort) }
        var name = endpoint[...]
        var port = defaultPort
        if let colon = endpoint.lastIndex(of: ":"), endpoint.last != "]" {
            name = endpoint[..<colon]
            guard let number = UInt16(endpoint[endpoint.index(after: colon)...]), number != 0 else { return nil }
            port = number
        }
        if name.first == "[", name.last == "]" {
            guard NetworkAddress(String(name))?.isIPv6 == true else { return nil }
            name = name.dropFirst().dropLast()
        } else if name.contains(":") {
            return nil
        }
        return name.isEmpty || name.utf8.count > 255 ? nil : (String(name), port)
    }
}

/// One question that is open.
///
/// Concurrency: in a `Mutex`; the socket is used by the loop's thread only.
private final class Question: Sendable {
    private struct State: ~Copyable {
        var socket: DatagramSocket
        var answer: Result<AgentAdvertisement, IdentifyError>?
        var waiter: CheckedContinuation<Void, Never>?
    }

    let family: Int32
    let descriptor: Int32
    private let endpoint: String
    private let nonce = SecureRandom.bytes(IdentifyDatagram.nonceLength)
    private let state: Mutex<State>

    init(endpoint: String) throws(SystemError) {
        let socket = try DatagramSocket(port: 0)
        self.endpoint = endpoint
        family = socket.family
        descriptor = socket.descriptor
        state = Mutex(State(socket: socket))
    }

    func ask(_ targets: [SocketAddress]) {
        let question = IdentifyDatagram.question(nonce: nonce)
        // An address that can't be reached is no reason to leave the others out.
        state.withLock { state in for target in targets.prefix(16) { try? state.socket.send(question, to: target) } }
    }

    func drain() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            while let datagram = state.socket.receive() {
                guard let text = IdentifyDatagram.text(ofAnswer: datagram.bytes, nonce: nonce) else { continue }
                do throws(AdvertisementError) {
                    let address = datagram.from.networkAddress
                    let found = try AgentAdvertisement(identifyText: text, addresses: address.map { [$0] } ?? [])
                    state.answer = .success(found)
                } catch {
                    state.answer = .failure(.unreadable(endpoint, error.description))
                }
                defer { state.waiter = nil }
                return state.waiter
            }
            return nil
        }
        waiter?.resume()
    }

    /// Nil when there is none in time.
    func answer(until deadline: Timestamp<HostTime>, on loop: EventLoop) async throws
        -> Result<AgentAdvertisement, IdentifyError>?
    {
        let timer = loop.schedule(at: deadline) { [weak self] in self?.wake() }
        defer { loop.cancel(timer) }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.answer == nil && !Task.isCancelled { state.waiter = continuation }
                    return state.waiter == nil
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
        try Task.checkCancellation()
        return state.withLock { $0.answer }
    }

    private func wake() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
