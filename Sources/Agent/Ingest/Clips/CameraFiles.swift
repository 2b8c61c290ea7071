internal import Devices
internal import Episode
internal import Glibc
internal import Platform
internal import Protocol
internal import Timing
internal import Transport

/// The files of a camera over its own network: listed as Open Spherical Camera says, fetched by ranges.
///
/// Concurrency: blocking; used by one thread.
struct CameraFiles {
    struct Failure: Error, CustomStringConvertible { let description: String }

    private static let reachTries = 8
    private static let pageSize = 50
    private static let mostPages = 200
    private static let fetchTries = 6

    let access: ClipAccess
    let interface: String?
    private let client = HTTPClient()

    init(access: ClipAccess, interface: String?) {
        (self.access, self.interface) = (access, interface)
    }

    /// Waits until one of the camera's ports answers; gives back its address as the beginning of a URL.
    func reach() throws -> String {
        var last = "nothing was tried"
        for attempt in 0..<Self.reachTries {
            for port in access.ports {
                let host = access.address.contains(":") ? "[\(access.address)]" : access.address
                let base = "http://\(host):\(port)"
                do {
                    _ = try client.get("\(base)/osc/info", limit: 1 << 20, seconds: 3, interface: interface)
                    return base
                } catch { last = "\(error)" }
            }
            if attempt + 1 < Self.reachTries { Pause.now(.seconds(1)) }
        }
        throw Failure(description: "the camera doesn't answer in its own network: \(last)")
    }

    /// All clips, with the path or the address by which each can be fetched.
    func list(_ base: String) throws -> [ClipChooser.File] {
        var files: [ClipChooser.File] = []
        for page in 0..<Self.mostPages {
            let entries = try self.page(page * Self.pageSize, base)
            files += entries.filter { ClipName($0.path) != nil }
            if entries.count < Self.pageSize { break }
        }
        return files
    }

    private func page(_ start: Int, _ base: String) throws -> [ClipChooser.File] {
        let request = JSONValue.object([
            "name": .string("camera.listFiles"),
            "parameters": .object([
                "fileType": .string("video"), "startPosition": .integer(Int64(start)),
                "entryCount": .integer(Int64(Self.pageSize)), "maxThumbSize": .integer(0),
            ]),
        ])
        let answer = try client.post(
            json: try JSONText.encode(request), to: "\(base)/osc/commands/execute", interface: interface)
        guard answer.status == 200, let value = try? JSONText.decode(JSONValue.self, from: answer.body),
            let entries = value["results"]?["entries"]?.array
        else { throw Failure(description: "the camera's list of files can't be read (status \(answer.status))") }
        return entries.compactMap { entry in
            guard let path = entry["fileUrl"]?.string ?? entry["name"]?.string, let size = entry["size"]?.integer,
                size > 0
            else { return nil }
            return ClipChooser.File(path: path, size: size)
        }
    }

    /// Fetches a file; what an earlier try has brought isn't fetched again, and nothing half stands under its name.
    func fetch(_ file: ClipChooser.File, to path: String, from base: String) throws {
        guard !Files.exists(path) else { throw Failure(description: "\(path) is there already") }
        let part = "\(path).part"
        if (Files.size(part) ?? 0) > file.size { try Files.remove(part) }
        var (last, stuck) = ("", 0)
        while (Files.size(part) ?? 0) < file.size || Files.size(part) == nil {
            let before = Files.size(part) ?? 0
            do {
                let status = try client.fetch(url(file.path, base), to: part, limit: file.size, interface: interface)
                guard [200, 206, 416].contains(status) else {
                    throw Failure(description: "the camera answers \(status) for \(file.path)")
                }
                last = "it ended after \(Files.size(part) ?? 0) of \(file.size) bytes"
            } catch let error as TransferError {
                last = error.description
                if !error.isRetriable { throw Failure(description: last) }
            }
            // Each try that moved something is a good one.
            stuck = (Files.size(part) ?? 0) > before ? 0 : stuck + 1
            guard stuck < Self.fetchTries, (Files.size(part) ?? 0) <= file.size else {
                throw Failure(
                    description: "\(FilePath.name(of: file.path)): \(last); what came is kept for the next try")
            }
            if (Files.size(part) ?? 0) < file.size { Pause.now(.milliseconds(500)) }
        }
        let whole = try FileDescriptor(path: part, flags: O_RDONLY)
        do { try whole.synchronize() } catch { throw SystemError(error, "fsync of \(part)") }
        try Files.rename(part, to: path)
        try AtomicFile.synchronizeFolder(of: path)
    }

    /// The camera's own words for where a file is are only taken when they lead to the camera.
    private func url(_ path: String, _ base: String) -> String {
        let bare: Substring
        if let scheme = path.firstRange(of: "://") {
            let rest = path[scheme.upperBound...]
            bare = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        } else {
            bare = path[...]
        }
        let escaped = bare.utf8.map { byte -> String in
            let isPlain = byte > 0x20 && byte < 0x7F && !Array("\"<>\\^`{|}%?#".utf8).contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + Hex.encode([byte]).uppercased()
        }.joined()
        return base + (escaped.hasPrefix("/") ? "" : "/") + escaped
    }
}

/// A pause on a thread that may block.
enum Pause {
    static func now(_ length: Interval) {
        let whole = length.nanoseconds / 1_000_000_000
        var rest = timespec(tv_sec: Int(whole), tv_nsec: Int(length.nanoseconds - whole * 1_000_000_000))
        while nanosleep(&rest, &rest) == -1 && errno == EINTR {}
    }
}
