internal import Glibc
internal import Synchronization

/// The likelihood of what a matched filter puts out around a first arrival, for many delays of it at once.
///
/// The output, in units of its noise, is taken as a sum of three zero-mean normal parts: the noise, whose covariance is
/// the chirp's own pulse; the direct path, a pulse of unknown complex amplitude at the delay τ; and reverberation, that
/// begins some time after τ and decays. Everything before τ is noise alone, which is what makes the direct path
/// findable even where an echo inside the pulse's width is stronger. The unknown levels (power of the direct path,
/// of the reverberation, its decay, its onset) are integrated over a grid, so what is left is a posterior for τ, with
/// its width. All lengths are in cells of 1/bandwidth, so that one model serves all rates.
final class FirstPathModel: Sendable {
    struct Shape: Hashable, Sendable {
        /// Ends of the gate that is looked at, in cells from its anchor.
        var before: Double
        var after: Double
        /// The delays: first, step, how many; cells from the anchor.
        var first: Double
        var step: Double
        var steps: Int
        /// Reverberation: levels in dB of a cell's power over the noise, decays (e-fold) and onsets in cells.
        var levels: [Double]
        var decays: [Double]
        var onsets: [Double]

        /// Looks back by far, for the first path before a stronger echo: 26 ms before the strongest at 2 kHz.
        static let coarse = Shape(
            before: 56, after: 8, first: -52, step: 0.5, steps: 107, levels: [0, 10, 20, 30, 40, 50, 60],
            decays: [60], onsets: [0])
        /// ±0.6 ms at 2 kHz, by 10 µs.
        static let fine = Shape(
            before: 6, after: 10, first: -1.2, step: 0.02, steps: 121,
            levels: [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60], decays: [30, 86], onsets: [0, 0.8, 1.6])

        func delay(_ index: Int) -> Double { first + step * Double(index) }
    }

    /// Samples of the gate are this far apart, cells: a little closer than the band needs.
    static let spacing = 1 / 1.2
    /// Powers of the direct path over the noise, dB.
    static let powers = stride(from: 5.0, through: 83, by: 3).map { pow(10, $0 / 10) }
    /// The direct path's power over that of a cell of reverberation: in a hall, the far end is at about 1.
    static let ratios = 0.3...3e4

    let shape: Shape
    /// Times of the gate's samples, cells from the anchor.
    let times: [Double]
    private let pulse: PulseTable
    private let hypotheses: Int
    /// For each delay and hypothesis: L⁻¹ in rows (lower triangle), L⁻¹p, log det.
    private let inverses: [Float]
    private let whitened: [Float]
    private let determinants: [Float]
    private let energies: [Float]
    /// Level of the reverberation of each hypothesis; 0 for none.
    private let levels: [Double]

    init(_ shape: Shape, pulse: PulseTable) {
        self.shape = shape
        self.pulse = pulse
        let low = -Int((shape.before / Self.spacing).rounded())
        let high = Int((shape.after / Self.spacing).rounded())
        times = (low...high).map { Double($0) * Self.spacing }
        var levels = [0.0]
        for _ in shape.decays { for _ in shape.onsets { levels += shape.levels.map { pow(10, $0 / 10) } } }
        self.levels = levels
        hypotheses = levels.count
        let (m, triangle) = (times.count, times.count * (times.count + 1) / 2)
        var inverses: [Float] = []
        inverses.reserveCapacity(shape.steps * hypotheses * triangle)
        var (whitened, determinants, energies): ([Float], [Float], [Float]) = ([], [], [])
        for index in 0..<shape.steps {
            for covariance in Self.covariances(shape, pulse, times, at: shape.delay(index)) {
                let factor = Triangular(covariance, order: m)
                inverses += factor.inverse.map { Float($0) }
                let direct = factor.apply(times.map { pulse[$0 - shape.delay(index)] })
                whitened += direct.map { Float($0) }
                energies.append(Float(direct.reduce(0) { $0 + $1 * $1 }))
                determinants.append(Float(factor.logDeterminant))
            }
        }
        (self.inverses, self.whitened) = (inverses, whitened)
        (self.determinants, self.energies) = (determinants, energies)
    }

