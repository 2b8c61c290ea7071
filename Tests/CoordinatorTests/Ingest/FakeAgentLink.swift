internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing
internal import Transport

/// A link to an agent that has files, and that can fail in chosen ways.
final class FakeAgentLink: AgentLink {
    struct State {
        var files: [String: [UInt8]] = [:]
        /// What the list says, when it isn't the truth.
        var listed: [FileEntry]?
        /// Chunks that are answered before the link breaks for good; nil never breaks.
        var chunksLeft: Int?
        /// Chunks that get no answer before one does.
        var timeouts = 0
        /// How many transfers of a file come with a wrong byte.
        var corruptions: [String: Int] = [:]
        var requested: [ChunkRequest] = []
        var acknowledged = 0
        var inFlight = 0
        var mostInFlight = 0
    }

    let state: Mutex<State>
    private let episode: EpisodeID

    init(episode: EpisodeID, files: [String: [UInt8]]) {
        self.episode = episode
        state = Mutex(State(files: files))
    }

    var events: AsyncStream<LinkEvent> { AsyncStream { $0.finish() } }

    func close() async {}

    func request(_ message: Message, timeout: Interval) async throws -> Message {
        switch message {
        case .ingest:
            let files = state.withLock { state in
                state.listed
                    ?? state.files.map { path, bytes in
                        FileEntry(
                            path: path, size: Int64(bytes.count), sha256: SHA256.of(bytes), mtimeNanoseconds: 0)
                    }.sorted { $0.path < $1.path }
            }
            return .fileList(FileList(episode: episode, files: files))
        case .ingested:
            state.withLock { $0.acknowledged += 1 }
            return .acknowledged(Empty())
        default: throw LinkError.timedOut(after: timeout, doing: message.kind.rawValue)
        }
    }

    func fetch(_ request: ChunkRequest, timeout: Interval) async throws -> [UInt8] {
        state.withLock { state in
            state.inFlight += 1
            state.mostInFlight = max(state.mostInFlight, state.inFlight)
        }
        // Lets the others of the window come in between, so that answers arrive out of order.
        for _ in 0..<Int(request.offset / 1000 % 7) { await Task.yield() }
        return try state.withLock { state in
            state.inFlight -= 1
            if state.timeouts > 0 {
                state.timeouts -= 1
                throw LinkError.timedOut(after: timeout, doing: "chunk")
            }
            if let left = state.chunksLeft {
                guard left > 0 else { throw LinkError.closed }
                state.chunksLeft = left - 1
            }
            state.requested.append(request)
            guard let bytes = state.files[request.path], request.offset < bytes.count else {
                throw Refusal(.notFound, "no such file")
            }
            let start = Int(request.offset)
            var part = Array(bytes[start..<min(bytes.count, start + request.length)])
            if let left = state.corruptions[request.path], left > 0, request.offset == 0 {
                state.corruptions[request.path] = left - 1
                part[0] ^= 1
            }
            return part
        }
    }

    /// Bytes that were asked for, of one file.
    func bytesSent(_ path: String) -> Int {
        state.withLock { $0.requested.filter { $0.path == path }.reduce(0) { $0 + $1.length } }
    }
}
