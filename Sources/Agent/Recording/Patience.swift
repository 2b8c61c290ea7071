internal import Platform
internal import Synchronization
internal import Timing

/// A limit on what a device may take: it is left behind when it takes longer, since a hanging driver can't be cancelled.
enum Patience {
    /// It took too long.
    struct TimedOut: Error, CustomStringConvertible {
        let after: Interval
        var description: String { "it took longer than \(after.seconds) s" }
    }

    /// Waits for an operation, at most so long.
    ///
    /// `ifLate` gets the result of an operation that ends after the limit.
    static func within<Value: Sendable>(
        _ limit: Interval, on loop: EventLoop, _ operation: @escaping @Sendable () async throws -> Value,
        ifLate: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) async throws -> Value {
        let race = Race<Value>()
        return try await withCheckedThrowingContinuation { continuation in
            race.install(continuation)
            let timer = loop.schedule(at: HostClock.now + limit) {
                _ = race.finish(.failure(TimedOut(after: limit)))
            }
            // Not a child: the caller goes on when the limit is over, and this one ends when the driver lets it.
            Task {
                let result: Result<Value, any Error>
                do { result = .success(try await operation()) } catch { result = .failure(error) }
                loop.cancel(timer)
                if !race.finish(result) { await ifLate(result) }
            }
        }
    }

    private final class Race<Value: Sendable>: Sendable {
        private let continuation = Mutex<CheckedContinuation<Value, any Error>?>(nil)

        func install(_ continuation: CheckedContinuation<Value, any Error>) {
            self.continuation.withLock { $0 = continuation }
        }

        /// False when the race was over.
        func finish(_ result: Result<Value, any Error>) -> Bool {
            let waiting = continuation.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
            waiting?.resume(with: result)
            return waiting != nil
        }
    }
}
