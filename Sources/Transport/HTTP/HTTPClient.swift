internal import CCurl
internal import Glibc
internal import Platform
internal import Synchronization

/// A transfer that didn't come to an answer of the server.
package struct TransferError: Error, Sendable, CustomStringConvertible {
    package let description: String
    /// Whether it can go better by itself: the network, not the input.
    package let isRetriable: Bool
    package var isCancelled = false

    package init(description: String, isRetriable: Bool, isCancelled: Bool = false) {
        (self.description, self.isRetriable, self.isCancelled) = (description, isRetriable, isCancelled)
    }
}

/// One part of a multipart form.
package enum FormPart: Sendable, Hashable {
    case field(name: String, value: String)
    /// Streamed from disk.
    case file(name: String, fileName: String, path: String)
}

/// What a server answered.
package struct HTTPAnswer: Sendable {
    package let status: Int
    package let body: [UInt8]
}

/// Blocking HTTP by libcurl: bounded memory, no limit on the whole time of a transfer, a limit on silence.
///
/// Concurrency: each call makes its own handle and uses it on the caller's thread, which must be one that may block.
/// `cancel` may come from any thread.
package final class HTTPClient: Sendable {
    /// Seconds for a connection to come about.
    static let connectSeconds = 10
    /// A transfer that moves less than a byte a second for so long is given up; a server may need a while to bring a
    /// large upload to its disk before it answers.
    static let silentSeconds = 120

    private static let isReady = ccurl_global_init() == CURLE_OK
    private let cancellation = Cancellation()

    package init() {}

    /// Ends the running and all later transfers.
    package func cancel() { cancellation.isCancelled.store(true, ordering: .releasing) }

    /// Fetches a small body.
    ///
    /// `seconds` is the limit for the whole of it; it goes through the network adapter `interface`, when one is named.
    package func get(
        _ url: String, limit: Int = 64 << 20, seconds: Int = 15, interface: String? = nil
    ) throws(TransferError) -> HTTPAnswer {
        let transfer = Transfer(cancellation, limit: Int64(limit))
        let status = try perform(url, transfer) { handle in
            _ = ccurl_set_long(handle, CURLOPT_TIMEOUT, seconds)
            if let interface { _ = ccurl_set_string(handle, CURLOPT_INTERFACE, "if!\(interface)") }
        }
        return HTTPAnswer(status: status, body: transfer.body)
    }

    /// Sends a JSON text and fetches a small answer.
    package func post(
        json: [UInt8], to url: String, seconds: Int = 15, interface: String? = nil
    ) throws(TransferError) -> HTTPAnswer {
        let transfer = Transfer(cancellation, limit: 16 << 20)
        let headers = curl_slist_append(nil, "Content-Type: application/json")
        defer { curl_slist_free_all(headers) }
        let status = try perform(url, transfer) { handle in
            _ = ccurl_set_long(handle, CURLOPT_TIMEOUT, seconds)
            _ = ccurl_set_headers(handle, headers)
            _ = ccurl_set_string(handle, CURLOPT_COPYPOSTFIELDS, String(decoding: json, as: UTF8.self))
            if let interface { _ = ccurl_set_string(handle, CURLOPT_INTERFACE, "if!\(interface)") }
        }
        return HTTPAnswer(status: status, body: transfer.body)
    }

    /// Fetches a file to a path; the file is whole and on the disk, or it isn't there.
    ///
    /// An answer other than 200 comes back with its body and writes no file.
    package func download(_ url: String, to path: String, limit: Int64) throws(TransferError) -> HTTPAnswer {
        let side = "\(path).part"
        let transfer = Transfer(cancellation, limit: limit)
        do throws(SystemError) {
            transfer.file = try FileDescriptor(path: side, flags: O_WRONLY | O_CREAT | O_TRUNC)
        } catch {
            throw TransferError(description: "\(error)", isRetriable: false)
        }
        var isStored = false
        defer { if !isStored { unlink(side) } }
        let status = try perform(url, transfer) { _ in }
        guard status == 200 else { return HTTPAnswer(status: status, body: transfer.body) }
        do {
            try transfer.synchronize()
            try Files.rename(side, to: path)
            isStored = true
            try AtomicFile.synchronizeFolder(of: path)
        } catch {
            throw TransferError(description: "storing \(path): \(error)", isRetriable: false)
        }
        return HTTPAnswer(status: status, body: [])
    }

    /// Fetches what a file lacks: it goes on at the end of what lies at the path already.
    ///
    /// A server that doesn't know ranges sends the whole of it, which then takes the place of the part. What came before
    /// the network broke stays; the file isn't fsynced.
    ///
    /// - Parameters:
    ///   - url: of the file.
    ///   - path: where the part lies.
    ///   - limit: bytes that the whole file may have.
    ///   - interface: the network adapter that it must go through; nil leaves it to the routes.
    ///   - silent: seconds without a byte after which it is given up.
    ///   - progress: is told the bytes that are at the path.
    /// - Throws: `TransferError`; what came stays.
    /// - Returns: the server's status; 200, 206, and 416 for a part that is whole already are good.
    package func fetch(
        _ url: String, to path: String, limit: Int64, interface: String? = nil, silent: Int = 20,
        progress: @escaping (Int64) -> Void = { _ in }
    ) throws(TransferError) -> Int {
        let transfer = Transfer(cancellation, limit: limit)
        let present: Int64
        do throws(SystemError) {
            let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT)
            present = Int64(max(lseek(file.rawValue, 0, SEEK_END), 0))
            transfer.file = consume file
        } catch {
            throw TransferError(description: "\(error)", isRetriable: false)
        }
        transfer.present = present
        transfer.received = progress
        return try perform(url, transfer) { handle in
            // Not RESUME_FROM, which takes a server without ranges for an error.
            if present > 0 { _ = ccurl_set_string(handle, CURLOPT_RANGE, "\(present)-") }
            _ = ccurl_set_long(handle, CURLOPT_LOW_SPEED_TIME, silent)
            if let interface { _ = ccurl_set_string(handle, CURLOPT_INTERFACE, "if!\(interface)") }
        }
    }

    /// Sends a multipart form.
    ///
    /// `progress` is told the bytes sent and the bytes in all.
    package func post(_ url: String, _ parts: [FormPart], progress: @escaping (Int64, Int64) -> Void)
        throws(TransferError)
        -> HTTPAnswer
    {
        let transfer = Transfer(cancellation, limit: 16 << 20)
        transfer.progress = progress
        var form: OpaquePointer?
        defer { curl_mime_free(form) }
        var failure: TransferError?
        let status = try perform(url, transfer) { handle in
            form = curl_mime_init(handle)
            for part in parts {
                if let error = HTTPClient.add(part, to: form) { failure = error }
            }
            _ = ccurl_set_mime(handle, form)
        } check: { () throws(TransferError) in
            if let failure { throw failure }
        }
        return HTTPAnswer(status: status, body: transfer.body)
    }

    private static func add(_ part: FormPart, to form: OpaquePointer?) -> TransferError? {
        guard let place = curl_mime_addpart(form) else {
            return TransferError(description: "no memory for the form", isRetriable: false)
        }
        switch part {
        case .field(let name, let value):
            let bytes = Array(value.utf8)
            curl_mime_name(place, name)
            let code = bytes.withUnsafeBytes {
                curl_mime_data(place, $0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count)
            }
            return code == CURLE_OK
                ? nil : TransferError(description: "the part \(name): \(text(code))", isRetriable: false)
        case .file(let name, let fileName, let path):
            curl_mime_name(place, name)
            let code = curl_mime_filedata(place, path)
            curl_mime_filename(place, fileName)
            curl_mime_type(place, "application/octet-stream")
            return code == CURLE_OK
                ? nil : TransferError(description: "reading \(path): \(text(code))", isRetriable: false)
        }
    }

    private func perform(
        _ url: String, _ transfer: Transfer, _ prepare: (UnsafeMutableRawPointer) -> Void,
        check: () throws(TransferError) -> Void = {}
    ) throws(TransferError) -> Int {
        guard HTTPClient.isReady, let handle = curl_easy_init() else {
            throw TransferError(description: "libcurl doesn't start", isRetriable: false)
        }
        defer { curl_easy_cleanup(handle) }
        let reason = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        reason.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        defer { reason.deallocate() }
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        _ = ccurl_set_error_buffer(handle, reason)
        _ = ccurl_set_string(handle, CURLOPT_URL, url)
        _ = ccurl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = ccurl_set_string(handle, CURLOPT_USERAGENT, "downbeat")
        _ = ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        _ = ccurl_set_long(handle, CURLOPT_CONNECTTIMEOUT, HTTPClient.connectSeconds)
        _ = ccurl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1)
        _ = ccurl_set_long(handle, CURLOPT_LOW_SPEED_TIME, HTTPClient.silentSeconds)
        _ = ccurl_set_write(handle, receive, context)
        _ = ccurl_set_progress(handle, report, context)
        transfer.handle = handle
        prepare(handle)
        try check()
        let code = curl_easy_perform(handle)
        transfer.handle = nil
        var status = 0
        _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        // A range that begins at the end of the file: libcurl takes it for an error.
        if status == 416 { return status }
        guard code == CURLE_OK else {
            if let failure = transfer.failure { throw failure }
            let detail = String(cString: reason)
            throw TransferError(
                description: "\(url): \(detail.isEmpty ? HTTPClient.text(code) : detail)",
                isRetriable: !HTTPClient.final.contains(code.rawValue),
                isCancelled: code == CURLE_ABORTED_BY_CALLBACK)
        }
        return status
    }

    /// Failures that the same transfer would meet again.
    private static let final: Set<UInt32> = Set(
        [
            CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_READ_ERROR, CURLE_FILE_COULDNT_READ_FILE,
            CURLE_OUT_OF_MEMORY, CURLE_ABORTED_BY_CALLBACK, CURLE_PEER_FAILED_VERIFICATION, CURLE_WRITE_ERROR,
        ].map(\.rawValue))

    private static func text(_ code: CURLcode) -> String { String(cString: curl_easy_strerror(code)) }
}

