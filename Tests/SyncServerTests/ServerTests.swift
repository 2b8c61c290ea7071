internal import Alignment
internal import Foundation
internal import Platform
internal import Protocol
internal import Synchronization
internal import TestSupport
internal import Testing

@testable internal import SyncServer

@Suite(.timeLimit(.minutes(1))) struct ServerTests {
    private func body(_ boundary: String, end: Bool) -> String {
        var text = ""
        for (name, value) in [("stream_ids", "a,b"), ("primary_id", "a")] {
            text += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n"
        }
        for name in ["a", "b"] {
            text +=
                "--\(boundary)\r\nContent-Disposition: form-data; name=\"files\"; filename=\"\(name).jsonl\"\r\n\r\n"
            text += "{\"capture_ns\":1}\n{\"capture_ns\":2}\n\r\n"
        }
        return end ? text + "--\(boundary)--\r\n" : text
    }

    private func request(_ body: String, length: Int? = nil) -> [UInt8] {
        Array(
            ("POST /api/v1/sync/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                + "Content-Type: multipart/form-data; boundary=XX\r\n"
                + "Content-Length: \(length ?? body.utf8.count)\r\n\r\n\(body)").utf8)
    }

    @Test("A whole body by hand is taken, so that the next ones fail for their reason")
    func whole() throws {
        let fixture = try ServerFixture()
        #expect(try fixture.raw(request(body("XX", end: true))).contains("200 OK"))
    }

    @Test("A body without its closing boundary is refused and leaves nothing")
    func unclosed() throws {
        let fixture = try ServerFixture()
        let answer = try fixture.raw(request(body("XX", end: false)))
        #expect(answer.contains("400"))
        #expect(answer.contains("breaks off before its closing boundary"))
        #expect(try Files.list("\(fixture.store)/jobs") == [])
        #expect(try Files.list("\(fixture.store)/incoming") == [])
    }

    @Test("A connection that ends in the middle of an upload leaves nothing")
    func cut() async throws {
        let fixture = try ServerFixture()
        let text = body("XX", end: true)
        // At each place of the body: inside of a boundary, of a header, of a file.
        for length in stride(from: 1, to: text.utf8.count - 1, by: 7) {
            let part = String(decoding: text.utf8.prefix(length), as: UTF8.self)
            _ = try fixture.raw(request(part, length: text.utf8.count))
        }
        // Stopping waits for the connections' threads, so all of them have cleaned up.
        await fixture.service.stop()
        #expect(try Files.list("\(fixture.store)/jobs") == [])
        #expect(try Files.list("\(fixture.store)/incoming") == [])
    }

    @Test("What is too large is refused: by its announced length, in chunks, as one file, as one field")
    func oversize() throws {
        var limits = UploadLimits()
        limits.body = 200_000
        limits.file = 100_000
        limits.field = 1000
        let fixture = try ServerFixture(limits: limits)
        let large = try fixture.file("large.bin", String(repeating: "x", count: 300_000))
        let middle = try fixture.file("middle.bin", String(repeating: "x", count: 150_000))
        let announced = try fixture.upload(["files=@\(large)"])
        #expect(announced.status == 413)
        #expect(announced.detail.contains("200000 are allowed"), "\(announced.detail)")
        for part in 0..<3 { try fixture.file("part\(part)", String(repeating: "y", count: 90_000)) }
        let sum = try fixture.upload(
            (0..<3).map { "files=@\(fixture.path)/in/part\($0)" }, extra: ["-H", "Transfer-Encoding: chunked"])
        #expect(sum.status == 413)
        #expect(sum.detail.contains("larger than 200000 bytes"), "\(sum.detail)")
        let file = try fixture.upload(["files=@\(middle)"])
        #expect(file.status == 413)
        #expect(file.detail.contains("'middle.bin' is larger than 100000 bytes"))
        let field = try fixture.upload(["stream_ids=\(String(repeating: "i", count: 2000))"])
        #expect(field.status == 413)
        let json = try fixture.post(json: "{\"x\":\"\(String(repeating: "i", count: 2000))\"}")
        #expect(json.status == 413)
        #expect(try Files.list("\(fixture.store)/incoming") == [])
    }

    @Test("Unknown places, methods, types and jobs have their own status")
    func statuses() throws {
        let fixture = try ServerFixture()
        #expect(try fixture.get("/health").json["status"]?.string == "ok")
        #expect(try fixture.get("/").status == 404)
        #expect(try fixture.get("/api/v1/jobs/00000000").status == 404)
        #expect(try fixture.get("/api/v1/jobs/..%2f..%2flock").status == 404)
        #expect(try fixture.get("/api/v1/sync").status == 404)
        #expect(try fixture.curl(["-X", "DELETE"], "/api/v1/sync").status == 405)
        #expect(try fixture.curl(["-X", "DELETE"], "/api/v1/jobs/00000000").status == 405)
        #expect(try fixture.curl(["-d", "a=b"], "/api/v1/sync/upload").status == 415)
        #expect(
            try fixture.curl(["-H", "Content-Type: multipart/form-data", "-d", "x"], "/api/v1/sync/upload").status
                == 415)
        #expect(try fixture.post(json: "{").status == 400)
        #expect(try fixture.post(json: "[]").status == 400)
    }

    @Test("10,000 pieces of garbage don't bring the server down")
    func garbage() throws {
        let fixture = try ServerFixture()
        var random = SeededGenerator(seed: 7)
        for round in 0..<100 {
            var bytes: [UInt8] = []
            for _ in 0..<100 {
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    bytes += (0..<Int.random(in: 0..<200, using: &random)).map { _ in
                        .random(in: 0...255, using: &random)
                    }
                case 1: bytes += Array("POST /api/v1/sync/upload HTTP/1.1\r\n".utf8)
                case 2:
                    bytes += Array("Content-Type: multipart/form-data; boundary=XX\r\nContent-Length: 99\r\n\r\n".utf8)
                default:
                    bytes += Array(
                        "--XX\r\nContent-Disposition: form-data; name=\"files\"; filename=\"\u{0}\"\r\n\r\n".utf8)
                }
            }
            // Some begin as a legal upload, so that the form's reader sees garbage too.
            let head = round % 2 == 0 ? [] : request("", length: bytes.count)
            _ = try fixture.raw(head + bytes)
        }
        #expect(try fixture.get("/health").status == 200)
        #expect(try Files.list("\(fixture.store)/jobs") == [])
    }

    /// Blocks the worker in the middle of a job until it is let go.
    private final class Gate: AlignmentMethod {
        let entered = DispatchSemaphore(value: 0)
        let leave = DispatchSemaphore(value: 0)

        func place(_ input: AlignmentInput, _ draft: inout AlignmentDraft) {
            entered.signal()
            leave.wait()
        }
    }

    @Test("A job that was running when the server died is run again by the next one")
    func restart() async throws {
        let gate = Gate()
        let first = try ServerFixture(aligner: Aligner(methods: [gate]))
        try first.rows("a.jsonl", [0, 10, 20])
        try first.rows("b.jsonl", [1, 11, 21])
        let forms = ["files=@\(first.path)/in/a.jsonl", "files=@\(first.path)/in/b.jsonl"]
        let running = try first.upload(forms + ["stream_ids=a,b", "primary_id=a"])
        let waiting = try first.upload(forms + ["stream_ids=b,a", "primary_id=b"])
        gate.entered.wait()
        // What the disk has at this instant is what a crash would leave: one job in its middle, one that waits.
        let image = "\(first.path)/image"
        _ = try run("/bin/cp", ["-a", first.store, image])
        try Files.makeFolder("\(image)/incoming/leftover")
        let second = try ServerFixture(folder: first.folder, store: image)
        #expect(try second.ended(running)["status"]?.string == "complete")
        #expect(try second.ended(waiting)["status"]?.string == "complete")
        #expect(try Files.list("\(image)/incoming") == [])
        // A third start finds them done, and doesn't run them again.
        await second.service.stop()
        gate.leave.signal()
        gate.leave.signal()
        await first.service.stop()
    }

    @Test("A server that is stopped in the middle of a job leaves it for the next one, on the same store")
    func stopInTheMiddle() async throws {
        let gate = Gate()
        let first = try ServerFixture(aligner: Aligner(methods: [gate, SingleClockAlignment()]))
        try first.rows("a.jsonl", [0, 10, 20])
        try first.rows("b.jsonl", [1, 11, 21])
        let answer = try first.upload([
            "files=@\(first.path)/in/a.jsonl", "files=@\(first.path)/in/b.jsonl", "stream_ids=a,b", "primary_id=a",
        ])
        gate.entered.wait()
        #expect(throws: SystemError.self) { try ServerFixture(folder: first.folder) }
        async let stopped: Void = first.service.stop()
        gate.leave.signal()
        await stopped
        let second = try ServerFixture(folder: first.folder)
        #expect(try second.ended(answer)["status"]?.string == "complete")
        await second.service.stop()
    }

    @Test("Results come by their path, and nothing else of the store does")
    func downloads() throws {
        let fixture = try ServerFixture()
        try fixture.rows("a.jsonl", [0, 10, 20])
        try fixture.rows("b.jsonl", [1, 11, 21])
        let job = try fixture.ended(
            try fixture.upload([
                "files=@\(fixture.path)/in/a.jsonl", "files=@\(fixture.path)/in/b.jsonl", "stream_ids=a,b",
                "primary_id=a",
            ]))
        let base = "/api/v1/jobs/\(job["job_id"]?.string ?? "")/download"
        #expect(try fixture.get("\(base)/frame_map.jsonl").status == 200)
        #expect(try fixture.get("\(base)/nothing.mp4").status == 404)
        #expect(try fixture.get("\(base)/../job.json").status >= 400)
        #expect(try fixture.get("\(base)/..%2fjob.json").status == 400)
        #expect(try fixture.get("\(base)/%2e%2e/job.json").status == 400)
        #expect(try fixture.get("\(base)//etc/passwd").status == 400)
        #expect(try fixture.get("\(base)/").status == 400)
        #expect(try fixture.get("\(base)").status == 404)
    }
}
