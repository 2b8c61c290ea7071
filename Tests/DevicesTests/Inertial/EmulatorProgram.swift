internal import Foundation
internal import Glibc
internal import Platform

/// `downbeat-emulator` as a process, with a pipe for its commands; it ends with its owner.
final class EmulatorProgram: @unchecked Sendable {
    // The process is only asked for its number; the pipes are used by `loop` alone.
    private let process = Process()
    private let commands = Pipe()
    private let output = Pipe()
    private let loop = EventLoop(name: "emulator")

    /// Starts it and waits until it says where it is.
    init(_ words: [String]) async throws {
        // The build puts the programs beside the test bundle.
        let built = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        process.executableURL = built.appending(path: "downbeat-emulator")
        process.arguments = words
        process.standardInput = commands
        process.standardOutput = output
        try process.run()
        try await line("downbeat-emulator: ")
    }

    deinit { kill(process.processIdentifier, SIGKILL) }

    /// Reads on until a line begins with a text.
    func line(_ text: String) async throws {
        try await loop.run { [output] in
            var line: [UInt8] = []
            while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first {
                line.append(byte)
                guard byte == 0x0A else { continue }
                if String(decoding: line, as: UTF8.self).hasPrefix(text) { return }
                line.removeAll()
            }
            throw Errno.brokenPipe
        }
    }

    /// Tells it what goes wrong from now on.
    func fault(_ text: String) throws { try commands.fileHandleForWriting.write(contentsOf: Array("\(text)\n".utf8)) }
}
