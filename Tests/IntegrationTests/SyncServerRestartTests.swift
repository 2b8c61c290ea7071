internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

/// The real program dies in the middle of a job, and the next one finishes it.
@Suite(.timeLimit(.minutes(5))) struct SyncServerRestartTests {
    /// A server and the place where it listens.
    private struct Server {
        let program: Program
        let url: String

        init(store: String, data: String, _ folder: TemporaryFolder) async throws {
            program = try Program(
                "downbeat",
                ["syncserver", "--port", "0", "--store", store, "--data", data, "--timestamps", data],
                home: "\(folder.path)/home", scratch: folder.path)
            let line = try #require(try await program.line(with: "listens on "))
            url = line.split(separator: " ").last.map(String.init) ?? ""
        }

        func curl(_ arguments: [String]) throws -> JSONValue {
            let curl = Process()
            curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            curl.arguments = ["curl", "--silent", "--noproxy", "*", "--max-time", "60"] + arguments
            let output = Pipe()
            curl.standardOutput = output
            try curl.run()
            let bytes = output.fileHandleForReading.readDataToEndOfFile()
            curl.waitUntilExit()
            return try JSONText.decode(JSONValue.self, from: [UInt8](bytes))
        }
    }

    @Test("kill -9 in the middle of a job: the next server runs it to its end, and those that waited behind it")
    func killed() async throws {
        let folder = try TemporaryFolder()
        let (data, store) = ("\(folder.path)/data", "\(folder.path)/store")
        try Files.makeFolder(data)
        // Enough rows that the first job lasts some seconds; the second one is small, so that it comes while the first runs.
        func write(_ name: String, milliseconds: Int, rows: Int) {
            var text: [UInt8] = []
            for row in 0..<rows {
                text += Array("{\"frame_number\":\(row),\"capture_ns\":\(row * milliseconds * 1_000_000)}\n".utf8)
            }
            _ = FileManager.default.createFile(atPath: "\(data)/\(name).jsonl", contents: Data(text))
        }
        write("cam", milliseconds: 4, rows: 100_000)
        write("imu", milliseconds: 1, rows: 400_000)
        write("cam2", milliseconds: 4, rows: 1000)
        write("imu2", milliseconds: 1, rows: 4000)
        func body(_ ending: String) -> String {
            "{\"hosts\":[{\"host_id\":\"a\",\"streams\":[{\"stream_id\":\"cam\(ending)\",\"is_primary\":true},"
                + "{\"stream_id\":\"imu\(ending)\",\"stream_type\":\"sensor\"}]}],\"timestamps_dir\":\"/timestamps\"}"
        }
        let first = try await Server(store: store, data: data, folder)
        let ids = try ["", "2"].map { ending in
            let post = ["-H", "Content-Type: application/json", "--data-binary", body(ending)]
            return try #require(try first.curl(post + ["\(first.url)/api/v1/sync"])["job_id"]?.string)
        }
        // In its middle: it has begun, and isn't done.
        var phase = ""
        while !["mapping", "aligning", "loading", "complete"].contains(phase) {
            phase = try first.curl(["\(first.url)/api/v1/jobs/\(ids[0])"])["phase"]?.string ?? ""
        }
        #expect(phase != "complete", "the job is too short for this test")
        let waiting = try first.curl(["\(first.url)/api/v1/jobs/\(ids[1])"])
        #expect(waiting["phase"]?.string == "queued")
        #expect(waiting["queue_position"]?.integer == 1)
        first.program.send(SIGKILL)
        _ = try await first.program.ending()
        #expect(!Files.exists("\(store)/jobs/\(ids[0])/result"))

        let second = try await Server(store: store, data: data, folder)
        for (id, ending) in zip(ids, ["", "2"]) {
            var job = JSONValue.null
            repeat {
                job = try second.curl(["\(second.url)/api/v1/jobs/\(id)"])
            } while job["status"]?.string
                == "processing"
            #expect(job["status"]?.string == "complete", "\(job)")
            #expect(job["progress"]?.double == 1)
            // Row i of cam is at 4 i ms: the same instant as row 4 i of imu.
            let map = try String(contentsOfFile: "\(store)/jobs/\(id)/result/frame_map.jsonl", encoding: .utf8)
            #expect(map.contains("\"streams\":{\"imu\(ending)\":{\"frame\":400,\"delta_ms\":0.0}}"))
        }
    }
}
