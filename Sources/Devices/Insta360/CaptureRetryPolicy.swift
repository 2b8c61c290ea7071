package import Timing

/// How often and how long the camera is asked to start and to stop (SyncField Swift's figures).
package struct CaptureRetryPolicy: Sendable, Hashable {
    /// How long each attempt may take.
    package var patience: [Interval]
    /// How long to wait after an attempt that failed; none after the last one, and none when there are fewer.
    package var pauses: [Interval]

    package static let start = CaptureRetryPolicy(
        patience: [.seconds(6), .seconds(8), .seconds(10)], pauses: [.milliseconds(500), .milliseconds(1250)])
    package static let stop = CaptureRetryPolicy(
        patience: [.seconds(6), .seconds(10), .seconds(14), .seconds(18)],
        pauses: [.milliseconds(500), .milliseconds(1250), .milliseconds(2500)])
    /// After a stop that failed for good, the camera is asked for so long whether it still records.
    package static let statusPoll = Interval.seconds(10)
    /// And for so long once it has said that it doesn't, for the state to settle.
    package static let statusSettle = Interval.seconds(3)
    /// The camera ends a recording by itself after this long.
    package static let cameraLimit = Interval.seconds(1800)

    package init(patience: [Interval], pauses: [Interval]) {
        self.patience = patience
        self.pauses = pauses
    }

    package func pause(after attempt: Int) -> Interval? {
        guard attempt + 1 < patience.count else { return nil }
        return pauses.indices.contains(attempt) ? pauses[attempt] : .zero
    }
}

/// What a failure of a command means, by its words: the camera has no codes for most of it.
package enum CaptureFailure: Sendable, Hashable {
    case recoverable
    /// A stop found nothing to stop.
    case alreadyStopped
    case final

    private static let stopped = [
        "not capturing", "not recording", "not started", "already stopped", "capture stopped",
    ]
    private static let passing = [
        "timed out", "unavailable", "not ready", "not paired", "disconnect", "bluetooth", "execute err", "busy", "444",
    ]

    package init(_ words: String) {
        let words = words.lowercased()
        if Self.stopped.contains(where: words.contains) {
            self = .alreadyStopped
        } else if words.split(whereSeparator: { !$0.isLetter }).contains("ble") {
            self = .recoverable
        } else {
            self = Self.passing.contains(where: words.contains) ? .recoverable : .final
        }
    }
}
