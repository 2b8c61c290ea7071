internal import Foundation

/// A program that a test runs.
enum ChildProcess {
    /// Runs to the end without blocking a thread of the pool; gives back the exit status.
    static func run(_ program: String, _ arguments: [String], environment: [String: String] = [:]) async throws -> Int32
    {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        return try await withCheckedThrowingContinuation { done in
            process.terminationHandler = { done.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { done.resume(throwing: error) }
        }
    }
}
