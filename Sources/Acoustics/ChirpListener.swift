package import Protocol

/// Hears chirps in a stream of any length: a matched filter, and an arrival estimate of each candidate.
///
/// It keeps the last six seconds or so of the sound, since a candidate is certain only when its block is full. Arrivals come
/// in the order of their places. One owner feeds it.
package final class ChirpListener {
    package struct Heard: Sendable, Hashable {
        /// Which of the specs.
        package var template: Int
        /// Positions are samples since the stream's begin.
        package var arrival: ChirpArrival
    }

    private let filter: MatchedFilter
    private let estimators: [ArrivalEstimator]
    private let keep: Int
    private var recent: [Float] = []
    /// Stream position of the first of `recent`.
    private var origin = 0
    /// Candidates that the estimator didn't confirm.
    package private(set) var refused = 0

    /// Nil when no microphone at this rate can hear one of the specs.
    package init?(specs: [ChirpSpec], rate: Double) {
        guard let filter = MatchedFilter(specs: specs, rate: rate) else { return nil }
        self.filter = filter
        estimators = specs.map { ArrivalEstimator(spec: $0, rate: rate) }
        keep = 2 * filter.latency
    }

    /// Takes the next samples, mono, full scale 1.
    package func push(_ samples: [Float]) -> [Heard] {
        var heard: [Heard] = []
        var index = 0
        while index < samples.count {
            let end = min(index + 32_768, samples.count)
            recent += samples[index..<end]
            heard += judge(filter.push(samples[index..<end]))
            if recent.count > 2 * keep {
                origin += recent.count - keep
                recent.removeFirst(recent.count - keep)
            }
            index = end
        }
        return heard
    }

    /// The end of the stream.
    package func finish() -> [Heard] { judge(filter.finish()) }

    private func judge(_ candidates: [MatchedFilter.Candidate]) -> [Heard] {
        candidates.compactMap { candidate in
            let place = candidate.position - Double(origin)
            guard var arrival = estimators[candidate.template].estimate(recent, near: place).arrival else {
                refused += 1
                return nil
            }
            arrival.position += Double(origin)
            return Heard(template: candidate.template, arrival: arrival)
        }
    }
}
