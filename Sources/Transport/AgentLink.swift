package import Protocol
package import Timing

/// The coordinator's end of the connection to one agent.
package protocol AgentLink: Sendable {
    /// Sends a request and waits for its answer. It is repeated with the same command id until the time is over, so a
    /// lost message or a reconnect doesn't matter.
    ///
    /// - Throws: `Refusal` when the agent refuses; `LinkError` when no answer came.
    func request(_ message: Message, timeout: Interval) async throws -> Message

    /// Bytes of a file, over the bulk socket.
    func fetch(_ request: ChunkRequest, timeout: Interval) async throws -> [UInt8]

    /// What comes unasked, and the state of the connection; bounded, the oldest is dropped and counted.
    var events: AsyncStream<LinkEvent> { get }

    func close() async
}

/// What happens on a link by itself.
package enum LinkEvent: Sendable, Hashable {
    case connected
    /// The connection broke; it is tried again without end.
    case disconnected(String)
    /// The other side doesn't hold the key that we know it by, or it refused ours.
    case wrongKey(String)
    case event(HostEvent)
    /// So many events were dropped before this one, because nobody took them.
    case dropped(Int)
}

/// Why a request has no answer.
package enum LinkError: Error, Sendable, Hashable, CustomStringConvertible {
    case timedOut(after: Interval, doing: String)
    case wrongKey(String)
    case closed

    package var description: String {
        switch self {
        case .timedOut(let after, let doing): "no answer to '\(doing)' within \(after.seconds) s"
        case .wrongKey(let text): text
        case .closed: "the connection was closed"
        }
    }
}
