package import Protocol

/// SyncField's session, state for state: which call is possible when, and where it leads.
///
/// | from | call | to |
/// |---|---|---|
/// | idle | add, remove | idle |
/// | idle | connect (at least one stream) | connected |
/// | connected | add, remove, preflightRecording | connected |
/// | connected | startRecording | recording |
/// | recording | stopRecording | stopping |
/// | stopping | stopRecording, recoverUnconfirmedStops | stopping |
/// | stopping | finishRecording | connected |
/// | stopping | ingest | ingesting, and connected when it is done |
/// | connected | disconnect | idle |
///
/// All else throws `SessionError.invalidTransition`. The state is changed by the call itself, before anything is waited
/// for, so a second caller finds it changed. What fails afterwards is told by `connectFailed` and `startFailed`.
package struct AgentStateMachine: Sendable, Hashable {
    package enum Call: Sendable, Hashable, CaseIterable {
        case connect, preflightRecording, startRecording, stopRecording, recoverUnconfirmedStops
        case finishRecording, ingest, disconnect
    }

    package private(set) var state = AgentState.idle
    /// In the order in which they were added.
    package private(set) var streams: [StreamID] = []

    package init() {}

    package init(streams: [StreamID]) throws(SessionError) {
        for stream in streams { try add(stream) }
    }

    package mutating func add(_ stream: StreamID) throws(SessionError) {
        guard state == .idle || state == .connected else { throw .invalidTransition(from: state, to: state) }
        guard !streams.contains(stream) else { throw .duplicateStreamId(stream) }
        streams.append(stream)
    }

    /// False when there is no such stream.
    @discardableResult
    package mutating func remove(_ stream: StreamID) throws(SessionError) -> Bool {
        guard state == .idle || state == .connected else { throw .invalidTransition(from: state, to: state) }
        let count = streams.count
        streams.removeAll { $0 == stream }
        return streams.count < count
    }

    /// Makes the transition of a call; the caller then does what the call is for.
    package mutating func handle(_ call: Call) throws(SessionError) {
        guard let next = Self.next(state, call) else {
            throw .invalidTransition(from: state, to: Self.goal(call, from: state))
        }
        if call == .connect && streams.isEmpty { throw .noStreamsRegistered }
        state = next
    }

    /// A device didn't connect, and those that had are closed again.
    package mutating func connectFailed() {
        precondition(state == .connected, "connectFailed in \(state)")
        state = .idle
    }

    /// A stream didn't start, and all are stopped again.
    package mutating func startFailed() {
        precondition(state == .recording, "startFailed in \(state)")
        state = .connected
    }

    /// The files have been handed over.
    package mutating func ingestCompleted() {
        precondition(state == .ingesting, "ingestCompleted in \(state)")
        state = .connected
    }

    private static func next(_ state: AgentState, _ call: Call) -> AgentState? {
        switch (state, call) {
        case (.idle, .connect): .connected
        case (.connected, .preflightRecording): .connected
        case (.connected, .startRecording): .recording
        case (.recording, .stopRecording): .stopping
        case (.stopping, .stopRecording), (.stopping, .recoverUnconfirmedStops): .stopping
        case (.stopping, .finishRecording): .connected
        case (.stopping, .ingest): .ingesting
        case (.connected, .disconnect): .idle
        default: nil
        }
    }

    private static func goal(_ call: Call, from state: AgentState) -> AgentState {
        switch call {
        case .connect, .finishRecording, .preflightRecording: .connected
        case .startRecording: .recording
        case .stopRecording, .recoverUnconfirmedStops: .stopping
        case .ingest: .ingesting
        case .disconnect: .idle
        }
    }
}
