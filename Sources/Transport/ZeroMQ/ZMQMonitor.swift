internal import CZMQ
package import Platform

/// What libzmq says about the connections of one socket.
package final class ZMQMonitor {
    package enum Failure: Sendable, Hashable {
        /// The other side's ZAP handler said no; the status is 300, 400 or 500.
        case refused(status: Int)
        /// What one side sent couldn't be opened with the key that the other expects.
        case cryptographic
        /// One side encrypts and the other doesn't.
        case mechanismMismatch
        /// Not the protocol of ZeroMQ.
        case malformed(code: UInt32)
        /// The connection broke in the middle of the handshake: also what the other side sees of a `cryptographic`.
        case cut(Errno)
    }

    package enum Event: Sendable, Hashable {
        /// TCP is up; the handshake begins.
        case connected
        case accepted(descriptor: Int32)
        case handshakeSucceeded
        case handshakeFailed(Failure)
        case disconnected(descriptor: Int32)
        case acceptFailed(Errno)
    }

    private static let mask =
        ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPT_FAILED
        | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
        | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH

    private let socket: ZMQSocket
    /// The monitor outlives it, whatever order their owner releases them in.
    private let observed: ZMQSocket

    /// Call it before the socket binds or connects.
    package init(_ observed: ZMQSocket) throws(ZMQError) {
        let (context, endpoint) = try observed.publishEvents(Self.mask)
        // No limit: at one the library's only I/O thread would wait for us. Connections are few.
        self.observed = observed
        socket = try ZMQSocket(context, .pair, limits: ZMQSocket.Limits(highWater: 0))
        try socket.connect(endpoint)
    }

    /// Calls the handler on the loop's thread; it must take events until there are none.
    package func watch(on loop: EventLoop, _ handler: @escaping @Sendable () -> Void) throws {
        try socket.watch(on: loop, handler)
    }

    /// Call it after the observed socket was closed.
    package func close() { socket.close() }

    deinit { observed.close() }

    /// The next event; nil when none is there.
    package func next() -> Event? {
        while let message = (try? socket.receive()) ?? nil {
            guard let bytes = message.frames.first, bytes.count == 6 else { continue }
            let kind = Int32(bytes[0]) | Int32(bytes[1]) << 8
            let value = bytes[2...].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            if let event = Self.event(kind, value) { return event }
        }
        return nil
    }

    private static func event(_ kind: Int32, _ value: UInt32) -> Event? {
        let number = Int32(truncatingIfNeeded: value)
        switch kind {
        case ZMQ_EVENT_CONNECTED: return .connected
        case ZMQ_EVENT_ACCEPTED: return .accepted(descriptor: number)
        case ZMQ_EVENT_ACCEPT_FAILED: return .acceptFailed(Errno(rawValue: number))
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return .handshakeSucceeded
        case ZMQ_EVENT_DISCONNECTED: return .disconnected(descriptor: number)
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: return .handshakeFailed(.refused(status: Int(value)))
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return .handshakeFailed(.cut(Errno(rawValue: number)))
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
            switch number {
            case ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC, ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE:
                return .handshakeFailed(.cryptographic)
            case ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH: return .handshakeFailed(.mechanismMismatch)
            default: return .handshakeFailed(.malformed(code: value))
            }
        default: return nil
        }
    }
}
