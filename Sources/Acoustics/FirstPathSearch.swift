internal import Glibc

/// From the strongest path to the first one: coarsely over 26 ms, then finely.
struct FirstPathSearch {
    let window: CorrelationWindow
    let models: FirstPathModels
    /// Variance of the filter's output from noise.
    let noise: Double
    /// 1/bandwidth in samples.
    let cell: Double

    /// Position and standard deviation in samples.
    func search(from strongest: Double) -> (position: Double, deviation: Double) {
        let rough = models.coarse.shape
        let coarse = models.coarse.logPosterior(around: strongest, self)
        let best = coarse.indices.max { coarse[$0] < coarse[$1] } ?? 0
        var anchor = strongest + rough.delay(best) * cell
        var answer = fine(around: anchor)
        // At the grid's edge the anchor was off: once more from there.
        if abs(answer.position - anchor) > 0.9 * cell {
            anchor = answer.position
            answer = fine(around: anchor)
        }
        return answer
    }

    private func fine(around anchor: Double) -> (position: Double, deviation: Double) {
        let shape = models.fine.shape
        let posterior = models.fine.logPosterior(around: anchor, self)
        let peak = posterior.indices.max { posterior[$0] < posterior[$1] } ?? 0
        var (sum, mean, square) = (0.0, 0.0, 0.0)
        for (index, value) in posterior.enumerated() {
            let weight = exp(value - posterior[peak])
            sum += weight
            mean += weight * shape.delay(index)
            square += weight * shape.delay(index) * shape.delay(index)
        }
        mean /= sum
        let deviation = max(square / sum - mean * mean, 0).squareRoot()
        guard deviation < 2 * shape.step else { return (anchor + mean * cell, deviation * cell) }
        return polish(anchor, from: shape.delay(peak))
    }

    /// Where the posterior is about as narrow as the grid: a golden section between the neighbours, then its bend.
    ///
    /// A parabola through the grid's points won't do: some widths away from the peak other explanations (a weak early
    /// path, reverberation) are likelier than the right one, and flatten the flanks.
    private func polish(_ anchor: Double, from start: Double) -> (Double, Double) {
        let output = models.fine.output(around: anchor, self)
        let at = { models.fine.logPosterior(real: output.real, imaginary: output.imaginary, at: $0) }
        let golden = (5.0.squareRoot() - 1) / 2
        let step = models.fine.shape.step
        var (low, high) = (start - step, start + step)
        var (inner, outer) = (high - golden * (high - low), low + golden * (high - low))
        var (atInner, atOuter) = (at(inner), at(outer))
        for _ in 0..<13 {
            if atInner > atOuter {
                (high, outer, atOuter) = (outer, inner, atInner)
                inner = high - golden * (high - low)
                atInner = at(inner)
            } else {
                (low, inner, atInner) = (inner, outer, atOuter)
                outer = low + golden * (high - low)
                atOuter = at(outer)
            }
        }
        var center = (low + high) / 2
        var width = step / 16
        var deviation = width
        for _ in 0..<4 {
            let (left, top, right) = (at(center - width), at(center), at(center + width))
            let bend = 2 * top - left - right
            guard bend > 0 else { break }
            deviation = width / bend.squareRoot()
            center += min(max(0.5 * (right - left) / bend, -1), 1) * width
            // The bend is read best where the posterior falls by a half or so.
            if bend > 0.3, bend < 3 { break }
            width = min(max(deviation, width / 32), step)
        }
        return (anchor + center * cell, deviation * cell)
    }
}

extension FirstPathModel {
    /// The filter's output at the gate's times, in units of the noise.
    func output(around anchor: Double, _ search: FirstPathSearch) -> (real: [Double], imaginary: [Double]) {
        let scale = 1 / search.noise.squareRoot()
        var (real, imaginary): ([Double], [Double]) = ([], [])
        for time in times {
            let value = search.window.value(at: anchor + time * search.cell)
            real.append(value.real * scale)
            imaginary.append(value.imaginary * scale)
        }
        return (real, imaginary)
    }

    func logPosterior(around anchor: Double, _ search: FirstPathSearch) -> [Double] {
        let output = output(around: anchor, search)
        return logPosterior(real: output.real, imaginary: output.imaginary)
    }
}
