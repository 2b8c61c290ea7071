internal import CLinux
internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization

/// The file side of an emulated camera: Open Spherical Camera's list and the files themselves, with ranges.
///
/// Concurrency: one connection at a time, on a thread of its own.
package final class CameraFileServer: Sendable {
    private struct State {
        var listener: Int32 = -1
        var isStopping = false
        var breakAfter: Int?
        var served: [String] = []
    }

    private let card: String
    private let loop = EventLoop(name: "emu-http")
    private let state = Mutex(State())

    /// What was asked for: method, path, and the range's begin.
    package var requests: [String] { state.withLock { $0.served } }

    package init(card: String) { self.card = card }

    /// Each download breaks off after so many bytes.
    package func breakDownloads(after bytes: Int?) { state.withLock { $0.breakAfter = bytes } }

    /// Listens on all addresses; 0 takes a free port, which is given back.
    package func start(port: UInt16 = 0) throws -> UInt16 {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw SystemError(.current, "making a socket") }
        var yes: Int32 = 1
        setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port.bigEndian)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, size) != 0 || listen(number, 8) != 0 || getsockname(number, $0, &size) != 0
            }
        }
        guard !failed else {
            let error = Errno.current
            close(number)
            throw SystemError(error, "listening on port \(port)")
        }
        state.withLock { $0.listener = number }
        loop.perform { [weak self] in self?.serve() }
        return UInt16(bigEndian: address.sin_port)
    }

    package func stop() {
        let number = state.withLock { state in
            state.isStopping = true
            return state.listener
        }
        if number >= 0 { shutdown(number, Int32(SHUT_RDWR)) }
    }

    // MARK: On the thread

    private func serve() {
        let listener = state.withLock { $0.listener }
        defer { close(listener) }
        while !state.withLock({ $0.isStopping }) {
            let peer = accept(listener, nil, nil)
            if peer < 0 {
                if errno == EINTR { continue }
                return
            }
            var limit = timeval(tv_sec: 10, tv_usec: 0)
            setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            answer(peer)
            close(peer)
        }
    }

    private func answer(_ peer: Int32) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 8192)
        while bytes.count < 65_536 {
            let count = recv(peer, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            bytes += buffer.prefix(count)
            guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            let lines = head.split(separator: "\r\n").map(String.init)
            let length = lines.compactMap { Self.value($0, "content-length") }.first.flatMap { Int($0) } ?? 0
            if bytes.count - end.upperBound < min(length, 60_000) { continue }
            respond(peer, lines, Array(bytes[end.upperBound...]))
            return
        }
    }

    private static func value(_ line: String, _ name: String) -> String? {
        guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name else { return nil }
        return String(line[line.index(after: colon)...].drop { $0 == " " })
    }

    private func respond(_ peer: Int32, _ lines: [String], _ body: [UInt8]) {
        let words = (lines.first ?? "").split(separator: " ").map(String.init)
        guard words.count == 3 else { return }
        let range = lines.compactMap { Self.value($0, "range") }.first
        let start = range.flatMap { text in Int64(text.drop { $0 != "=" }.dropFirst().prefix { $0.isNumber }) } ?? 0
        state.withLock { $0.served.append("\(words[0]) \(words[1]) \(start)") }
        switch (words[0], words[1]) {
        case ("GET", "/osc/info"): send(peer, "200 OK", Array("{\"manufacturer\":\"emulated\"}".utf8))
        case ("POST", "/osc/commands/execute"): list(peer, body)
        case ("GET", let path) where path.hasPrefix("/DCIM/") && !path.contains(".."):
            file(peer, "\(card)\(path)", start, isRange: range != nil)
        default: send(peer, "404 Not Found", [])
        }
    }

    private func list(_ peer: Int32, _ body: [UInt8]) {
        let request = try? JSONText.decode(JSONValue.self, from: body)
        let start = Int(clamping: request?["parameters"]?["startPosition"]?.integer ?? 0)
        let count = Int(clamping: request?["parameters"]?["entryCount"]?.integer ?? 50)
        let folder = "/DCIM/Camera01"
        let names = ((try? Files.list(card + folder)) ?? []).filter { !$0.hasPrefix(".") }
        let entries = names.dropFirst(max(start, 0)).prefix(max(count, 0)).map { name in
            JSONValue.object([
                "name": .string(name), "fileUrl": .string("http://192.168.42.1:80\(folder)/\(name)"),
                "size": .integer(Files.size("\(card)\(folder)/\(name)") ?? 0),
            ])
        }
        let answer = JSONValue.object([
            "name": .string("camera.listFiles"), "state": .string("done"),
            "results": .object(["entries": .array(Array(entries)), "totalEntries": .integer(Int64(names.count))]),
        ])
        send(peer, "200 OK", (try? JSONText.encode(answer)) ?? [])
    }

    private func file(_ peer: Int32, _ path: String, _ start: Int64, isRange: Bool) {
        guard let size = Files.size(path), let bytes = try? Files.read(path) else {
            return send(peer, "404 Not Found", [])
        }
        guard start < size || size == 0 else { return send(peer, "416 Range Not Satisfiable", []) }
        let rest = bytes[Int(start)...]
        let status = isRange ? "206 Partial Content" : "200 OK"
        let range = isRange ? "Content-Range: bytes \(start)-\(size - 1)/\(size)\r\n" : ""
        let head = "HTTP/1.1 \(status)\r\nContent-Length: \(rest.count)\r\n\(range)Connection: close\r\n\r\n"
        write(peer, Array(head.utf8))
        let limit = state.withLock { $0.breakAfter }
        write(peer, Array(rest.prefix(limit ?? rest.count)))
    }

    private func send(_ peer: Int32, _ status: String, _ body: [UInt8]) {
        let head = "HTTP/1.1 \(status)\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n"
        write(peer, Array(head.utf8) + body)
    }

    private func write(_ peer: Int32, _ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(peer, $0.baseAddress?.advanced(by: done), bytes.count - done, Int32(MSG_NOSIGNAL.rawValue))
            }
            guard count > 0 else { return }
            done += count
        }
    }
}
