internal import Glibc

/// From places in a recording to instants of the clock that stamped it: a straight line through the nearest stamps.
///
/// A sound card's rate is constant over a minute to a part of a ppm, and its stamps jitter; so an instant is taken from a
/// few hundred stamps around it, the outliers left out. Where the stamps jump, as behind an overrun, the line ends.
struct SoundClock: Sendable {
    struct Reading: Sendable, Hashable {
        /// ns.
        var time: Int64
        /// One standard deviation of it by what the stamps scatter, ns.
        var deviation: Double
        /// The card's rate against the nominal one, by the clock of the stamps, minus one.
        var cardSkew: Double
        /// One standard deviation of that.
        var cardSkewDeviation: Double
    }

    private static let windowPoints = 400
    /// A jump below this is jitter, ns.
    private static let leastJump = 5e6

    private let rate: Double
    private let places: [Double]
    /// Relative to the nominal line through the first point, ns: small numbers, so doubles are exact enough.
    private let deviations: [Double]
    private let origin: Int64
    private let firstPlace: Double
    /// Ranges of points without a jump.
    private let pieces: [Range<Int>]
    /// What a whole shift of the stamps against the sound may be, ns.
    private let doubt: Double

    /// Points in the order of the places, at least one; `doubt` is added to each deviation.
    init?(_ points: [(place: Double, time: Int64)], rate: Double, doubt: Double = 0) {
        guard let first = points.first, rate > 0, rate.isFinite else { return nil }
        self.rate = rate
        self.doubt = doubt
        origin = first.time
        firstPlace = first.place
        var kept: [(place: Double, deviation: Double)] = []
        for point in points {
            let (difference, overflow) = point.time.subtractingReportingOverflow(first.time)
            guard !overflow, point.place.isFinite else { continue }
            if let last = kept.last, point.place <= last.place { continue }
            kept.append((point.place, Double(difference) - (point.place - first.place) / rate * 1e9))
        }
        places = kept.map(\.place)
        deviations = kept.map(\.deviation)
        guard !places.isEmpty else { return nil }
        pieces = Self.pieces(kept.map(\.deviation))
    }

    private static func pieces(_ values: [Double]) -> [Range<Int>] {
        let steps = zip(values, values.dropFirst()).map { $1 - $0 }
        let typical = median(steps.map(\.magnitude))
        let limit = max(leastJump, 12 * typical)
        var pieces: [Range<Int>] = []
        var start = 0
        for (index, step) in steps.enumerated() where step.magnitude > limit {
            pieces.append(start..<index + 1)
            start = index + 1
        }
        pieces.append(start..<values.count)
        return pieces
    }

    /// The instant of a place, which may be broken, or outside of all stamps.
    func reading(at place: Double) -> Reading {
        let piece = piece(of: place)
        let middle = lowerBound(place, piece)
        let half = Self.windowPoints / 2
        let low = max(piece.lowerBound, min(middle - half, piece.upperBound - Self.windowPoints))
        let window = low..<min(piece.upperBound, low + Self.windowPoints)
        let x0 = (places[window.lowerBound] - firstPlace) / rate
        var used = window.map { ((places[$0] - firstPlace) / rate - x0, deviations[$0]) }
        var line = Line(used)
        for _ in 0..<3 where used.count > 4 {
            let errors = used.map { abs($0.1 - line.value(at: $0.0)) }
            let limit = max(4 * 1.4826 * median(errors), 1000)
            let kept = zip(used, errors).filter { $0.1 <= limit }.map { $0.0 }
            guard kept.count < used.count, kept.count >= 3 else { break }
            used = kept
            line = Line(used)
        }
        let x = (place - firstPlace) / rate - x0
        let whole = (x + x0) * 1e9 + line.value(at: x)
        let time = whole.magnitude < 4e18 ? Int64(whole.rounded()) : 0
        return Reading(
            time: origin.addingReportingOverflow(time).partialValue,
            deviation: (pow(line.deviation(at: x), 2) + doubt * doubt).squareRoot(),
            cardSkew: 1 / (1 + line.slope * 1e-9) - 1, cardSkewDeviation: line.slopeDeviation * 1e-9)
    }

    /// The piece that a place lies in or is nearest to.
    private func piece(of place: Double) -> Range<Int> {
        var best = pieces[0]
        for piece in pieces where places[piece.lowerBound] <= place { best = piece }
        return best
    }

    private func lowerBound(_ place: Double, _ piece: Range<Int>) -> Int {
        var (low, high) = (piece.lowerBound, piece.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if places[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// A least-squares line: ns over seconds.
private struct Line {
    var slope = 0.0
    private var meanX = 0.0
    private var meanY = 0.0
    private var spread = 0.0
    private var variance = 0.0
    private let count: Double

    init(_ points: [(Double, Double)]) {
        count = Double(points.count)
        meanX = points.reduce(0) { $0 + $1.0 } / count
        meanY = points.reduce(0) { $0 + $1.1 } / count
        spread = points.reduce(0) { $0 + ($1.0 - meanX) * ($1.0 - meanX) }
        if spread > 0 { slope = points.reduce(0) { $0 + ($1.0 - meanX) * ($1.1 - meanY) } / spread }
        // With one or two stamps nothing shows how they scatter: a millisecond each.
        guard points.count > 2 else {
            variance = 1e12
            return
        }
        let squares = points.reduce(0) { $0 + pow($1.1 - value(at: $1.0), 2) }
        variance = squares / (count - 2)
    }

    func value(at x: Double) -> Double { meanY + slope * (x - meanX) }

    func deviation(at x: Double) -> Double {
        (variance * (1 / count + (spread > 0 ? (x - meanX) * (x - meanX) / spread : 0))).squareRoot()
    }

    var slopeDeviation: Double { spread > 0 ? (variance / spread).squareRoot() : 1e5 }
}

/// The middle one of some values; 0 of none.
func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}
