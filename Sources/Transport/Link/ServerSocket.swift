internal import Platform

/// One bound socket of a `CommandServer`, with its monitor and its memory of what was answered.
final class ServerSocket {
    let port: UInt16
    var cache: AnswerCache
    private let socket: ZMQSocket
    private let monitor: ZMQMonitor
    /// Addresses by descriptor, of connections whose handshake isn't done.
    private var accepted: [Int32: String] = [:]
    private var failure: ZMQMonitor.Failure?

    init(
        _ context: ZMQContext, at address: String, port: UInt16, limits: ZMQSocket.Limits, security: ZMQSecurity,
        cache: AnswerCache.Limits
    ) throws {
        self.cache = AnswerCache(limits: cache)
        socket = try ZMQSocket(context, .router, limits: limits, security: security)
        monitor = try ZMQMonitor(socket)
        self.port = try Self.bind(socket, at: address, port: port)
    }

    private static func bind(_ socket: ZMQSocket, at address: String, port: UInt16) throws -> UInt16 {
        let host = address.contains(":") && !address.hasPrefix("[") ? "[\(address)]" : address
        do {
            let endpoint = try socket.bind("tcp://\(host):\(port == 0 ? "*" : String(port))")
            return endpoint.split(separator: ":").last.flatMap { UInt16($0) } ?? port
        } catch {
            throw error.isAddressInUse ? LinkSetupError.portInUse(port) : error as any Error
        }
    }

    func watch(on loop: EventLoop, messages: @escaping @Sendable () -> Void, events: @escaping @Sendable () -> Void)
        throws
    {
        try monitor.watch(on: loop, events)
        try socket.watch(on: loop, messages)
    }

    /// Frames: routing id, header, body, attachments.
    func receive() throws(ZMQError) -> ZMQMessage? { try socket.receive(limit: 8) }

    func send(_ frames: [[UInt8]]) throws(ZMQError) { try socket.send(frames) }

    func close() {
        socket.close()
        monitor.close()
    }

    /// The next connection that failed in its handshake.
    ///
    /// All events of a socket come from one thread, and a failure is followed at once by the end of its connection. The
    /// address is nil when the connection was gone before we could ask for it.
    func nextFailure() -> (failure: ZMQMonitor.Failure, address: String?)? {
        while let event = monitor.next() {
            switch event {
            case .accepted(let descriptor):
                if accepted.count >= 4096 { accepted = [:] }
                accepted[descriptor] = PeerAddress.of(descriptor: descriptor)
            case .handshakeFailed(let failure): self.failure = failure
            case .disconnected(let descriptor):
                let address = accepted.removeValue(forKey: descriptor)
                defer { failure = nil }
                if let failure { return (failure, address) }
            case .connected, .handshakeSucceeded, .acceptFailed: break
            }
        }
        return nil
    }
}