    /// The covariance of noise and reverberation for each hypothesis, row by row.
    private static func covariances(
        _ shape: Shape, _ pulse: PulseTable, _ times: [Double], at delay: Double
    ) -> [[Double]] {
        let m = times.count
        var noise = [Double](repeating: 0, count: m * m)
        for i in 0..<m { for j in 0..<m { noise[i * m + j] = pulse[times[i] - times[j]] + (i == j ? 1e-6 : 0) } }
        var all = [noise]
        for decay in shape.decays {
            for onset in shape.onsets {
                let unit = reverberation(shape, pulse, times, from: delay + onset, decay: decay)
                for level in shape.levels {
                    let power = pow(10, level / 10)
                    var sum = noise
                    for i in 0..<m * m { sum[i] += power * unit[i] }
                    all.append(sum)
                }
            }
        }
        return all
    }

    /// ∫ e^(−u/decay) p(t − start − u) p(t′ − start − u) du: a power of 1 in the first cell.
    private static func reverberation(
        _ shape: Shape, _ pulse: PulseTable, _ times: [Double], from start: Double, decay: Double
    ) -> [Double] {
        let m = times.count
        var sum = [Double](repeating: 0, count: m * m)
        var row = [Double](repeating: 0, count: m)
        // Finely where the gate is, coarsely where only sidelobes of later echoes reach into it.
        let near = max(shape.after - start, 0) + 6
        var u = 0.0
        while u < 180 {
            let width = u < near ? 0.25 : 1.0
            let weight = (width * exp(-(u + width / 2) / decay)).squareRoot()
            for i in 0..<m { row[i] = weight * pulse[times[i] - start - u - width / 2] }
            for i in 0..<m where row[i] != 0 {
                let x = row[i]
                for j in 0...i { sum[i * m + j] += x * row[j] }
            }
            u += width
        }
        for i in 0..<m { for j in 0..<i { sum[j * m + i] = sum[i * m + j] } }
        return sum
    }

    /// log of the posterior (up to a constant) for each delay of the shape; and the likeliest hypothesis there.
    ///
    /// `real` and `imaginary` are the filter's output at `times`, in units of the noise's standard deviation.
    func logPosterior(real: [Double], imaginary: [Double]) -> [Double] {
        let m = times.count
        let triangle = m * (m + 1) / 2
        let (re, im) = (real.map { Float($0) }, imaginary.map { Float($0) })
        var result: [Double] = []
        var at = 0
        inverses.withUnsafeBufferPointer { inverses in
            for _ in 0..<shape.steps {
                var sum = LogSum()
                for hypothesis in 0..<hypotheses {
                    var (power, dotRe, dotIm): (Double, Double, Double) = (0, 0, 0)
                    var element = at * triangle
                    for i in 0..<m {
                        var (zRe, zIm): (Float, Float) = (0, 0)
                        for j in 0...i {
                            let w = inverses[element + j]
                            zRe += w * re[j]
                            zIm += w * im[j]
                        }
                        element += i + 1
                        let v = whitened[at * m + i]
                        power += Double(zRe * zRe + zIm * zIm)
                        dotRe += Double(zRe * v)
                        dotIm += Double(zIm * v)
                    }
                    add(
                        to: &sum, level: levels[hypothesis], base: -power - 2 * Double(determinants[at]) / 2,
                        match: dotRe * dotRe + dotIm * dotIm, energy: Double(energies[at]))
                    at += 1
                }
                result.append(sum.value)
            }
        }
        return result
    }

