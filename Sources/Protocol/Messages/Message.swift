/// The closed set of messages.
///
/// Requests go from the coordinator to an agent, and each is answered by one message with the same command id: the one
/// named beside it, or `refused`. `event` comes unasked. `chunk` and `chunkData` are on the bulk socket.
package enum Message: Sendable, Hashable {
    // Requests, each with the kind that answers it.
    case hello(Hello)  // welcome
    case lease(LeaseRequest)  // leased
    case heartbeat(Empty)  // status
    case snapshotRequest(Empty)  // snapshot
    case devices(Empty)  // deviceList
    case arm(TakePlan)  // armed
    case commit(Commit)  // committed
    case abort(TakeReference)  // aborted
    case chirp(ChirpCommand)  // chirped
    case soundCheck(SoundCheckCommand)  // soundChecked
    case stop(StopCommand)  // stopping
    case ingest(IngestRequest)  // fileList
    case ingested(IngestRequest)  // acknowledged
    case chunk(ChunkRequest)  // chunkData

    // Answers
    case welcome(Welcome)
    case leased(Lease)
    case status(HostStatus)
    case snapshot(HostSnapshot)
    case deviceList(DeviceList)
    case armed(ArmReport)
    case committed(TakeReference)
    case aborted(TakeReference)
    case chirped(ChirpReport)
    case soundChecked(SoundCheckReport)
    case stopping(TakeReference)
    case fileList(FileList)
    case acknowledged(Empty)
    case chunkData(ChunkHeader)
    case refused(Refusal)

    // Unasked
    case event(HostEvent)

    /// The names on the wire.
    package enum Kind: String, Sendable, CaseIterable {
        case hello, lease, heartbeat, devices, arm, commit, abort, chirp, stop, ingest, ingested, chunk
        case snapshotRequest = "snapshot_request"
        case welcome, leased, status, snapshot, armed, committed, aborted, chirped, stopping, acknowledged, refused
        case deviceList = "device_list"
        case fileList = "file_list"
        case soundCheck = "sound_check"
        case soundChecked = "sound_checked"
        case chunkData = "chunk_data"
        case event
    }
}
