internal import CMicroHTTPD
internal import Glibc
internal import Platform
internal import Synchronization

/// The HTTP side: libmicrohttpd with a thread for each connection.
///
/// Concurrency: the library's threads call the handler; `stop` waits for them, so it belongs on a thread that may block.
final class HTTPServer: Sendable {
    struct Limits: Sendable {
        var connections: UInt32 = 64
        /// Seconds without traffic after which a connection is closed.
        var idleSeconds: UInt32 = 120
        /// Bytes of a refused body that are still read, so that the client sees the answer instead of a reset.
        var drain: Int64 = 256 << 20
    }

    private struct Daemon: @unchecked Sendable {
        // Guarded by the mutex that holds it.
        let pointer: OpaquePointer
    }

    let port: UInt16
    private let context: ServerContext
    private let daemon: Mutex<Daemon?>

    /// Listens at once, on a numeric IPv4 or IPv6 address; with port 0 the system chooses one.
    init(address: String, port: UInt16, handler: any RequestHandler, limits: Limits = Limits()) throws(SystemError) {
        let context = ServerContext(handler: handler, drain: limits.drain)
        guard
            let started = cmhd_start(
                address, port, access, completed, Unmanaged.passUnretained(context).toOpaque(), limits.connections,
                limits.idleSeconds, 64 << 10)
        else {
            let error = Errno.current
            throw SystemError(error.rawValue == 0 ? .invalidArgument : error, "listening on \(address) port \(port)")
        }
        self.context = context
        self.port = cmhd_port(started)
        daemon = Mutex(Daemon(pointer: started))
    }

    deinit { stop() }

    /// Closes the connections, and returns when their threads have ended.
    func stop() {
        let running = daemon.withLock { held -> Daemon? in
            defer { held = nil }
            return held
        }
        if let running { MHD_stop_daemon(running.pointer) }
    }
}

/// What the callbacks work with; it outlives the daemon.
private final class ServerContext: Sendable {
    let handler: any RequestHandler
    let drain: Int64

    init(handler: any RequestHandler, drain: Int64) {
        self.handler = handler
        self.drain = drain
    }
}

/// One request and its body; used by its connection's thread alone.
private final class Exchange {
    let head: RequestHead
    private let context: ServerContext
    private let plan: BodyPlan
    private var body: [UInt8] = []
    private var isTooLarge = false
    private var drained: Int64 = 0
    private var isFinished = false
    private var post: OpaquePointer?
    private var isMalformed = false

    init(head: RequestHead, plan: BodyPlan, context: ServerContext) {
        self.head = head
        self.plan = plan
        self.context = context
    }

    deinit {
        if let post { MHD_destroy_post_processor(post) }
        if case .multipart(let sink) = plan, !isFinished { sink.abandon() }
    }

    /// False when the library can't read such a body.
    func openParts(of connection: OpaquePointer) -> Bool {
        guard case .multipart(let sink) = plan else { return true }
        // The exchange owns the sink, and lives as long as the post processor.
        post = MHD_create_post_processor(connection, 64 << 10, part, Unmanaged.passUnretained(self).toOpaque())
        _ = sink
        return post != nil
    }

    func receive(_ piece: PartPiece) {
        guard case .multipart(let sink) = plan else { return }
        sink.receive(piece)
    }

    /// False when the connection is to be closed.
    func receive(_ data: UnsafePointer<CChar>, count: Int) -> Bool {
        switch plan {
        case .refuse: return drain(count)
        case .collect(let limit):
            if isTooLarge || body.count + count > limit {
                isTooLarge = true
                body = []
                return drain(count)
            }
            body += UnsafeRawBufferPointer(start: data, count: count)
            return true
        case .multipart(let sink):
            if sink.hasFailed || isMalformed { return drain(count) }
            if MHD_post_process(post, data, count) != .YES { isMalformed = true }
            return true
        }
    }

    private func drain(_ count: Int) -> Bool {
        drained += Int64(count)
        return drained <= context.drain
    }

