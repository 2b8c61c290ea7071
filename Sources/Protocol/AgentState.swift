/// The states of an agent, as SyncField's SessionState has them.
package enum AgentState: String, Codable, Sendable, CaseIterable {
    case idle, connected, recording, stopping, ingesting
}

/// The state of one stream on its agent.
package enum StreamState: String, Codable, Sendable, CaseIterable {
    /// Configured, not opened.
    case idle
    /// The device is being opened.
    case connecting
    /// Opened; samples run into the pre-roll ring or nowhere.
    case ready
    /// At least one sample of this take has been written.
    case streaming
    /// It delivered, and then nothing came for max(1 s, 5 periods).
    case stalled
    /// It has ended with an error; the message is beside it.
    case failed
    /// Its file is closed.
    case stopped
}
