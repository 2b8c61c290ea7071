internal import Platform
internal import Protocol

/// The interface of the sync server: SyncField's, and `?upload_key=` beside it.
struct SyncRoutes: RequestHandler {
    let store: JobStore
    let folders: MountedFolders
    let limits: UploadLimits
    let submit: @Sendable (String) -> Void

    func plan(_ head: RequestHead) -> BodyPlan {
        do throws(RequestProblem) {
            switch (head.method, head.path) {
            case ("POST", "/api/v1/sync"):
                try checkRoom()
                return .collect(limit: limits.field)
            case ("POST", "/api/v1/sync/upload"):
                try checkRoom()
                return try upload(head)
            case ("GET", _), ("HEAD", _): return .collect(limit: 64 << 10)
            case (_, "/api/v1/sync"), (_, "/api/v1/sync/upload"):
                throw RequestProblem(405, "\(head.path) takes POST, not \(head.method)")
            default:
                throw RequestProblem(
                    isKnown(head.path) ? 405 : 404, "\(head.method) \(head.path.prefix(200)) isn't served here")
            }
        } catch {
            return .refuse(HTTPResponse(problem: error))
        }
    }

    private func checkRoom() throws(RequestProblem) {
        if store.isFull {
            throw RequestProblem(503, "\(JobStore.queueLimit) jobs are waiting; try again when some are done")
        }
    }

    private func upload(_ head: RequestHead) throws(RequestProblem) -> BodyPlan {
        guard head.contentType?.lowercased().hasPrefix("multipart/form-data") == true else {
            throw RequestProblem(
                415, "the body is \(head.contentType?.prefix(80) ?? "of no named type"); send multipart/form-data")
        }
        if let length = head.contentLength, length > limits.body {
            throw RequestProblem(
                413, "the upload has \(length) bytes and \(limits.body) are allowed; send the take in parts")
        }
        return .multipart(
            UploadReceiver(store: store, limits: limits, expectedLength: head.contentLength, accepted: submit))
    }

    func answer(_ head: RequestHead, body: [UInt8]) -> HTTPResponse {
        do {
            if head.method == "POST" { return try create(body) }
            return try read(head)
        } catch let problem as RequestProblem {
            return HTTPResponse(problem: problem)
        } catch {
            return HTTPResponse(problem: RequestProblem(500, "the server can't do this: \(error)"))
        }
    }

    private func create(_ body: [UInt8]) throws -> HTTPResponse {
        let job = try SyncRequestBody(folders: folders).job(body)
        let staged = try store.stage()
        do {
            let id = try store.adopt(staged, JobRecord(job: job))
            submit(id)
            return HTTPResponse(json: .object(["job_id": .string(id), "status": .string("processing")]))
        } catch {
            try? Files.removeTree(staged)
            throw error
        }
    }

    private func read(_ head: RequestHead) throws -> HTTPResponse {
        if head.path == "/health" {
            return HTTPResponse(json: .object(["status": .string("ok"), "service": .string("downbeat-syncserver")]))
        }
        if head.path == "/api/v1/jobs", let key = head.uploadKey {
            guard let record = store.record(uploadKey: key) else {
                throw RequestProblem(404, "no job was made of an upload with this key")
            }
            return HTTPResponse(json: record.answer(position: store.position(record.id)))
        }
        guard isKnown(head.path) else {
            throw RequestProblem(404, "there is nothing at \(head.path.prefix(200))")
        }
        let parts = head.path.dropFirst("/api/v1/jobs/".count).split(
            separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard let id = parts.first.map(String.init), let record = store.record(id) else {
            throw RequestProblem(404, "there is no job '\(parts.first?.prefix(40) ?? "")'")
        }
        if parts.count == 1 { return HTTPResponse(json: record.answer(position: store.position(id))) }
        guard parts.count == 3, parts[1] == "download" else {
            throw RequestProblem(404, "there is nothing at \(head.path.prefix(200))")
        }
        let path = String(parts[2])
        guard FilePath.staysInside(path) else {
            throw RequestProblem(400, "'\(path.prefix(200))' doesn't lie in the job's results")
        }
        guard record.status == .complete else {
            throw RequestProblem(409, "job \(id) is \(record.status.rawValue); its files come when it is complete")
        }
        let isLines = path.hasSuffix(".jsonl")
        let type =
            isLines
            ? "application/x-ndjson"
            : path.hasSuffix(".json") ? "application/json" : path.hasSuffix(".svg") ? "image/svg+xml" : "video/mp4"
        return HTTPResponse(status: 200, contentType: type, body: .file("\(store.path(id))/result/\(path)"))
    }

    private func isKnown(_ path: String) -> Bool { path.hasPrefix("/api/v1/jobs/") || path == "/health" }
}
