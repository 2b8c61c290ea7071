/// What is known of a request before its body.
struct RequestHead: Sendable {
    let method: String
    /// Decoded, without the query.
    let path: String
    let contentType: String?
    /// Nil when the body comes in chunks, or there is none.
    let contentLength: Int64?
    /// The value of `upload_key` in the query.
    let uploadKey: String?
}

/// An answer.
struct HTTPResponse: Sendable {
    enum Body: Sendable {
        case bytes([UInt8])
        /// A regular file, sent from disk; 404 when it can't be opened.
        case file(String)
    }

    var status: Int
    var contentType = "application/json"
    var body: Body
    var headers: [(String, String)] = []
}

/// What is done with a request's body.
enum BodyPlan {
    /// It is answered at once, and the body isn't read.
    case refuse(HTTPResponse)
    /// It is collected in memory, up to a number of bytes.
    case collect(limit: Int)
    /// Its parts go to a sink as they arrive.
    case multipart(any MultipartSink)
}

/// Decides what the server answers.
///
/// Concurrency: called from the threads of the connections, several at once; it may block.
protocol RequestHandler: Sendable {
    func plan(_ head: RequestHead) -> BodyPlan
    func answer(_ head: RequestHead, body: [UInt8]) -> HTTPResponse
}

/// One piece of one part of a multipart body.
struct PartPiece {
    let name: String
    let fileName: String?
    /// Where the piece lies in its part; a new part begins with zero.
    let offset: UInt64
    /// Valid during the call.
    let bytes: UnsafeRawBufferPointer
}

/// Takes the parts of one multipart body; used by one thread.
protocol MultipartSink: AnyObject {
    /// One call for a part without content too.
    func receive(_ piece: PartPiece)

    /// Whether the rest of the body isn't worth reading: an error is known.
    var hasFailed: Bool { get }

    /// The body has ended.
    ///
    /// `complete` is false when the closing boundary is missing or the body isn't legal.
    func finish(complete: Bool) -> HTTPResponse

    /// The connection ended before the body; what was received is to be thrown away.
    func abandon()
}
