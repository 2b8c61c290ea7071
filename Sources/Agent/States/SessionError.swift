package import Protocol

/// Why a call on a session isn't done: SyncField's `SessionError`, case for case.
package enum SessionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The call isn't possible in the state `from`; `to` is the state that it leads to.
    case invalidTransition(from: AgentState, to: AgentState)
    case duplicateStreamId(StreamID)
    case noStreamsRegistered
    /// A stream didn't start; `rolledBack` are those that had started and were stopped again.
    case startFailed(cause: String, rolledBack: [StreamID])
    case manualStopRecoveryUnsupported(streamId: StreamID)
    case notRunning
    case deviceUnsupported(reason: String)

    package var description: String {
        switch self {
        case .invalidTransition(let from, let to):
            "the agent is '\(from.rawValue)' and can't become '\(to.rawValue)' from there"
        case .duplicateStreamId(let id): "there are two streams '\(id)'; give one of them another id"
        case .noStreamsRegistered: "no streams are configured; add at least one to 'streams' in agent.json5"
        case .startFailed(let cause, let rolledBack):
            rolledBack.isEmpty
                ? "the start failed: \(cause)"
                : "the start failed: \(cause) (stopped again: \(rolledBack.map(\.rawValue).joined(separator: ", ")))"
        case .manualStopRecoveryUnsupported(let id): "stream '\(id)' can't be declared stopped by hand"
        case .notRunning: "no session is running"
        case .deviceUnsupported(let reason): reason
        }
    }

    /// What goes over the wire.
    package func refusal(host: HostID) -> Refusal {
        let code: Refusal.Code =
            switch self {
            case .startFailed, .deviceUnsupported: .deviceFailed
            default: .invalidTransition
            }
        return Refusal(code, "host \(host): \(self)")
    }
}
