internal import Glibc
internal import Synchronization

/// One line for each event to standard error, with the priority prefix of journald when it is the reader.
package struct Log: Sendable {
    package enum Level: Int, Sendable, Comparable {
        case debug, info, warning, error
        package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    private static let threshold = Mutex(Level.info)
    private static let underJournal = getenv("JOURNAL_STREAM") != nil

    /// Where the line comes from: "camera", "clock".
    package let subsystem: String

    package init(_ subsystem: String) { self.subsystem = subsystem }

    /// Lines below this level are not written.
    package static var level: Level {
        get { threshold.withLock { $0 } }
        set { threshold.withLock { $0 = newValue } }
    }

    package func debug(_ message: @autoclosure () -> String) { write(.debug, message) }
    package func info(_ message: @autoclosure () -> String) { write(.info, message) }
    package func warning(_ message: @autoclosure () -> String) { write(.warning, message) }
    package func error(_ message: @autoclosure () -> String) { write(.error, message) }

    private func write(_ level: Level, _ message: () -> String) {
        guard level >= Log.level else { return }
        let text = message().split(separator: "\n", omittingEmptySubsequences: true).joined(separator: " | ")
        let line =
            Log.underJournal
            ? "<\([7, 6, 4, 3][level.rawValue])>\(subsystem): \(text)\n"
            : "\(["debug", "info", "warning", "error"][level.rawValue]): \(subsystem): \(text)\n"
        StandardError.write(line)
    }
}

/// Standard error as a place for whole lines; descriptor 2, since `stderr` is shared mutable state to Swift.
package enum StandardError {
    package static func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let done = rest.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
            if done < 0 && errno == EINTR { continue }
            guard done > 0 else { return }
            rest = rest.dropFirst(done)
        }
    }
}

/// Standard output, written through at once.
package enum StandardOutput {
    package static func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let done = rest.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
            if done < 0 && errno == EINTR { continue }
            guard done > 0 else { return }
            rest = rest.dropFirst(done)
        }
    }

    /// Whether a person's terminal reads it.
    package static var isTerminal: Bool { isatty(1) == 1 }

    /// Columns of the terminal; 80 when there is none.
    package static var columns: Int {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
