internal import Glibc
internal import Protocol
internal import Timing

/// The equations of a two-way solution.
///
/// Seconds and doubles, relative to the first stamp of each host.
struct TwoWaySystem {
    private struct Observation {
        let hearing: ChirpHearing
        let emission: Int
        let player: Int
        let hearer: Int
        /// Seconds since the hearer's base.
        let heard: Double
        let deviation: Double
        /// Seconds of shift for each unit of skew.
        let coupling: Double
    }

    private(set) var hosts: [HostID] = []
    private(set) var misfit = 0.0
    private(set) var rejected: [ChirpHearing] = []
    private let options: TwoWaySolution.Options
    private let emissions: [ChirpEmission]
    private var observations: [Observation] = []
    /// The stamp that each host's seconds are counted from.
    private var bases: [Timestamp<HostTime>] = []
    var instant: Timestamp<HostTime> { bases.first ?? Timestamp(nanoseconds: 0) }
    private var emitted: [Double] = []
    private var pairIndex: [[Int]] = []
    private var pairs: [(Int, Int)] = []
    /// Directed ways that were heard: how much longer each is than its pair's distance.
    private var wayIndex: [[Int]] = []
    private var ways: [Int] = []
    /// Offsets and skews of each host, distances (seconds), emission errors, own distances (seconds).
    private var values: [Double] = []
    private var inverse: [Double] = []
    private var order = 0

    init?(emissions: [ChirpEmission], hearings: [ChirpHearing], options: TwoWaySolution.Options) {
        self.options = options
        var byID: [Int: ChirpEmission] = [:]
        for emission in emissions { byID[emission.id] = emission }
        let useful = hearings.filter { byID[$0.emission] != nil && $0.uncertainty.nanoseconds >= 0 }
        let ordered = byID.values.sorted { ($0.host, $0.emitted, $0.id) < ($1.host, $1.emitted, $1.id) }
        guard let (hosts, bases) = Self.connect(ordered, byID, useful) else { return nil }
        (self.hosts, self.bases) = (hosts, bases)
        let index = Dictionary(uniqueKeysWithValues: hosts.enumerated().map { ($1, $0) })
        self.emissions = ordered.filter { index[$0.host] != nil }
        let place = Dictionary(uniqueKeysWithValues: self.emissions.enumerated().map { ($1.id, $0) })
        emitted = self.emissions.map { ($0.emitted - bases[index[$0.host] ?? 0]).seconds }
        pairIndex = hosts.map { _ in hosts.map { _ in -1 } }
        wayIndex = pairIndex
        for hearing in useful {
            guard let emission = byID[hearing.emission], let player = index[emission.host],
                let hearer = index[hearing.host], let at = place[emission.id]
            else { continue }
            if player != hearer, pairIndex[player][hearer] < 0 {
                pairIndex[player][hearer] = pairs.count
                pairIndex[hearer][player] = pairs.count
                pairs.append((min(player, hearer), max(player, hearer)))
            }
            if player != hearer, wayIndex[player][hearer] < 0 {
                wayIndex[player][hearer] = ways.count
                ways.append(player)
            }
            let spec = emission.spec
            let duration = spec.durationMilliseconds / 1000
            let bend = spec.toHz - spec.fromHz
            let coupling = bend == 0 ? 0 : (spec.fromHz + spec.toHz) / 2 / (bend / duration) + duration / 2
            guard coupling.isFinite, hearing.assumedSkew.isFinite else { continue }
            observations.append(
                Observation(
                    hearing: hearing, emission: at, player: player, hearer: hearer,
                    heard: (hearing.heard - bases[hearer]).seconds,
                    deviation: max(hearing.uncertainty.seconds, 1e-7), coupling: coupling))
        }
        guard !pairs.isEmpty else { return nil }
        order = 4 * hosts.count - 2 + pairs.count + self.emissions.count + ways.count
        // A rig is some dozens of hosts at most; the equations are dense.
        guard order <= 4096 else { return nil }
        values = [Double](repeating: 0, count: order)
        for pair in pairs.indices { values[distanceColumn(pair)] = options.farthest / 4 / options.soundSpeed }
        for host in hosts.indices { values[ownColumn(host)] = own(host) / options.soundSpeed }
    }

    /// The hosts that sound connects with the first player, each with a stamp near to the same moment.
    private static func connect(
        _ emissions: [ChirpEmission], _ byID: [Int: ChirpEmission], _ hearings: [ChirpHearing]
    ) -> ([HostID], [Timestamp<HostTime>])? {
        let heardElsewhere = Set(hearings.filter { byID[$0.emission]?.host != $0.host }.map { $0.emission })
        guard let start = emissions.first(where: { heardElsewhere.contains($0.id) }) else { return nil }
        var bases = [start.host: start.emitted]
        var hosts = [start.host]
        var grown = true
        while grown {
            grown = false
            for hearing in hearings {
                guard let emission = byID[hearing.emission], emission.host != hearing.host else { continue }
                if let base = bases[emission.host], bases[hearing.host] == nil {
                    bases[hearing.host] = hearing.heard - (emission.emitted - base)
                    hosts.append(hearing.host)
                    grown = true
                } else if let base = bases[hearing.host], bases[emission.host] == nil {
                    bases[emission.host] = emission.emitted - (hearing.heard - base)
                    hosts.append(emission.host)
                    grown = true
                }
            }
        }
        return (hosts, hosts.compactMap { bases[$0] })
    }