    func finish() -> HTTPResponse {
        isFinished = true
        switch plan {
        case .refuse(let response): return response
        case .collect(let limit):
            if isTooLarge {
                return HTTPResponse(
                    problem: RequestProblem(413, "the body is larger than \(limit) bytes; send a smaller one"))
            }
            return context.handler.answer(head, body: body)
        case .multipart(let sink):
            let whole = post.map { MHD_destroy_post_processor($0) == .YES } ?? false
            post = nil
            return sink.finish(complete: whole && !isMalformed)
        }
    }
}

// MARK: Callbacks: free functions, called on the library's threads

private func access(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ url: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ data: UnsafePointer<CChar>?,
    _ count: UnsafeMutablePointer<Int>?, _ held: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let connection, let url, let method, let count, let held else { return .NO }
    let server = Unmanaged<ServerContext>.fromOpaque(context).takeUnretainedValue()
    guard let known = held.pointee else {
        let head = RequestHead(
            method: String(cString: method), path: String(cString: url),
            contentType: header(connection, "Content-Type"),
            contentLength: header(connection, "Content-Length").flatMap { Int64($0) },
            uploadKey: cmhd_query(connection, "upload_key").map { String(cString: $0) })
        let plan = server.handler.plan(head)
        let exchange = Exchange(head: head, plan: plan, context: server)
        held.pointee = Unmanaged.passRetained(exchange).toOpaque()
        if case .refuse(let response) = plan { return queue(response, on: connection) }
        guard exchange.openParts(of: connection) else {
            return queue(
                HTTPResponse(
                    problem: RequestProblem(
                        415, "the body isn't multipart/form-data with a boundary; send it as an HTML form does")),
                on: connection)
        }
        return .YES
    }
    let exchange = Unmanaged<Exchange>.fromOpaque(known).takeUnretainedValue()
    if count.pointee > 0 {
        guard let data, exchange.receive(data, count: count.pointee) else { return .NO }
        count.pointee = 0
        return .YES
    }
    return queue(exchange.finish(), on: connection)
}

private func completed(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
    _ held: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ reason: MHD_RequestTerminationCode
) {
    guard let held, let known = held.pointee else { return }
    Unmanaged<Exchange>.fromOpaque(known).release()
    held.pointee = nil
}

private func part(
    _ context: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?,
    _ fileName: UnsafePointer<CChar>?, _ contentType: UnsafePointer<CChar>?, _ encoding: UnsafePointer<CChar>?,
    _ data: UnsafePointer<CChar>?, _ offset: UInt64, _ count: Int
) -> MHD_Result {
    guard let context else { return .NO }
    Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue().receive(
        PartPiece(
            name: name.map { String(cString: $0) } ?? "", fileName: fileName.map { String(cString: $0) },
            offset: offset, bytes: UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : count)))
    return .YES
}

private func header(_ connection: OpaquePointer, _ name: String) -> String? {
    cmhd_header(connection, name).map { String(cString: $0) }
}

private func queue(_ answer: HTTPResponse, on connection: OpaquePointer) -> MHD_Result {
    var status = answer.status
    var contentType = answer.contentType
    var response: OpaquePointer?
    switch answer.body {
    case .bytes(let bytes): response = bytes.withUnsafeBytes { cmhd_response_copy($0.baseAddress, $0.count) }
    case .file(let path):
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        var facts = stat()
        if descriptor >= 0, fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG {
            // The response owns the descriptor from here.
            response = MHD_create_response_from_fd64(UInt64(max(0, facts.st_size)), descriptor)
            if response == nil { close(descriptor) }
        } else {
            if descriptor >= 0 { close(descriptor) }
            let missing = HTTPResponse(problem: RequestProblem(404, "there is no such file"))
            status = missing.status
            contentType = missing.contentType
            if case .bytes(let bytes) = missing.body {
                response = bytes.withUnsafeBytes { cmhd_response_copy($0.baseAddress, $0.count) }
            }
        }
    }
    guard let response else { return .NO }
    defer { MHD_destroy_response(response) }
    _ = MHD_add_response_header(response, "Content-Type", contentType)
    for (name, value) in answer.headers { _ = MHD_add_response_header(response, name, value) }
    return MHD_queue_response(connection, UInt32(status), response)
}
