internal import Synchronization

/// What happens on a link, kept until somebody takes it: bounded, the oldest goes first, and the gap is told.
///
/// Concurrency: the state is in one `Mutex`; one task reads the stream.
package final class LinkEventQueue: Sendable {
    private struct State {
        var waiting: [LinkEvent] = []
        var dropped = 0
        var isFinished = false
        var reader: CheckedContinuation<LinkEvent?, Never>?
    }

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int = 256) { self.limit = limit }

    /// All events from now on; `dropped` comes before the first event after a gap.
    package var stream: AsyncStream<LinkEvent> {
        AsyncStream(unfolding: { [weak self] in await self?.next() })
    }

    package func push(_ event: LinkEvent) {
        let reader = state.withLock { state -> CheckedContinuation<LinkEvent?, Never>? in
            guard !state.isFinished else { return nil }
            if let reader = state.reader {
                state.reader = nil
                return reader
            }
            if state.waiting.count >= limit {
                state.waiting.removeFirst()
                state.dropped += 1
            }
            state.waiting.append(event)
            return nil
        }
        reader?.resume(returning: event)
    }

    /// What is waiting can still be taken; then the stream ends.
    package func finish() {
        let reader = state.withLock { state in
            state.isFinished = true
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: nil)
    }

    private enum Next { case event(LinkEvent), end, wait }

    private func next() async -> LinkEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let next = state.withLock { state -> Next in
                    if state.dropped > 0 {
                        defer { state.dropped = 0 }
                        return .event(.dropped(state.dropped))
                    }
                    if !state.waiting.isEmpty { return .event(state.waiting.removeFirst()) }
                    if state.isFinished || Task.isCancelled { return .end }
                    // One reader at a time; a second one would take the place of the first.
                    precondition(state.reader == nil, "two tasks read the events of one link")
                    state.reader = continuation
                    return .wait
                }
                switch next {
                case .event(let event): continuation.resume(returning: event)
                case .end: continuation.resume(returning: nil)
                case .wait: break
                }
            }
        } onCancel: {
            let reader = state.withLock { state in
                defer { state.reader = nil }
                return state.reader
            }
            reader?.resume(returning: nil)
        }
    }
}
