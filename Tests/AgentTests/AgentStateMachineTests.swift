internal import Protocol
internal import Testing

@testable internal import Agent

/// The expected values are SyncField's table of states (SessionOrchestrator of its Swift SDK).
struct AgentStateMachineTests {
    private static let cam = StreamID(unchecked: "cam")

    /// The way to each state by legal calls.
    private static let ways: [AgentState: [AgentStateMachine.Call]] = [
        .idle: [], .connected: [.connect], .recording: [.connect, .startRecording],
        .stopping: [.connect, .startRecording, .stopRecording],
        .ingesting: [.connect, .startRecording, .stopRecording, .ingest],
    ]

    private static let legal: [AgentState: [AgentStateMachine.Call: AgentState]] = [
        .idle: [.connect: .connected],
        .connected: [.preflightRecording: .connected, .startRecording: .recording, .disconnect: .idle],
        .recording: [.stopRecording: .stopping],
        .stopping: [
            .stopRecording: .stopping, .recoverUnconfirmedStops: .stopping, .finishRecording: .connected,
            .ingest: .ingesting,
        ],
        .ingesting: [:],
    ]

    private static func machine(in state: AgentState) throws -> AgentStateMachine {
        var machine = try AgentStateMachine(streams: [cam])
        for call in ways[state] ?? [] { try machine.handle(call) }
        #expect(machine.state == state)
        return machine
    }

    @Test("each call in each state", arguments: AgentState.allCases, AgentStateMachine.Call.allCases)
    func pairs(_ state: AgentState, _ call: AgentStateMachine.Call) throws {
        var machine = try Self.machine(in: state)
        if let next = Self.legal[state]?[call] {
            try machine.handle(call)
            #expect(machine.state == next)
            return
        }
        do {
            try machine.handle(call)
            Issue.record("\(call) was possible in \(state)")
        } catch SessionError.invalidTransition(let from, _) {
            #expect(from == state)
        }
        #expect(machine.state == state)
    }

    @Test("streams are added and removed in idle and connected only", arguments: AgentState.allCases)
    func streams(_ state: AgentState) throws {
        let other = StreamID(unchecked: "other")
        var machine = try Self.machine(in: state)
        guard state == .idle || state == .connected else {
            #expect(throws: SessionError.invalidTransition(from: state, to: state)) { try machine.add(other) }
            #expect(throws: SessionError.invalidTransition(from: state, to: state)) { try machine.remove(other) }
            return
        }
        try machine.add(other)
        #expect(machine.streams == [Self.cam, other])
        #expect(throws: SessionError.duplicateStreamId(other)) { try machine.add(other) }
        #expect(try machine.remove(other))
        #expect(try !machine.remove(other))
        #expect(machine.state == state)
    }

    @Test("connecting needs a stream")
    func empty() {
        var machine = AgentStateMachine()
        #expect(throws: SessionError.noStreamsRegistered) { try machine.handle(.connect) }
        #expect(machine.state == .idle)
    }

    @Test("failures and ends lead back")
    func back() throws {
        var machine = try Self.machine(in: .connected)
        machine.connectFailed()
        #expect(machine.state == .idle)
        machine = try Self.machine(in: .recording)
        machine.startFailed()
        #expect(machine.state == .connected)
        machine = try Self.machine(in: .ingesting)
        machine.ingestCompleted()
        #expect(machine.state == .connected)
    }

    @Test("each error is a sentence")
    func sentences() {
        let cam = Self.cam
        let errors: [SessionError] = [
            .invalidTransition(from: .idle, to: .recording), .duplicateStreamId(cam), .noStreamsRegistered,
            .startFailed(cause: "busy", rolledBack: [cam]), .manualStopRecoveryUnsupported(streamId: cam), .notRunning,
            .deviceUnsupported(reason: "no such format"),
        ]
        for error in errors { #expect(error.description.split(separator: " ").count >= 3) }
        #expect(SessionError.startFailed(cause: "busy", rolledBack: [cam]).description.contains("cam"))
    }
}
