/// Picks the highest values of a long series that are at least some samples apart, with as much look-ahead.
struct PeakPicker {
    let template: Int
    let decimation: Int
    let separation: Int
    /// Index of the first value that isn't judged yet.
    private var next = 0
    private var best: (index: Int, value: Float)?
    /// The values beside the best one, for the parabola.
    private var sides: (left: Float, right: Float) = (0, 0)
    private var last: Float = 0
    private var done: [MatchedFilter.Candidate] = []
    private var floor: Float = 0.001

    init(template: Int, decimation: Int, separation: Int) {
        self.template = template
        self.decimation = decimation
        self.separation = max(separation, 1)
    }

    mutating func append(_ value: Float) {
        if let held = best {
            if next == held.index + 1 { sides.right = value }
            if value > held.value {
                best = (next, value)
                sides = (last, 0)
            } else if next - held.index >= separation {
                settle(held)
            }
        } else if value > floor {
            best = (next, value)
            sides = (last, 0)
        }
        last = value
        next += 1
    }

    /// The peaks that are settled, above a threshold.
    mutating func take(_ threshold: Double) -> [MatchedFilter.Candidate] {
        defer { done.removeAll(keepingCapacity: true) }
        return done.filter { $0.correlation >= threshold }
    }

    mutating func finish(_ threshold: Double) -> [MatchedFilter.Candidate] {
        if let held = best { settle(held) }
        return take(threshold)
    }

    private mutating func settle(_ held: (index: Int, value: Float)) {
        let (left, middle, right) = (Double(sides.left), Double(held.value), Double(sides.right))
        let bend = left - 2 * middle + right
        let shift = bend < 0 ? min(max(0.5 * (left - right) / bend, -0.5), 0.5) : 0
        done.append(
            MatchedFilter.Candidate(
                template: template, position: (Double(held.index) + shift) * Double(decimation),
                correlation: middle))
        best = nil
    }
}
