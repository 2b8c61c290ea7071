package import Timing

/// How often and how long an upload is tried.
package struct UploadPolicy: Sendable {
    package var maximumAttempts = 8
    package var firstDelay: Interval = .milliseconds(1000)
    package var longestDelay: Interval = .milliseconds(60_000)
    package var firstPoll: Interval = .milliseconds(200)
    package var longestPoll: Interval = .milliseconds(3000)

    package init() {}
}

/// Decides the next step of one upload; pure.
///
///     start → ask whether the server has these bytes → post → poll → fetch the results → complete
struct UploadMachine: Sendable {
    enum Event: Sendable, Hashable {
        /// The key of the bytes that would be sent now.
        case start(key: String)
        /// The server has a job of these bytes.
        case known(job: String)
        case notKnown
        case posted(job: String)
        /// The job isn't done.
        case running(confirmed: Bool)
        case jobComplete(confirmed: Bool)
        case jobFailed(String)
        /// The server doesn't know the job any more.
        case jobLost
        case resultsStored
        case failed(String, isRetriable: Bool)
    }

    enum Action: Sendable, Hashable {
        case ask
        case post
        case poll(after: Interval)
        case fetch
        /// Wait, then perform the step again.
        case retry(Step, after: Interval)
        case end
    }

    enum Step: Sendable, Hashable { case ask, post, poll, fetch }

    private(set) var entry: UploadEntry
    private let policy: UploadPolicy
    private var step = Step.ask
    private var polls = 0

    init(entry: UploadEntry, policy: UploadPolicy) {
        self.entry = entry
        self.policy = policy
    }

    mutating func handle(_ event: Event) -> Action {
        switch event {
        case .start(let key): return start(key)
        case .known(let job), .posted(let job):
            entry.job = job
            entry.state = .processing
            return poll()
        case .notKnown: return go(.post)
        case .running(let confirmed):
            entry.isConfirmed = confirmed
            entry.attempts = 0
            return poll()
        case .jobComplete(let confirmed):
            entry.isConfirmed = confirmed
            return go(.fetch)
        case .jobFailed(let reason):
            return end(.failed, reason)
        case .jobLost:
            entry.job = nil
            entry.state = .uploading
            return retry(.post, "the server doesn't know the job any more")
        case .resultsStored:
            entry.attempts = 0
            return end(.complete, nil)
        case .failed(let reason, let isRetriable):
            return isRetriable ? retry(step, reason) : end(.failed, reason)
        }
    }

    private mutating func start(_ key: String) -> Action {
        let isSame = entry.uploadKey == key
        if entry.state == .complete && isSame && entry.isConfirmed { return .end }
        entry.attempts = 0
        entry.lastError = nil
        if entry.state == .processing && isSame && entry.job != nil { return poll() }
        entry.uploadKey = key
        entry.isConfirmed = false
        entry.job = nil
        entry.state = .uploading
        // An upload that broke off after the server had taken it is found by its key, and isn't sent again.
        return go(.ask)
    }

    private mutating func go(_ next: Step) -> Action {
        step = next
        switch next {
        case .ask: return .ask
        case .post: return .post
        case .poll: return .poll(after: policy.firstPoll)
        case .fetch: return .fetch
        }
    }

    private mutating func poll() -> Action {
        step = .poll
        let delay = min(policy.longestPoll, policy.firstPoll * (1 << Int64(min(polls, 16))))
        polls += 1
        return .poll(after: delay)
    }

    private mutating func retry(_ again: Step, _ reason: String) -> Action {
        step = again
        entry.attempts += 1
        entry.lastError = reason
        guard entry.attempts < policy.maximumAttempts else {
            return end(.failed, "given up after \(entry.attempts) tries: \(reason)")
        }
        let delay = min(policy.longestDelay, policy.firstDelay * (1 << Int64(min(entry.attempts - 1, 16))))
        return .retry(again, after: delay)
    }

    private mutating func end(_ state: UploadState, _ reason: String?) -> Action {
        entry.state = state
        entry.lastError = reason
        return .end
    }
}
