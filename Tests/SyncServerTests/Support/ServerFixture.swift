internal import Alignment
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport

@testable internal import SyncServer

/// A real server on loopback with its folders, and `curl` as its client.
final class ServerFixture: Sendable {
    let folder: TemporaryFolder
    let service: SyncService

    var path: String { folder.path }
    var store: String { "\(path)/store" }
    var url: String { "http://127.0.0.1:\(service.port)" }

    init(
        folder: TemporaryFolder? = nil, store: String? = nil, aligner: Aligner = .standard,
        limits: UploadLimits = UploadLimits()
    ) throws {
        let folder = try folder ?? TemporaryFolder()
        self.folder = folder
        for name in ["data", "timestamps", "in"] { try Files.makeFolder("\(folder.path)/\(name)") }
        var options = SyncService.Options(
            port: 0, data: "\(folder.path)/data", timestamps: "\(folder.path)/timestamps",
            store: store ?? "\(folder.path)/store")
        options.limits = limits
        service = try SyncService(options, aligner: aligner)
    }

    struct Answer {
        let status: Int
        let text: String
        var json: JSONValue { (try? JSONText.decode(JSONValue.self, from: Array(text.utf8))) ?? .null }
        var detail: String { json["detail"]?.string ?? "no detail in: \(text)" }
    }

    /// Runs the program `curl`; the last word is the path below the server.
    func curl(_ arguments: [String], _ place: String) throws -> Answer {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
        process.arguments =
            ["--silent", "--noproxy", "*", "--max-time", "30", "--path-as-is", "--write-out", "\n%{http_code}"]
            + arguments + [url + place]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        var lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        let status = lines.popLast().flatMap { Int($0) } ?? 0
        return Answer(status: status, text: lines.joined(separator: "\n"))
    }

    func get(_ place: String) throws -> Answer { try curl([], place) }

    func post(json: String) throws -> Answer {
        try curl(["-H", "Content-Type: application/json", "--data-binary", json], "/api/v1/sync")
    }

    /// A multipart upload by `curl --form`.
    func upload(_ forms: [String], extra: [String] = []) throws -> Answer {
        try curl(extra + forms.flatMap { ["--form", $0] }, "/api/v1/sync/upload")
    }

    /// Asks for the job until it has ended.
    func ended(_ answer: Answer) throws -> JSONValue {
        guard let id = answer.json["job_id"]?.string else { throw Unexpected(text: answer.text) }
        for _ in 0..<2000 {
            let job = try get("/api/v1/jobs/\(id)").json
            if job["status"]?.string != "processing" { return job }
        }
        throw Unexpected(text: "the job \(id) doesn't end")
    }

    struct Unexpected: Error { let text: String }

    /// Writes a file of rows into `in/` and returns its path.
    @discardableResult
    func rows(_ name: String, _ times: [Int64], in place: String = "in", domain: String? = nil) throws -> String {
        let lines = times.enumerated().map { frame, time in
            "{\"frame_number\":\(frame),\"capture_ns\":\(time)"
                + (domain.map { ",\"clock_domain\":\"\($0)\"" } ?? "") + "}\n"
        }
        return try file(name, lines.joined(), in: place)
    }

    @discardableResult
    func file(_ name: String, _ text: String, in place: String = "in") throws -> String {
        try Files.makeFolder("\(path)/\(place)")
        try AtomicFile.write(text, to: "\(path)/\(place)/\(name)")
        return "\(path)/\(place)/\(name)"
    }

    /// Sends bytes as they are, closes the sending side, and returns what comes back.
    func raw(_ bytes: [UInt8]) throws -> String {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = service.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw Unexpected(text: "connect: \(Errno.current)") }
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { break }
            sent += count
        }
        shutdown(socket, Int32(SHUT_WR))
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            if count <= 0 { break }
            answer += buffer[..<count]
        }
        return String(decoding: answer, as: UTF8.self)
    }
}
