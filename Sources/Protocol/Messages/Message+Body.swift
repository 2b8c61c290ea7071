extension Message {
    /// The name of this message on the wire.
    package var kind: Kind {
        switch self {
        case .hello: .hello
        case .lease: .lease
        case .heartbeat: .heartbeat
        case .snapshotRequest: .snapshotRequest
        case .devices: .devices
        case .arm: .arm
        case .commit: .commit
        case .abort: .abort
        case .chirp: .chirp
        case .soundCheck: .soundCheck
        case .stop: .stop
        case .ingest: .ingest
        case .ingested: .ingested
        case .chunk: .chunk
        case .welcome: .welcome
        case .leased: .leased
        case .status: .status
        case .snapshot: .snapshot
        case .deviceList: .deviceList
        case .armed: .armed
        case .committed: .committed
        case .aborted: .aborted
        case .chirped: .chirped
        case .soundChecked: .soundChecked
        case .stopping: .stopping
        case .fileList: .fileList
        case .acknowledged: .acknowledged
        case .chunkData: .chunkData
        case .refused: .refused
        case .event: .event
        }
    }

    /// What goes into the JSON frame.
    var body: any Encodable {
        switch self {
        case .hello(let body): body
        case .lease(let body): body
        case .heartbeat(let body): body
        case .snapshotRequest(let body): body
        case .devices(let body): body
        case .arm(let body): body
        case .commit(let body): body
        case .abort(let body): body
        case .chirp(let body): body
        case .soundCheck(let body): body
        case .stop(let body): body
        case .ingest(let body): body
        case .ingested(let body): body
        case .chunk(let body): body
        case .welcome(let body): body
        case .leased(let body): body
        case .status(let body): body
        case .snapshot(let body): body
        case .deviceList(let body): body
        case .armed(let body): body
        case .committed(let body): body
        case .aborted(let body): body
        case .chirped(let body): body
        case .soundChecked(let body): body
        case .stopping(let body): body
        case .fileList(let body): body
        case .acknowledged(let body): body
        case .chunkData(let body): body
        case .refused(let body): body
        case .event(let body): body
        }
    }

    init(kind: Kind, body: [UInt8]) throws(JSONText.Malformed) {
        switch kind {
        case .hello: self = .hello(try JSONText.decode(Hello.self, from: body))
        case .lease: self = .lease(try JSONText.decode(LeaseRequest.self, from: body))
        case .heartbeat: self = .heartbeat(try JSONText.decode(Empty.self, from: body))
        case .snapshotRequest: self = .snapshotRequest(try JSONText.decode(Empty.self, from: body))
        case .devices: self = .devices(try JSONText.decode(Empty.self, from: body))
        case .arm: self = .arm(try JSONText.decode(TakePlan.self, from: body))
        case .commit: self = .commit(try JSONText.decode(Commit.self, from: body))
        case .abort: self = .abort(try JSONText.decode(TakeReference.self, from: body))
        case .chirp: self = .chirp(try JSONText.decode(ChirpCommand.self, from: body))
        case .soundCheck: self = .soundCheck(try JSONText.decode(SoundCheckCommand.self, from: body))
        case .stop: self = .stop(try JSONText.decode(StopCommand.self, from: body))
        case .ingest: self = .ingest(try JSONText.decode(IngestRequest.self, from: body))
        case .ingested: self = .ingested(try JSONText.decode(IngestRequest.self, from: body))
        case .chunk: self = .chunk(try JSONText.decode(ChunkRequest.self, from: body))
        case .welcome: self = .welcome(try JSONText.decode(Welcome.self, from: body))
        case .leased: self = .leased(try JSONText.decode(Lease.self, from: body))
        case .status: self = .status(try JSONText.decode(HostStatus.self, from: body))
        case .snapshot: self = .snapshot(try JSONText.decode(HostSnapshot.self, from: body))
        case .deviceList: self = .deviceList(try JSONText.decode(DeviceList.self, from: body))
        case .armed: self = .armed(try JSONText.decode(ArmReport.self, from: body))
        case .committed: self = .committed(try JSONText.decode(TakeReference.self, from: body))
        case .aborted: self = .aborted(try JSONText.decode(TakeReference.self, from: body))
        case .chirped: self = .chirped(try JSONText.decode(ChirpReport.self, from: body))
        case .soundChecked: self = .soundChecked(try JSONText.decode(SoundCheckReport.self, from: body))
        case .stopping: self = .stopping(try JSONText.decode(TakeReference.self, from: body))
        case .fileList: self = .fileList(try JSONText.decode(FileList.self, from: body))
        case .acknowledged: self = .acknowledged(try JSONText.decode(Empty.self, from: body))
        case .chunkData: self = .chunkData(try JSONText.decode(ChunkHeader.self, from: body))
        case .refused: self = .refused(try JSONText.decode(Refusal.self, from: body))
        case .event: self = .event(try JSONText.decode(HostEvent.self, from: body))
        }
    }
}
