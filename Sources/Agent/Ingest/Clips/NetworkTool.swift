internal import Platform
package import Timing

/// The system's own tool for networks, behind a seam.
package protocol NetworkTool: Sendable {
    /// Runs `nmcli` with words; blocking.
    func run(_ words: [String], within limit: Interval) throws -> (status: Int32, output: String, errors: String)
}

/// NetworkManager's command line, whichever `nmcli` stands first on PATH.
package struct NetworkManager: NetworkTool {
    package init() {}

    package func run(
        _ words: [String], within limit: Interval
    ) throws -> (status: Int32, output: String, errors: String) {
        let result = try ChildProcess.run(["nmcli"] + words, within: limit)
        return (result.status, result.output, result.errors)
    }
}
