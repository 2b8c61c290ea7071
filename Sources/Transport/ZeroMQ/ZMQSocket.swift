internal import CZMQ
internal import Glibc
package import Platform
package import Timing

/// Who may talk to a socket, and how.
package enum ZMQSecurity: Sendable {
    /// No encryption and no keys: for `inproc`, and for loopback where it is asked for.
    case plain
    /// CURVE, the side that binds; the context's ZAP handler decides who is admitted.
    case curveServer(secret: CurveKey)
    /// CURVE, the side that connects and knows whom it wants.
    case curveClient(server: CurveKey, keys: CurveKeyPair)
}

/// A received multipart message, and what the security layer says about its sender.
package struct ZMQMessage: Sendable {
    package var frames: [[UInt8]]
    /// Parts above the limit that were thrown away.
    package var discarded = 0
    /// The name that the ZAP handler gave.
    package var userID: String?
    /// The key that the ZAP handler saw.
    package var key: CurveKey?
    /// Numeric, as the kernel says it.
    package var address: String?
}

/// A ZeroMQ socket; it never blocks.
///
/// Concurrency: one thread uses it, the one of the event loop that watches it; it isn't Sendable. It may be made and
/// released on another thread as long as no two use it at once.
package final class ZMQSocket {
    package enum Kind: Sendable {
        case router, dealer, pair, reply

        fileprivate var number: Int32 {
            switch self {
            case .router: ZMQ_ROUTER
            case .dealer: ZMQ_DEALER
            case .pair: ZMQ_PAIR
            case .reply: ZMQ_REP
            }
        }
    }

    /// What keeps the memory and the waiting of a socket bounded.
    package struct Limits: Sendable {
        /// Messages that wait for each peer, to be sent and to be taken.
        package var highWater: Int32
        /// Bytes of one frame; a peer that sends more is cut off.
        package var frame: Int64 = Int64(4 << 20) + 65536
        /// How long a closed socket goes on sending.
        package var linger: Interval = .milliseconds(300)
        /// A peer that is silent for this long, also on libzmq's own heartbeat, is taken for dead.
        package var silence: Interval = .seconds(3)
        /// Bytes of the kernel's receive buffer; nil leaves it to the kernel.
        package var receiveBuffer: Int32?

        package init(highWater: Int32) { self.highWater = highWater }
    }

    /// The domain that the ZAP handler sees; with an empty one libzmq would admit anybody when no handler answers.
    static let zapDomain = "downbeat"

    private let context: ZMQContext
    private let message: UnsafeMutablePointer<zmq_msg_t>
    private var handle: UnsafeMutableRawPointer?
    private var isMonitored = false
    private var watcher: (loop: EventLoop, descriptor: Int32)?

    /// The corresponding C functions are `zmq_socket` and `zmq_setsockopt`.
    package init(_ context: ZMQContext, _ kind: Kind, limits: Limits, security: ZMQSecurity = .plain) throws(ZMQError) {
        guard let handle = zmq_socket(context.pointer, kind.number) else { throw .current("making a ZeroMQ socket") }
        self.context = context
        self.handle = handle
        message = .allocate(capacity: 1)
        message.initialize(to: zmq_msg_t())
        try set(ZMQ_LINGER, Int32(clamping: limits.linger.nanoseconds / 1_000_000))
        try set(ZMQ_SNDHWM, limits.highWater)
        try set(ZMQ_RCVHWM, limits.highWater)
        try set(ZMQ_MAXMSGSIZE, withUnsafeBytes(of: limits.frame) { Array($0) })
        try set(ZMQ_IPV6, 1)
        if let size = limits.receiveBuffer { try set(ZMQ_RCVBUF, size) }
        if kind == .router { try set(ZMQ_ROUTER_MANDATORY, 1) }
        if kind == .router || kind == .dealer {
            let silence = Int32(clamping: limits.silence.nanoseconds / 1_000_000)
            try set(ZMQ_HEARTBEAT_IVL, silence / 3)
            try set(ZMQ_HEARTBEAT_TIMEOUT, silence)
            try set(ZMQ_HEARTBEAT_TTL, silence)
            try set(ZMQ_HANDSHAKE_IVL, 5000)
        }
        if kind == .dealer {
            // Only a connection whose handshake is done takes messages; none wait for one that may never come.
            try set(ZMQ_IMMEDIATE, 1)
            try set(ZMQ_RECONNECT_IVL, 100)
            try set(ZMQ_RECONNECT_IVL_MAX, 1000)
            try set(ZMQ_CONNECT_TIMEOUT, 2000)
        }
        try secure(security)
    }

    deinit {
        close()
        message.deallocate()
    }

    private func secure(_ security: ZMQSecurity) throws(ZMQError) {
        switch security {
        case .plain: return
        case .curveServer(let secret):
            try set(ZMQ_CURVE_SERVER, 1)
            try set(ZMQ_CURVE_SECRETKEY, secret.bytes)
            try set(ZMQ_ZAP_DOMAIN, Array(Self.zapDomain.utf8))
            // Without a handler nobody is admitted. A library that doesn't know the option admits nobody either as
            // long as the handler is bound, which it is before any socket.
            try? set(czmq_ZAP_ENFORCE_DOMAIN, 1)
        case .curveClient(let server, let keys):
            try set(ZMQ_CURVE_SERVERKEY, server.bytes)
            try set(ZMQ_CURVE_PUBLICKEY, keys.publicKey.bytes)
            try set(ZMQ_CURVE_SECRETKEY, keys.secretKey.bytes)
        }
    }

    private var open: UnsafeMutableRawPointer {
        guard let handle else { preconditionFailure("a closed ZeroMQ socket was used") }
        return handle
    }

    private func set(_ option: Int32, _ value: Int32) throws(ZMQError) {
        try set(option, withUnsafeBytes(of: value) { Array($0) })
    }

    private func set(_ option: Int32, _ value: [UInt8]) throws(ZMQError) {
        guard zmq_setsockopt(open, option, value, value.count) == 0 else {
            throw .current("setting option \(option) of a ZeroMQ socket")
        }
    }

    // MARK: Endpoints

    /// Binds, and gives back the endpoint with its real port.
    ///
    /// The corresponding C function is `zmq_bind`.
    @discardableResult
    package func bind(_ endpoint: String) throws(ZMQError) -> String {
        guard zmq_bind(open, endpoint) == 0 else { throw .current("binding \(endpoint)") }
        var text = [CChar](repeating: 0, count: 256)
        var size = text.count
        guard zmq_getsockopt(open, ZMQ_LAST_ENDPOINT, &text, &size) == 0 else { throw .current("binding \(endpoint)") }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Starts to connect; libzmq goes on trying.
    ///
    /// The corresponding C function is `zmq_connect`.
    package func connect(_ endpoint: String) throws(ZMQError) {
        guard zmq_connect(open, endpoint) == 0 else { throw .current("connecting to \(endpoint)") }
    }

    /// Publishes the events of this socket at an `inproc` endpoint.
    ///
    /// The corresponding C function is `zmq_socket_monitor`.
    func publishEvents(_ mask: Int32) throws(ZMQError) -> (ZMQContext, String) {
        let endpoint = context.uniqueEndpoint("monitor")
        guard zmq_socket_monitor(open, endpoint, mask) == 0 else { throw .current("monitoring a ZeroMQ socket") }
        isMonitored = true
        return (context, endpoint)
    }

    /// Closes it; what was sent may linger.
    ///
    /// Its monitor, if there is one, is closed after it. The corresponding C function is `zmq_close`.
    package func close() {
        if let (loop, descriptor) = watcher { loop.unwatch(descriptor) }
        watcher = nil
        guard let handle else { return }
        // A socket that is closed still has events for a while. One that nobody takes any more would stop the library's
        // I/O thread for good, so the monitor is ended first; its reader must be open until then.
        if isMonitored { zmq_socket_monitor(handle, nil, 0) }
        zmq_close(handle)
        self.handle = nil
    }

    // MARK: Messages

    /// Sends a whole multipart message or nothing.
    ///
    /// Afterwards the socket must be drained: sending may swallow the edge that says that something has arrived.
    /// The corresponding C function is `zmq_send`, with ZMQ_DONTWAIT.
    ///
    /// - Throws: `ZMQError`; `isAgain` when there is no room or no connection.
    package func send(_ frames: [[UInt8]]) throws(ZMQError) {
        var failure: ZMQError?
        for (index, frame) in frames.enumerated() {
            let more = index < frames.count - 1 ? ZMQ_SNDMORE : 0
            if zmq_send(open, frame, frame.count, ZMQ_DONTWAIT | more) >= 0 { continue }
            failure = .current("sending")
            // A message that was refused at its first frame is not begun; one that broke off later must be ended, or
            // the next message would be taken for its rest.
            if index == 0 { break }
        }
        if let failure { throw failure }
    }

    /// Takes the next multipart message; nil when none is there.
    ///
    /// The corresponding C functions are `zmq_msg_recv`, with ZMQ_DONTWAIT, and `zmq_msg_gets`.
    ///
    /// - Parameter limit: frames above it are thrown away and counted.
    /// - Returns: the message, or nil.
    /// - Throws: `ZMQError`, never for "nothing there".
    package func receive(limit: Int = 8) throws(ZMQError) -> ZMQMessage? {
        // A handler that was queued before `close` finds nothing.
        guard let open = handle else { return nil }
        var received = ZMQMessage(frames: [])
        while true {
            zmq_msg_init(message)
            defer { zmq_msg_close(message) }
            guard zmq_msg_recv(message, open, ZMQ_DONTWAIT) >= 0 else {
                let error = ZMQError.current("receiving")
                if error.isAgain { return nil }
                if error.code == EINTR { continue }
                throw error
            }
            if received.frames.count < limit {
                let bytes = UnsafeRawBufferPointer(start: zmq_msg_data(message), count: zmq_msg_size(message))
                received.frames.append(Array(bytes))
            } else {
                received.discarded += 1
            }
            if zmq_msg_more(message) != 0 { continue }
            received.userID = property("User-Id")
            received.address = property("Peer-Address")
            received.key = property(ZAPHandler.keyProperty).flatMap { CurveKey(z85: $0) }
            return received
        }
    }

    private func property(_ name: String) -> String? { zmq_msg_gets(message, name).map { String(cString: $0) } }

    // MARK: Readiness

    /// Calls the handler on the loop's thread whenever something may have arrived.
    ///
    /// ZMQ_FD is an edge: the handler must receive until nothing is left.
    package func watch(on loop: EventLoop, _ handler: @escaping @Sendable () -> Void) throws {
        var descriptor: Int32 = -1
        var size = MemoryLayout<Int32>.size
        guard zmq_getsockopt(open, ZMQ_FD, &descriptor, &size) == 0 else {
            throw ZMQError.current("asking a ZeroMQ socket for its descriptor")
        }
        try loop.watch(descriptor, for: .readable) { _ in handler() }
        watcher = (loop, descriptor)
        // What came before the watch has had its edge already.
        loop.perform(handler)
    }
}
