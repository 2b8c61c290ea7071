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
        return polish(anchor, from: shape.delay(peak), posterior[peak])
    }

    /// Where the posterior is about as narrow as the grid: parabolas through ever closer points of it.
    private func polish(_ anchor: Double, from start: Double, _ value: Double) -> (Double, Double) {
        let output = models.fine.output(around: anchor, self)
        let at = { models.fine.logPosterior(real: output.real, imaginary: output.imaginary, at: $0) }
        var (center, top, step) = (start, at(start), models.fine.shape.step)
        var deviation = step
        for _ in 0..<5 {
            let (left, right) = (at(center - step), at(center + step))
            let bend = left - 2 * top + right
            guard bend < 0 else { break }
            let shift = min(max(0.5 * (left - right) / bend, -1), 1)
            deviation = step / (-bend).squareRoot()
            center += shift * step
            top = at(center)
            let next = min(step, max(deviation, step / 16))
            if abs(shift) * step < 0.05 * deviation && next >= step * 0.5 { break }
            step = next
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