    /// Integrates over the direct path's power.
    private func add(to sum: inout LogSum, level: Double, base: Double, match: Double, energy: Double) {
        var allowed = 0
        for power in Self.powers where level == 0 || Self.ratios.contains(power / level) { allowed += 1 }
        guard allowed > 0 else { return }
        let prior = -log(Double(allowed))
        for power in Self.powers where level == 0 || Self.ratios.contains(power / level) {
            let gain = 1 + power * energy
            sum.add(base + prior + power * match / gain - log(gain))
        }
    }

    /// The posterior at one delay that isn't on the grid, under the hypotheses near to a given level.
    ///
    /// For what is far sharper than the grid: the covariances are made anew.
    func logPosterior(real: [Double], imaginary: [Double], at delay: Double) -> Double {
        let m = times.count
        let direct = times.map { pulse[$0 - delay] }
        var sum = LogSum()
        let covariances = Self.covariances(shape, pulse, times, at: delay)
        for (hypothesis, covariance) in covariances.enumerated() {
            let factor = Triangular(covariance, order: m)
            let (zRe, zIm, v) = (factor.apply(real), factor.apply(imaginary), factor.apply(direct))
            var (power, dotRe, dotIm, energy) = (0.0, 0.0, 0.0, 0.0)
            for i in 0..<m {
                power += zRe[i] * zRe[i] + zIm[i] * zIm[i]
                dotRe += zRe[i] * v[i]
                dotIm += zIm[i] * v[i]
                energy += v[i] * v[i]
            }
            add(
                to: &sum, level: levels[hypothesis], base: -power - factor.logDeterminant,
                match: dotRe * dotRe + dotIm * dotIm, energy: energy)
        }
        return sum.value
    }
}

/// log Σ exp, one by one.
struct LogSum {
    private var top = -Double.infinity
    private var sum = 0.0
    var value: Double { sum > 0 ? top + log(sum) : -.infinity }

    mutating func add(_ x: Double) {
        guard x > top else {
            if x - top > -40 { sum += exp(x - top) }
            return
        }
        sum = sum * exp(top - x) + 1
        top = x
    }
}

/// The Cholesky factor of a positive definite matrix, inverted.
struct Triangular {
    /// L⁻¹, rows of the lower triangle one after the other.
    let inverse: [Double]
    /// log det of the matrix.
    let logDeterminant: Double
    private let order: Int

    init(_ matrix: [Double], order m: Int) {
        order = m
        var l = matrix
        var log2 = 0.0
        l.withUnsafeMutableBufferPointer { l in
            for j in 0..<m {
                for i in j..<m {
                    var sum = l[i * m + j]
                    for k in 0..<j { sum -= l[i * m + k] * l[j * m + k] }
                    l[i * m + j] = i == j ? max(sum, 1e-12).squareRoot() : sum / l[j * m + j]
                }
                log2 += log(l[j * m + j])
            }
        }
        logDeterminant = 2 * log2
        var inverse = [Double](repeating: 0, count: m * (m + 1) / 2)
        inverse.withUnsafeMutableBufferPointer { inverse in
            l.withUnsafeBufferPointer { l in
                for i in 0..<m {
                    let row = i * (i + 1) / 2
                    for k in 0..<i {
                        let (factor, other) = (l[i * m + k], k * (k + 1) / 2)
                        for j in 0...k { inverse[row + j] -= factor * inverse[other + j] }
                    }
                    inverse[row + i] = 1
                    let scale = 1 / l[i * m + i]
                    for j in 0...i { inverse[row + j] *= scale }
                }
            }
        }
        self.inverse = inverse
    }

    /// L⁻¹ x.
    func apply(_ x: [Double]) -> [Double] {
        var result = [Double](repeating: 0, count: order)
        var element = 0
        for i in 0..<order {
            var sum = 0.0
            for j in 0...i { sum += inverse[element + j] * x[j] }
            element += i + 1
            result[i] = sum
        }
        return result
    }
}