    private func own(_ host: Int) -> Double { options.ownDistances[hosts[host]] ?? options.ownDistance }

    // Columns; the first host has neither offset nor skew.
    private func offsetColumn(_ host: Int) -> Int? { host == 0 ? nil : host - 1 }
    private func skewColumn(_ host: Int) -> Int? { host == 0 ? nil : hosts.count - 1 + host - 1 }
    private func distanceColumn(_ pair: Int) -> Int { 2 * (hosts.count - 1) + pair }
    private func emissionColumn(_ emission: Int) -> Int { 2 * (hosts.count - 1) + pairs.count + emission }
    private func ownColumn(_ host: Int) -> Int { 2 * (hosts.count - 1) + pairs.count + emissions.count + host }
    private func wayColumn(_ way: Int) -> Int {
        2 * (hosts.count - 1) + pairs.count + emissions.count + hosts.count + way
    }
    private func speakerColumn(_ host: Int) -> Int { order - hosts.count + host }
    private func value(_ column: Int?) -> Double { column.map { values[$0] } ?? 0 }

    /// Row of one arrival: what it should be, and its derivatives.
    private func predict(_ o: Observation) -> (seconds: Double, slopes: [(Int, Double)]) {
        let played = emitted[o.emission] + values[emissionColumn(o.emission)]
        let (skewP, skewH) = (value(skewColumn(o.player)), value(skewColumn(o.hearer)))
        // host = true + offset + skew × true, so true = (host − offset) / (1 + skew).
        let true_ = (played - value(offsetColumn(o.player))) / (1 + skewP)
        let way = o.player == o.hearer ? ownColumn(o.player) : distanceColumn(pairIndex[o.player][o.hearer])
        let excess = o.player == o.hearer ? nil : wayColumn(wayIndex[o.player][o.hearer])
        let arrival = true_ + values[way] + value(excess)
        let speaker = speakerColumn(o.player)
        let coupled = o.coupling * (skewH - skewP - values[speaker] - o.hearing.assumedSkew)
        let seconds = arrival + value(offsetColumn(o.hearer)) + skewH * arrival + coupled
        var slopes: [(Int, Double)] = [(emissionColumn(o.emission), 1), (way, 1), (speaker, -o.coupling)]
        if o.player == o.hearer { return (seconds, slopes) }
        if let excess { slopes.append((excess, 1)) }
        if let column = offsetColumn(o.player) { slopes.append((column, -1)) }
        if let column = offsetColumn(o.hearer) { slopes.append((column, 1)) }
        if let column = skewColumn(o.player) { slopes.append((column, -true_ - o.coupling)) }
        if let column = skewColumn(o.hearer) { slopes.append((column, arrival + o.coupling)) }
        return (seconds, slopes)
    }

    /// Gauss and Newton, with Huber's weights; false when the equations can't be solved.
    mutating func solve() -> Bool {
        for round in 0..<12 {
            var (normal, right) = ([Double](repeating: 0, count: order * order), [Double](repeating: 0, count: order))
            func add(_ slopes: [(Int, Double)], _ residual: Double, _ weight: Double) {
                for (i, a) in slopes {
                    right[i] += weight * a * residual
                    for (j, b) in slopes { normal[i * right.count + j] += weight * a * b }
                }
            }
            for o in observations {
                let (seconds, slopes) = predict(o)
                let residual = o.heard - seconds
                let size = abs(residual) / o.deviation
                // The first rounds bring the offsets near; only then is a large residual an outlier.
                let huber = round < 4 || size <= 2.5 ? 1 : 2.5 / size
                add(slopes, residual, huber / (o.deviation * o.deviation))
            }
            for (column, mean, deviation) in priors() {
                add([(column, 1)], mean - values[column], 1 / (deviation * deviation))
            }
            guard let solved = SymmetricSystem(normal, order: order) else { return false }
            let step = solved.solve(right)
            for index in 0..<order { values[index] += step[index] }
            inverse = solved.inverse
            guard values.allSatisfy({ $0.isFinite }) else { return false }
        }
        judge()
        return true
    }

