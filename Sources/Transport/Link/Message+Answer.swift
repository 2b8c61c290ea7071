package import Protocol

extension Message.Kind {
    /// The kind that answers a request, besides `refused`; nil when this kind is no request.
    package var answer: Message.Kind? {
        switch self {
        case .hello: .welcome
        case .lease: .leased
        case .heartbeat: .status
        case .snapshotRequest: .snapshot
        case .devices: .deviceList
        case .arm: .armed
        case .commit: .committed
        case .abort: .aborted
        case .chirp: .chirped
        case .soundCheck: .soundChecked
        case .stop: .stopping
        case .ingest: .fileList
        case .ingested: .acknowledged
        case .chunk: .chunkData
        case .welcome, .leased, .status, .snapshot, .armed, .committed, .aborted, .chirped, .soundChecked, .stopping,
            .acknowledged, .refused, .deviceList, .fileList, .chunkData, .event:
            nil
        }
    }
}
