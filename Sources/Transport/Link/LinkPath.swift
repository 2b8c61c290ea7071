internal import Platform
internal import Protocol
internal import Timing

/// One socket of an `AgentConnection` to one address.
final class LinkPath {
    let endpoint: String
    /// The address's place in the list; nil for the bulk socket.
    let index: Int?
    let socket: ZMQSocket
    let monitor: ZMQMonitor
    /// The handshake is done.
    var isEstablished = false
    var connectedAt: Timestamp<HostTime>?

    var isBulk: Bool { index == nil }

    init(
        _ context: ZMQContext, endpoint: String, index: Int?, highWater: Int32, security: ZMQSecurity
    ) throws(ZMQError) {
        self.endpoint = endpoint
        self.index = index
        socket = try ZMQSocket(context, .dealer, limits: ZMQSocket.Limits(highWater: highWater), security: security)
        monitor = try ZMQMonitor(socket)
    }

    func watch(on loop: EventLoop, messages: @escaping @Sendable () -> Void, events: @escaping @Sendable () -> Void)
        throws
    {
        try monitor.watch(on: loop, events)
        try socket.watch(on: loop, messages)
    }

    func connect() throws(ZMQError) { try socket.connect(endpoint) }

    func close() {
        socket.close()
        monitor.close()
    }
}

/// A request of an `AgentConnection` that has no answer yet.
struct PendingRequest {
    let frames: [[UInt8]]
    let kind: Message.Kind
    let timeout: Interval
    let isBulk: Bool
    /// Nil for what the connection asks for itself.
    let continuation: CheckedContinuation<Envelope, any Error>?
    var deadline: EventLoop.TimerID?
    var repetition: EventLoop.TimerID?
}