/// A flag that outlives its client's transfers.
private final class Cancellation: Sendable {
    let isCancelled = Atomic(false)
}

/// What the callbacks of one transfer work with; used by its thread alone.
private final class Transfer {
    private let cancellation: Cancellation
    private let limit: Int64
    private var count: Int64 = 0
    var handle: UnsafeMutableRawPointer?
    var file: FileDescriptor?
    var body: [UInt8] = []
    var failure: TransferError?
    var progress: ((Int64, Int64) -> Void)?
    /// What lay there before; nil for a transfer that begins anew.
    var present: Int64?
    var received: ((Int64) -> Void)?

    init(_ cancellation: Cancellation, limit: Int64) {
        self.cancellation = cancellation
        self.limit = limit
    }

    var isCancelled: Bool { cancellation.isCancelled.load(ordering: .acquiring) }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        count += Int64(bytes.count)
        guard count <= limit else {
            failure = TransferError(description: "the answer is larger than \(limit) bytes", isRetriable: false)
            return false
        }
        var status = 0
        if let handle { _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status) }
        // An error's text goes to memory, also when a file was asked for.
        if file == nil || (status != 200 && !(status == 206 && present != nil)) {
            guard body.count + bytes.count <= 64 << 20 else { return false }
            body += bytes
            return true
        }
        do throws(Errno) {
            if let before = present, before > 0, status == 200, count == Int64(bytes.count) { try begin() }
            try file?.writeAll(bytes)
            received?((present ?? 0) + count)
        } catch {
            failure = TransferError(description: "writing the download: \(error)", isRetriable: false)
            return false
        }
        return true
    }

    /// The server sends the whole file: what is there goes.
    private func begin() throws(Errno) {
        guard let number = file?.rawValue else { return }
        try throwingErrno { ftruncate(number, 0) }
        try throwingErrno { lseek(number, 0, SEEK_SET) }
        present = 0
    }

    func synchronize() throws(Errno) { try file?.synchronize() }
}

// MARK: Callbacks

private func receive(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context, let bytes else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.write(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
}

private func report(
    _ context: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ uploadTotal: curl_off_t,
    _ uploadNow: curl_off_t
) -> Int32 {
    guard let context else { return 1 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    transfer.progress?(Int64(uploadNow), Int64(uploadTotal))
    return transfer.isCancelled ? 1 : 0
}
