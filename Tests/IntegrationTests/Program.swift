internal import Foundation
internal import Glibc
internal import Platform
internal import Timing

/// One of our programs as a process; whoever waits for it waits on a thread of its own.
final class Program: @unchecked Sendable {
    struct Ending: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    // Used by `loop` alone once it runs; the process' number is read by others, and never changes.
    private let process = Process()
    private let folder: String
    private let loop = EventLoop(name: "program")

    /// Starts it; what it says goes to files, so that no pipe can fill up.
    init(_ name: String, _ words: [String], home: String, scratch: String) throws {
        // The build puts the programs beside the test bundle.
        let built = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
        folder = "\(scratch)/\(UUID().uuidString)"
        try Files.makeFolder(folder)
        process.executableURL = URL(fileURLWithPath: "\(built)/\(name)")
        process.arguments = words
        process.environment = ["DOWNBEAT_HOME": home, "HOME": home, "PATH": "/usr/bin:/bin"]
        for file in ["out", "err"] { _ = FileManager.default.createFile(atPath: "\(folder)/\(file)", contents: nil) }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: "\(folder)/out")
        process.standardError = FileHandle(forWritingAtPath: "\(folder)/err")
        try process.run()
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    /// Runs it to its end.
    static func run(_ name: String, _ words: [String], home: String, scratch: String) async throws -> Ending {
        try await Program(name, words, home: home, scratch: scratch).ending()
    }

    func ending() async throws -> Ending {
        try await loop.run { [self] in
            process.waitUntilExit()
            return Ending(status: process.terminationStatus, output: text("out"), errors: text("err"))
        }
    }

    /// Waits until its output holds a text, looking 20 times a second; nil when it ended without it.
    func line(with text: String) async throws -> String? {
        while true {
            let isRunning = process.isRunning
            let all = self.text("out") + self.text("err")
            if let line = all.split(separator: "\n").first(where: { $0.contains(text) }) { return String(line) }
            guard isRunning else { return nil }
            try await loop.sleep(for: .milliseconds(50))
        }
    }

    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    private func text(_ file: String) -> String {
        (try? Files.read("\(folder)/\(file)")).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
