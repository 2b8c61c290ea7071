internal import Timing

/// How often a question from strangers is answered: a bucket of tokens for each address and one for all.
///
/// Memory is bounded: the addresses that asked least recently are forgotten.
struct RateLimit: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: Timestamp<HostTime>

        mutating func take(_ now: Timestamp<HostTime>, rate: Double, burst: Double) -> Bool {
            tokens = min(burst, tokens + max(0, (now - at).seconds) * rate)
            at = now
            guard tokens >= 1 else { return false }
            tokens -= 1
            return true
        }
    }

    private let perAddress: (rate: Double, burst: Double)
    private let overall: (rate: Double, burst: Double)
    private let capacity: Int
    private var buckets: [String: Bucket] = [:]
    private var all: Bucket?

    init(perAddress: (rate: Double, burst: Double), overall: (rate: Double, burst: Double), capacity: Int) {
        self.perAddress = perAddress
        self.overall = overall
        self.capacity = capacity
    }

    /// Whether a question of this address is answered now.
    mutating func admit(_ address: String, at now: Timestamp<HostTime>) -> Bool {
        var bucket = buckets[address] ?? Bucket(tokens: perAddress.burst, at: now)
        let own = bucket.take(now, rate: perAddress.rate, burst: perAddress.burst)
        if buckets[address] == nil, buckets.count >= capacity { forgetOldest() }
        buckets[address] = bucket
        guard own else { return false }
        var all = self.all ?? Bucket(tokens: overall.burst, at: now)
        defer { self.all = all }
        return all.take(now, rate: overall.rate, burst: overall.burst)
    }

    var addressCount: Int { buckets.count }

    private mutating func forgetOldest() {
        // Half at once, so that a flood of addresses costs little for each datagram.
        let instants = buckets.values.map(\.at).sorted()
        let middle = instants[instants.count / 2]
        buckets = buckets.filter { $0.value.at > middle }
    }
}
