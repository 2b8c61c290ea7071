internal import Foundation
internal import Platform
internal import TestSupport
internal import Testing

/// The program itself, as a process.
///
/// One test after the other: a child that lives on would hold the pipes of the others open.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct AgentProgramTests {
    /// A child and what it says, without a thread that waits.
    private struct Child {
        let process = Process()
        let output: AsyncStream<String>
        private let exits: AsyncStream<Int32>

        init(_ words: [String], home: String) throws {
            // Beside the test bundle, where the build puts it.
            let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
            process.executableURL = URL(fileURLWithPath: "\(folder)/downbeat-agent")
            process.arguments = words
            process.environment = ["DOWNBEAT_HOME": home, "HOME": home, "PATH": "/usr/bin:/bin"]
            let pipe = Pipe()
            (process.standardOutput, process.standardError) = (pipe, pipe)
            let (output, said) = AsyncStream.makeStream(of: String.self)
            let (exits, ended) = AsyncStream.makeStream(of: Int32.self)
            (self.output, self.exits) = (output, exits)
            pipe.fileHandleForReading.readabilityHandler = { handle in
                let data = handle.availableData
                if data.isEmpty {
                    handle.readabilityHandler = nil
                    said.finish()
                } else {
                    said.yield(String(decoding: data, as: UTF8.self))
                }
            }
            process.terminationHandler = { process in
                ended.yield(process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
                ended.finish()
            }
            try process.run()
        }

        /// All that it says until it says this, or ends.
        func text(until end: String?) async -> String {
            var text = ""
            for await part in output {
                text += part
                if let end, text.contains(end) { break }
            }
            return text
        }

        /// The exit code; negative for a signal.
        func status() async -> Int32? {
            for await status in exits { return status }
            return nil
        }
    }

    @Test(
        "exit codes and sentences",
        arguments: [
            (["--help"], 0, "Example:"), (["run", "--help"], 0, "Example:"), (["--version"], 0, "downbeat-agent 0."),
            (["join", "--help"], 0, "TOKEN"), (["devices", "--help"], 0, "--json"),
            (["recover"], 0, "nothing to repair"), (["fly"], 2, "is no command"), ([], 2, "a command is needed"),
            (["run", "--speed"], 2, "is not an option"), (["join"], 2, "a TOKEN is needed"),
            (["join", "abc"], 1, "isn't a join token"), (["run"], 3, "no configuration was found"),
            (["run", "--config", "/nowhere"], 3, "No such file"), (["devices", "--json"], 0, "\"attached\""),
        ] as [([String], Int32, String)])
    func exits(_ words: [String], _ status: Int32, _ text: String) async throws {
        let folder = try TemporaryFolder()
        let child = try Child(words, home: folder.path)
        #expect(await child.text(until: nil).contains(text))
        #expect(await child.status() == status)
    }

    @Test("SIGTERM ends it with exit code 0, and a second agent on the same home is refused")
    func signal() async throws {
        let folder = try TemporaryFolder()
        let config = folder.path + "/agent.json5"
        try AtomicFile.write("{ host_id: 'left', streams: [ { id: 'imu', kind: 'emulated-imu' } ] }", to: config)
        let words = ["run", "--config", config, "--home", folder.path + "/home"]
        let first = try Child(words, home: folder.path)
        #expect(await first.text(until: "ready on port").contains("host left ready on port"))
        let second = try Child(words, home: folder.path)
        #expect(await second.text(until: nil).contains("another agent runs"))
        #expect(await second.status() == 4)
        first.process.terminate()
        #expect(await first.status() == 0)
    }
}
