package import Timing

/// What the chirps say of the hosts' clocks beside the network: the independent witness of a take.
package struct SoundWitness: Codable, Sendable, Hashable {
    /// Two hosts' clocks by the network and by sound; offsets are the second's time minus the first's.
    package struct Pair: Codable, Sendable, Hashable {
        package enum Opinion: String, Codable, Sendable, Hashable, CaseIterable {
            case agree, disagree
            /// Nothing was heard, or what was heard says too little.
            case cannotSay = "cannot_say"
        }

        package var first: String
        package var second: String
        package var opinion: Opinion
        package var network: Interval
        package var networkBound: Interval
        package var sound: Interval?
        /// One standard deviation; where sound went one way only, the distance is in it.
        package var soundUncertainty: Interval?
        /// Network minus sound; where sound went one way only, what lies outside of the range that is possible.
        package var difference: Interval?
        /// What the difference may be.
        package var limit: Interval?
        package var isOneWay: Bool
        /// Metres between the microphones, with one standard deviation.
        package var distance: Double?
        package var distanceUncertainty: Double?
        /// The second clock's rate against the first's, ppm.
        package var soundSkew: Double?
        package var networkSkew: Double?
        /// One sentence.
        package var text: String

        package init(
            first: String, second: String, opinion: Opinion, network: Interval, networkBound: Interval,
            isOneWay: Bool, text: String
        ) {
            (self.first, self.second, self.opinion) = (first, second, opinion)
            (self.network, self.networkBound) = (network, networkBound)
            (self.isOneWay, self.text) = (isOneWay, text)
        }

        private enum CodingKeys: String, CodingKey {
            case first, second, opinion, text
            case network = "network_offset_ns"
            case networkBound = "network_bound_ns"
            case sound = "sound_offset_ns"
            case soundUncertainty = "sound_uncertainty_ns"
            case difference = "difference_ns"
            case limit = "limit_ns"
            case isOneWay = "one_way"
            case distance = "distance_m"
            case distanceUncertainty = "distance_uncertainty_m"
            case soundSkew = "sound_skew_ppm"
            case networkSkew = "network_skew_ppm"
        }
    }

    /// What one host's microphone heard.
    package struct Ear: Codable, Sendable, Hashable {
        package var host: String
        package var stream: String?
        package var chirps: Int
        /// Nil when nobody looked, or the take has no such chirp.
        package var hasStart: Bool?
        package var hasStop: Bool?
        /// The sound card's rate against the host's clock between the first and the last chirp, ppm.
        package var cardSkew: Double?
        /// Of the weakest chirp, 0…1.
        package var confidence: Double?
        package var problem: String?

        package init(host: String) {
            self.host = host
            chirps = 0
        }

        private enum CodingKeys: String, CodingKey {
            case host = "host_id"
            case stream = "stream_id"
            case chirps
            case hasStart = "has_start_chirp"
            case hasStop = "has_stop_chirp"
            case cardSkew = "card_skew_ppm"
            case confidence, problem
        }
    }

    package var pairs: [Pair]
    package var ears: [Ear]
    /// √(χ²/degrees of freedom) of the solution: about 1 when the uncertainties are honest.
    package var misfit: Double?
    package var notes: [String]

    package init(pairs: [Pair] = [], ears: [Ear] = [], misfit: Double? = nil, notes: [String] = []) {
        (self.pairs, self.ears, self.misfit, self.notes) = (pairs, ears, misfit, notes)
    }

    /// The host that is in most of the pairs that disagree, where it is one alone.
    package var suspect: String? {
        var counts: [String: Int] = [:]
        for pair in pairs where pair.opinion == .disagree {
            counts[pair.first, default: 0] += 1
            counts[pair.second, default: 0] += 1
        }
        guard let most = counts.values.max(), most > 1 else { return nil }
        let hosts = counts.filter { $0.value == most }.keys
        return hosts.count == 1 ? hosts.first : nil
    }
}
