internal import Foundation
internal import Glibc
internal import Platform
internal import TestSupport
internal import Testing

/// The program itself, as a process.
///
/// One test after the other: a child that lives on would hold the pipes of the others open.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct AgentProgramTests {
    private struct Ending: Sendable {
        let text: String
        /// The exit code; negative for a signal.
        let status: Int32
    }

    /// A child; what waits for it waits on a thread of its own.
    private final class Child: @unchecked Sendable {
        // Used by `loop` alone once it runs.
        private let process = Process()
        private let pipe = Pipe()
        private let loop = EventLoop(name: "child")

        init(_ words: [String], home: String) throws {
            // Beside the test bundle, where the build puts it.
            let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
            process.executableURL = URL(fileURLWithPath: "\(folder)/downbeat-agent")
            process.arguments = words
            process.environment = ["DOWNBEAT_HOME": home, "HOME": home, "PATH": "/usr/bin:/bin"]
            (process.standardOutput, process.standardError) = (pipe, pipe)
            try process.run()
        }

        /// All that it says until it has said this, or ends.
        func text(until end: String) async throws -> String {
            try await loop.run { [self] in
                var text = ""
                while !text.contains(end) {
                    let part = pipe.fileHandleForReading.availableData
                    if part.isEmpty { break }
                    text += String(decoding: part, as: UTF8.self)
                }
                return text
            }
        }

        func terminate() { kill(process.processIdentifier, SIGTERM) }

        func ending() async throws -> Ending {
            try await loop.run { [self] in
                let data = pipe.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                let isExit = process.terminationReason == .exit
                return Ending(
                    text: String(decoding: data, as: UTF8.self),
                    status: isExit ? process.terminationStatus : -process.terminationStatus)
            }
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
        let ending = try await Child(words, home: folder.path).ending()
        #expect(ending.text.contains(text))
        #expect(ending.status == status)
    }

    @Test("SIGTERM ends it with exit code 0, and a second agent on the same home is refused")
    func signal() async throws {
        let folder = try TemporaryFolder()
        let config = folder.path + "/agent.json5"
        try AtomicFile.write("{ host_id: 'left', streams: [ { id: 'imu', kind: 'emulated-imu' } ] }", to: config)
        let words = ["run", "--config", config, "--home", folder.path + "/home"]
        let first = try Child(words, home: folder.path)
        #expect(try await first.text(until: "ready on port").contains("host left ready on port"))
        let second = try await Child(words, home: folder.path).ending()
        #expect(second.text.contains("another agent runs"))
        #expect(second.status == 4)
        first.terminate()
        #expect(try await first.ending().status == 0)
    }
}
