internal import Platform

/// Decides who may connect to the CURVE sockets of one context: the handler of RFC 27 at `inproc://zeromq.zap.01`.
///
/// Concurrency: an actor on an event loop of its own, so that the decision, which may read a file, holds up nothing.
actor ZAPHandler {
    /// The property under which a message tells the key of its sender.
    static let keyProperty = "X-Downbeat-Key"

    private let loop = EventLoop(name: "zap")
    private let socket: ZMQSocket
    private let allows: @Sendable (CurveKey) -> String?
    private let denied: @Sendable (_ address: String, _ key: CurveKey?) -> Void

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Binds the handler; make it before the sockets that it guards.
    ///
    /// - Parameters:
    ///   - context: the context whose sockets it guards.
    ///   - allows: gives the name of the owner of a key, or nil when it isn't trusted.
    ///   - denied: told of each refusal.
    /// - Throws: `ZMQError`.
    init(
        _ context: ZMQContext, allows: @escaping @Sendable (CurveKey) -> String?,
        denied: @escaping @Sendable (_ address: String, _ key: CurveKey?) -> Void
    ) async throws {
        self.allows = allows
        self.denied = denied
        socket = try ZMQSocket(context, .reply, limits: ZMQSocket.Limits(highWater: 0))
        try socket.bind("inproc://zeromq.zap.01")
        try socket.watch(on: loop) { [weak self] in self?.assumeIsolated { $0.drain() } }
    }

    func close() { socket.close() }

    private func drain() {
        while let request = (try? socket.receive()) ?? nil { try? socket.send(answer(request.frames)) }
    }

    /// Frames of a request: version, id, domain, address, identity, mechanism, credentials.
    private func answer(_ frames: [[UInt8]]) -> [[UInt8]] {
        let id = frames.count > 1 ? frames[1] : []
        func reply(_ status: String, _ text: String, user: String = "", metadata: [UInt8] = []) -> [[UInt8]] {
            [Array("1.0".utf8), id, Array(status.utf8), Array(text.utf8), Array(user.utf8), metadata]
        }
        guard frames.count >= 6, frames[0] == Array("1.0".utf8) else { return reply("500", "not a ZAP 1.0 request") }
        let address = PeerAddress.plain(String(decoding: frames[3], as: UTF8.self))
        guard frames[5] == Array("CURVE".utf8), frames.count == 7, let key = CurveKey(bytes: frames[6]) else {
            denied(address, nil)
            return reply("400", "only CURVE is spoken here")
        }
        guard let name = allows(key) else {
            denied(address, key)
            return reply("400", "wrong key")
        }
        let property = Array(Self.keyProperty.utf8)
        let value = Array(key.z85.utf8)
        let metadata = [UInt8(property.count)] + property + [0, 0, 0, UInt8(value.count)] + value
        return reply("200", "OK", user: String(name.prefix(100)), metadata: metadata)
    }
}
