/// All lines `offset + skew × age` that no observation rules out: a convex polygon in the plane of offset and skew.
///
/// It begins as a rectangle, and each observation cuts off the half-plane which it rules out. Offsets are in ns, skews in
/// ns per second, ages in seconds.
struct FeasibleLines: Sendable {
    struct Corner: Sendable {
        var offset: Double
        var skew: Double
    }

    /// In order around the polygon; empty when the observations contradict each other.
    private(set) var corners: [Corner]

    init(offsets: ClosedRange<Double>, skews: ClosedRange<Double>) {
        corners = [
            Corner(offset: offsets.lowerBound, skew: skews.lowerBound),
            Corner(offset: offsets.upperBound, skew: skews.lowerBound),
            Corner(offset: offsets.upperBound, skew: skews.upperBound),
            Corner(offset: offsets.lowerBound, skew: skews.upperBound),
        ]
    }

    var isEmpty: Bool { corners.isEmpty }

    /// The least and the greatest skew.
    var skews: ClosedRange<Double>? { range { $0.skew } }

    /// The least and the greatest offset at an age.
    func offsets(atAge age: Double) -> ClosedRange<Double>? { range { $0.offset + $0.skew * age } }

    /// Rules out the lines that lie above a value at an age.
    mutating func require(atMost limit: Double, at age: Double) { cut(limit, -1, -age) }

    /// Rules out the lines that lie below a value at an age.
    mutating func require(atLeast limit: Double, at age: Double) { cut(-limit, 1, age) }

    /// Keeps the part where `constant + perOffset × offset + perSkew × skew` is not negative (Sutherland and Hodgman's
    /// clipping).
    private mutating func cut(_ constant: Double, _ perOffset: Double, _ perSkew: Double) {
        func room(_ corner: Corner) -> Double { constant + perOffset * corner.offset + perSkew * corner.skew }
        // Most observations say nothing new: then nothing is copied.
        guard let last = corners.last, corners.contains(where: { room($0) < 0 }) else { return }
        var previous = last
        var previousRoom = room(previous)
        var kept: [Corner] = []
        kept.reserveCapacity(corners.count + 1)
        for corner in corners {
            let cornerRoom = room(corner)
            if (previousRoom >= 0) != (cornerRoom >= 0) {
                let part = previousRoom / (previousRoom - cornerRoom)
                kept.append(
                    Corner(
                        offset: previous.offset + part * (corner.offset - previous.offset),
                        skew: previous.skew + part * (corner.skew - previous.skew)))
            }
            if cornerRoom >= 0 { kept.append(corner) }
            (previous, previousRoom) = (corner, cornerRoom)
        }
        corners = kept
    }

    private func range(_ value: (Corner) -> Double) -> ClosedRange<Double>? {
        guard let first = corners.first.map(value) else { return nil }
        var (low, high) = (first, first)
        for corner in corners.dropFirst() {
            low = min(low, value(corner))
            high = max(high, value(corner))
        }
        return low...high
    }
}
