internal import Platform
internal import Protocol
internal import Timing

/// What is known of a job; `job.json` in its folder.
struct JobRecord: Codable, Sendable {
    enum Status: String, Codable, Sendable { case processing, complete, failed }

    /// Download paths, as SyncField's clients read them.
    struct Result: Codable, Sendable, Hashable {
        var syncReport: String
        var frameMap: String
        var syncedVideos: [String]
        /// What was heard when; nil when nothing had to be listened to.
        var picture: String?

        private enum CodingKeys: String, CodingKey {
            case syncReport = "sync_report"
            case frameMap = "frame_map"
            case syncedVideos = "synced_videos"
            case picture = "heard"
        }
    }

    var id: String = ""
    var status: Status = .processing
    /// 0 to 1.
    var progress: Double = 0
    var phase: String = "queued"
    var result: Result?
    /// One sentence when the job failed.
    var error: String?
    /// CLOCK_REALTIME in ns.
    var createdAt: Int64 = HostClock.wall.nanoseconds
    var episode: String?
    /// The client's name for exactly these bytes.
    var uploadKey: String?
    var files: [ReceivedFile] = []
    /// Whether each file arrived with the hash that the client had announced.
    var hashesVerified = false
    var job: SyncJob

    init(job: SyncJob) { self.job = job }

    private enum CodingKeys: String, CodingKey {
        case status, progress, phase, result, error, episode, files, job
        case id = "job_id"
        case createdAt = "created_at_ns"
        case uploadKey = "upload_key"
        case hashesVerified = "hashes_verified"
    }

    /// What `GET /api/v1/jobs/{id}` answers: SyncField's keys, and ours beside them.
    ///
    /// `position` is the number of jobs before it in the queue.
    func answer(position: Int? = nil) -> JSONValue {
        var members: [String: JSONValue] = [
            "job_id": .string(id), "status": .string(status.rawValue), "progress": .number(progress),
            "phase": .string(phase), "result": .null, "error": error.map { .string($0) } ?? .null,
            "created_at_ns": .integer(createdAt), "hashes_verified": .bool(hashesVerified),
        ]
        if let result {
            var paths: [String: JSONValue] = [
                "sync_report": .string(result.syncReport), "frame_map": .string(result.frameMap),
                "synced_videos": .array(result.syncedVideos.map { .string($0) }),
            ]
            if let picture = result.picture { paths["heard"] = .string(picture) }
            members["result"] = .object(paths)
        }
        if let position { members["queue_position"] = .integer(Int64(position)) }
        if let episode { members["episode"] = .string(episode) }
        if let uploadKey { members["upload_key"] = .string(uploadKey) }
        members["files"] = .array(
            files.map { file in
                .object([
                    "name": .string(file.name), "size": .integer(file.size), "sha256": .string(file.sha256),
                    "verified": .bool(file.isVerified),
                ])
            })
        return .object(members)
    }
}
