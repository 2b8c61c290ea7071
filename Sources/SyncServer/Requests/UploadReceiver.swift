internal import Glibc
internal import Platform
internal import Protocol

/// Limits of an upload.
package struct UploadLimits: Sendable {
    /// Bytes of a whole request.
    package var body: Int64 = 1 << 40
    /// Bytes of one file.
    package var file: Int64 = 256 << 30
    package var files: Int = 4096
    /// Bytes of one form field.
    package var field: Int = 4 << 20
    /// Bytes that stay free on the store's disk.
    package var reserve: Int64 = 256 << 20

    package init() {}
}

/// Writes the files of one multipart body to disk as they arrive, hashing on the way, and makes a job of them.
///
/// Memory is bounded: one piece of a file at a time, and the fields up to their limit. Used by its connection's thread.
final class UploadReceiver: MultipartSink {
    private enum Part {
        case file(OpenPart)
        case field(String)
        case ignored
    }

    private let store: JobStore
    private let limits: UploadLimits
    private let accepted: @Sendable (String) -> Void
    private let expectedLength: Int64?
    private var staging: String?
    private var part: Part = .ignored
    private var values: [String: [UInt8]] = [:]
    private var received: [ReceivedFile] = []
    private var names: Set<String> = []
    private var total: Int64 = 0
    private var problem: RequestProblem?

    /// `expectedLength` is the request's Content-Length; `accepted` is called with the id of a new job.
    init(
        store: JobStore, limits: UploadLimits, expectedLength: Int64?, accepted: @escaping @Sendable (String) -> Void
    ) {
        self.store = store
        self.limits = limits
        self.expectedLength = expectedLength
        self.accepted = accepted
    }

    var hasFailed: Bool { problem != nil }

    func receive(_ piece: PartPiece) {
        guard problem == nil else { return }
        do throws(RequestProblem) {
            if piece.offset == 0 { try begin(piece) }
            total += Int64(piece.bytes.count)
            guard total <= limits.body else {
                throw RequestProblem(413, "the upload is larger than \(limits.body) bytes; send the take in parts")
            }
            switch part {
            case .ignored: break
            case .field(let name):
                values[name, default: []] += piece.bytes
                guard values[name]?.count ?? 0 <= limits.field else {
                    throw RequestProblem(413, "the field '\(name)' is larger than \(limits.field) bytes")
                }
            case .file(let file):
                guard file.size + Int64(piece.bytes.count) <= limits.file else {
                    throw RequestProblem(413, "the file '\(file.name)' is larger than \(limits.file) bytes")
                }
                try file.write(piece.bytes)
            }
        } catch {
            fail(error)
        }
    }

    private func begin(_ piece: PartPiece) throws(RequestProblem) {
        try endPart()
        if UploadForm.folders[piece.name] != nil {
            part = .file(try openFile(piece))
        } else if UploadForm.fields.contains(piece.name) {
            guard values[piece.name] == nil else {
                throw .invalid("the field '\(piece.name)' was sent twice; send it once")
            }
            values[piece.name] = []
            part = .field(piece.name)
        } else {
            part = .ignored
        }
    }

    private func openFile(_ piece: PartPiece) throws(RequestProblem) -> OpenPart {
        let name = UploadReceiver.decoded(piece.fileName ?? "")
        guard SyncJob.isLegalName(name), let folder = UploadForm.folder(part: piece.name, name: name) else {
            throw .invalid(
                name.isEmpty
                    ? "a part '\(piece.name)' has no file name; send it as a file"
                    : "the file name '\(name.prefix(80))' isn't legal; use 1 to 200 bytes without '/'")
        }
        guard names.insert("\(folder)/\(name)").inserted else {
            throw .invalid("the file '\(name)' was sent twice; give the files different names")
        }
        guard received.count < limits.files else {
            throw RequestProblem(413, "more than \(limits.files) files were sent; send the take in parts")
        }
        let base = try stage()
        do throws(SystemError) {
            try Files.makeFolder("\(base)/input/\(folder)")
            return try OpenPart(name: name, folder: folder, path: "\(base)/input/\(folder)/\(name)")
        } catch {
            throw UploadReceiver.disk(error)
        }
    }

    private func stage() throws(RequestProblem) -> String {
        if let staging { return staging }
        do throws(SystemError) {
            let free = try Files.freeSpace(at: store.folder)
            if free - limits.reserve < expectedLength ?? 0 {
                throw SystemError(
                    .noSpace, "keeping \(expectedLength ?? 0) bytes with \(free) free and \(limits.reserve) reserved")
            }
            let made = try store.stage()
            staging = made
            return made
        } catch {
            throw UploadReceiver.disk(error)
        }
    }

    private func endPart() throws(RequestProblem) {
        defer { part = .ignored }
        guard case .file(let file) = part else { return }
        received.append(try file.finish())
    }

    private func fail(_ problem: RequestProblem) {
        self.problem = problem
        part = .ignored
        abandon()
    }

    func abandon() {
        part = .ignored
        if let staging { try? Files.removeTree(staging) }
        staging = nil
    }

