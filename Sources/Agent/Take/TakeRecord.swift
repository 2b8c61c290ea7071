package import Protocol

/// What this host knows of a take for good: `<home>/takes/<take>.json`, beside the episode and never inside it.
///
/// It is written at the commit and at each step after it, so that a program that died finds what it was doing.
package struct TakeRecord: Codable, Sendable, Hashable {
    package enum Progress: String, Codable, Sendable, CaseIterable {
        /// T0 was promised; nothing has been recorded yet.
        case committed
        case recording
        /// The files are closed and the manifest is whole.
        case finished
        /// The program died in the take, and the files were repaired.
        case recovered
        /// The coordinator has verified every file.
        case ingested
        /// There are no files.
        case aborted
    }

    package var plan: TakePlan
    package var commit: Commit?
    package var progress: Progress
    package var chirps: [ChirpReport]
    package var report: StopReport?
    package var bytes: Int64

    package init(plan: TakePlan, commit: Commit?, progress: Progress) {
        self.plan = plan
        self.commit = commit
        self.progress = progress
        chirps = []
        bytes = 0
    }

    /// What is told to a coordinator; nil when there are no files.
    package var summary: EpisodeSummary? {
        let progress: EpisodeProgress
        switch self.progress {
        case .committed, .aborted: return nil
        case .recording: progress = .recording
        case .finished: progress = .finished
        case .recovered: progress = .recovered
        case .ingested: progress = .ingested
        }
        return EpisodeSummary(
            episode: plan.episode, session: plan.session, take: plan.take, progress: progress, bytes: bytes)
    }
}