    private func priors() -> [(Int, Double, Double)] {
        var all: [(Int, Double, Double)] = []
        for host in hosts.indices {
            if let column = skewColumn(host) { all.append((column, 0, options.skewUncertainty)) }
            all.append((speakerColumn(host), 0, max(options.speakerSkewUncertainty, 1e-10)))
            all.append(
                (
                    ownColumn(host), own(host) / options.soundSpeed,
                    max(options.ownDistanceUncertainty, 1e-4) / options.soundSpeed
                ))
        }
        for pair in pairs.indices {
            if let known = options.knownDistance {
                let deviation = max(known.deviation, 1e-3) / options.soundSpeed
                all.append((distanceColumn(pair), known.metres / options.soundSpeed, deviation))
                continue
            }
            // Even over 0…farthest has this mean and deviation.
            let half = options.farthest / 2 / options.soundSpeed
            all.append((distanceColumn(pair), half, half / 3.0.squareRoot()))
        }
        for (way, player) in ways.enumerated() {
            // The speaker is beside the microphone, in a direction that no one knows: a third of the square on average.
            let deviation = max(own(player), 0.002) / 3.0.squareRoot() / options.soundSpeed
            all.append((wayColumn(way), 0, deviation))
        }
        for (index, emission) in emissions.enumerated() {
            all.append((emissionColumn(index), 0, max(emission.uncertainty.seconds, 1e-6)))
        }
        return all
    }

    private mutating func judge() {
        var squares = 0.0
        for o in observations {
            let size = abs(o.heard - predict(o).seconds) / o.deviation
            squares += min(size * size, 25)
            if size > 5 { rejected.append(o.hearing) }
        }
        let unknowns = 2 * (hosts.count - 1) + pairs.count + emissions.count
        let free = observations.count - unknowns
        misfit = free > 0 ? (squares / Double(free)).squareRoot() : 0
    }

    private func covariance(_ a: Int?, _ b: Int?) -> Double {
        guard let a, let b else { return 0 }
        return inverse[a * order + b] * max(misfit * misfit, 1)
    }

    private func differenceDeviation(_ a: Int?, _ b: Int?) -> Double {
        max(covariance(a, a) + covariance(b, b) - 2 * covariance(a, b), 0).squareRoot()
    }

    var directedWays: Set<[HostID]> {
        Set(observations.filter { $0.player != $0.hearer }.map { [hosts[$0.player], hosts[$0.hearer]] })
    }

    /// One statement for each pair that heard something of each other.
    func statements() -> [PairStatement] {
        pairs.indices.map { pair in
            let (a, b) = pairs[pair]
            let column = distanceColumn(pair)
            let distance = values[column] * options.soundSpeed
            let distanceDeviation = covariance(column, column).squareRoot() * options.soundSpeed
            let seconds = value(offsetColumn(b)) - value(offsetColumn(a))
            let offset = (bases[b] - bases[a]) + .seconds(seconds)
            let deviation = differenceDeviation(offsetColumn(a), offsetColumn(b))
            var kind = PairStatement.Kind.twoWay
            if distanceDeviation > 1 {
                // The distance isn't known: from touching to the farthest. Who heard whom says which way it counts.
                let forward = observations.contains { $0.player == a && $0.hearer == b }
                let way = values[column]
                let rest = options.farthest / options.soundSpeed - way
                // What was measured is the sum of offset and way: its own doubt widens the interval.
                let (offsetA, offsetB) = (offsetColumn(a), offsetColumn(b))
                let crossed = covariance(offsetB, column) - covariance(offsetA, column)
                let sum = deviation * deviation + covariance(column, column) + 2 * (forward ? crossed : -crossed)
                let doubt = 3 * max(sum, 0).squareRoot()
                let (early, late) = forward ? (rest + doubt, way + doubt) : (way + doubt, rest + doubt)
                kind = .oneWay(earliest: offset - .seconds(early), latest: offset + .seconds(late))
            }
            return PairStatement(
                first: hosts[a], second: hosts[b], kind: kind, offset: offset,
                offsetUncertainty: .seconds(deviation), distance: distance, distanceUncertainty: distanceDeviation,
                skew: value(skewColumn(b)) - value(skewColumn(a)),
                skewUncertainty: differenceDeviation(skewColumn(a), skewColumn(b)))
        }
    }
}

/// A symmetric positive definite system, scaled to ones on its diagonal before it is factored.
struct SymmetricSystem {
    let inverse: [Double]
    private let order: Int

    init?(_ matrix: [Double], order n: Int) {
        order = n
        let scale = (0..<n).map { i in
            let x = matrix[i * n + i]
            return x > 0 && x.isFinite ? 1 / x.squareRoot() : 0
        }
        guard scale.allSatisfy({ $0 > 0 }) else { return nil }
        var scaled = matrix
        for i in 0..<n { for j in 0..<n { scaled[i * n + j] *= scale[i] * scale[j] } }
        let factor = Triangular(scaled, order: n)
        // A⁻¹ = L⁻ᵀ L⁻¹.
        var inverse = [Double](repeating: 0, count: n * n)
        for k in 0..<n {
            let row = k * (k + 1) / 2
            for i in 0...k {
                let x = factor.inverse[row + i]
                if x == 0 { continue }
                for j in 0...k { inverse[i * n + j] += x * factor.inverse[row + j] }
            }
        }
        for i in 0..<n { for j in 0..<n { inverse[i * n + j] *= scale[i] * scale[j] } }
        guard inverse.allSatisfy({ $0.isFinite }) else { return nil }
        self.inverse = inverse
    }

    func solve(_ right: [Double]) -> [Double] {
        (0..<order).map { i in (0..<order).reduce(0) { $0 + inverse[i * order + $1] * right[$1] } }
    }
}