    func finish(complete: Bool) -> HTTPResponse {
        do throws(RequestProblem) {
            if let problem { throw problem }
            try endPart()
            guard complete else {
                throw RequestProblem(400, "the multipart body breaks off before its closing boundary; send it again")
            }
            let id = try accept()
            accepted(id)
            return HTTPResponse(json: .object(["job_id": .string(id), "status": .string("processing")]))
        } catch {
            fail(error)
            return HTTPResponse(problem: error)
        }
    }

    private func accept() throws(RequestProblem) -> String {
        var texts: [String: String] = [:]
        for (name, bytes) in values {
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw .invalid("the field '\(name)' isn't UTF-8")
            }
            texts[name] = text
        }
        let announced = try verify(texts["sha256"])
        if let key = texts["upload_key"], !JobStore.isLegalKey(key) {
            throw .invalid("upload_key '\(key.prefix(80))' isn't 64 lower-case hexadecimal digits")
        }
        let form = UploadForm(
            values: texts, files: Dictionary(grouping: received, by: \.folder).mapValues { $0.map(\.name) })
        let job = try form.job()
        let base = try stage()
        try job.checkFiles(in: base)
        var record = JobRecord(job: job)
        record.files = received
        record.hashesVerified = announced
        record.uploadKey = texts["upload_key"]
        record.episode = texts["episode"]
        do {
            try synchronizeFolders(base)
            let id = try store.adopt(base, record)
            staging = nil
            return id
        } catch let error as SystemError {
            throw UploadReceiver.disk(error)
        } catch {
            throw RequestProblem(500, "the server can't store the upload: \(error)")
        }
    }

    /// Compares the hashes that the client announced with those of what is on the disk.
    ///
    /// Returns whether every file was announced.
    private func verify(_ text: String?) throws(RequestProblem) -> Bool {
        guard let text else { return false }
        guard case .object(let hashes)? = try? JSONText.decode(JSONValue.self, from: Array(text.utf8)) else {
            throw .invalid("the field sha256 isn't a JSON object of file names and hashes")
        }
        let present = Set(received.map(\.name))
        for name in hashes.keys.sorted() where !present.contains(name) {
            throw .invalid("the file '\(name.prefix(80))' was announced in sha256 and didn't arrive; send it again")
        }
        for place in received.indices {
            guard let hash = hashes[received[place].name] else { continue }
            guard hash.string == received[place].sha256 else {
                throw .invalid(
                    "the file '\(received[place].name)' arrived with sha256 \(received[place].sha256), announced was "
                        + "\(hash.string?.prefix(64) ?? "no text"); send it again")
            }
            received[place].isVerified = true
        }
        return received.allSatisfy(\.isVerified)
    }

    private func synchronizeFolders(_ base: String) throws(SystemError) {
        for folder in Set(received.map(\.folder)) {
            try AtomicFile.synchronizeFolder(of: "\(base)/input/\(folder)/.")
        }
        try AtomicFile.synchronizeFolder(of: "\(base)/input/.")
    }

    private static func disk(_ error: SystemError) -> RequestProblem {
        error.errno == .noSpace
            ? RequestProblem(507, "the server's disk is full (\(error)); make room and send it again")
            : RequestProblem(500, "the server can't store the upload: \(error)")
    }

    /// A file name as browsers and curl send it: the three characters that would break the header are percent-encoded.
    static func decoded(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "%")) else { return name }
        var out: [UInt8] = []
        var rest = Array(name.utf8)[...]
        while let byte = rest.first {
            let codes: [(String, UInt8)] = [("%22", 0x22), ("%0D", 0x0D), ("%0A", 0x0A)]
            if let code = codes.first(where: { rest.starts(with: Array($0.0.utf8)) }) {
                out.append(code.1)
                rest = rest.dropFirst(3)
            } else {
                out.append(byte)
                rest = rest.dropFirst()
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

/// A file that is being received.
private final class OpenPart {
    let name: String
    let folder: String
    private(set) var size: Int64 = 0
    private let path: String
    private let file: FileDescriptor
    private var hash: SHA256? = SHA256()
    private var unsynchronized: Int64 = 0

    init(name: String, folder: String, path: String) throws(SystemError) {
        self.name = name
        self.folder = folder
        self.path = path
        file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(RequestProblem) {
        do throws(Errno) {
            try file.writeAll(bytes)
            size += Int64(bytes.count)
            unsynchronized += Int64(bytes.count)
            // In steps, so that the end of a large upload isn't minutes of silence while the disk catches up.
            if unsynchronized >= 64 << 20 {
                try file.synchronizeData()
                unsynchronized = 0
            }
        } catch {
            throw RequestProblem(
                error == .noSpace ? 507 : 500, "the server can't write the file '\(name)': \(error); make room there")
        }
        hash?.update(bytes)
    }

    func finish() throws(RequestProblem) -> ReceivedFile {
        do throws(Errno) { try file.synchronize() } catch {
            throw RequestProblem(500, "the server can't bring the file '\(name)' to its disk: \(error)")
        }
        var digest = ""
        if let hash = hash.take() { digest = hash.finish() }
        return ReceivedFile(name: name, folder: folder, size: size, sha256: digest, isVerified: false)
    }
}
