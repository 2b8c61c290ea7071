internal import Glibc

/// A signal mixed down by a frequency, averaged over and decimated to every `decimation`-th sample: complex, slow, cheap.
struct Baseband: Sendable {
    private(set) var real: [Double] = []
    private(set) var imaginary: [Double] = []
    /// Sums of |x|² up to each index, so that the energy of any stretch is one subtraction.
    private var energyBefore: [Double] = [0]

    init(_ signal: ArraySlice<Float>, frequency: Double, rate: Double, decimation: Int) {
        let step = -2 * Double.pi * frequency / rate
        let (turnReal, turnImaginary) = (cos(step), sin(step))
        var index = signal.startIndex
        while index + decimation <= signal.endIndex {
            // The rotor is set anew for each block, so that its rounding can't grow.
            let start = step * Double(index - signal.startIndex)
            var (rotorReal, rotorImaginary) = (cos(start), sin(start))
            var (sumReal, sumImaginary) = (0.0, 0.0)
            for x in signal[index..<index + decimation] {
                sumReal += Double(x) * rotorReal
                sumImaginary += Double(x) * rotorImaginary
                (rotorReal, rotorImaginary) = (
                    rotorReal * turnReal - rotorImaginary * turnImaginary,
                    rotorReal * turnImaginary + rotorImaginary * turnReal
                )
            }
            real.append(sumReal)
            imaginary.append(sumImaginary)
            energyBefore.append(energyBefore[energyBefore.count - 1] + sumReal * sumReal + sumImaginary * sumImaginary)
            index += decimation
        }
    }

    /// The normalised correlation of this, as the template, with the stretch of `other` that begins at `lag`.
    ///
    /// A stretch that runs out of `other` is compared with the part that is there, against the whole template's energy.
    func match(in other: Baseband, at lag: Int) -> Double {
        let count = min(real.count, other.real.count - lag)
        guard count > 0 else { return 0 }
        let energy = (other.energyBefore[lag + count] - other.energyBefore[lag]) * energyBefore[real.count]
        guard energy > 1e-30 else { return 0 }
        var (sumReal, sumImaginary) = (0.0, 0.0)
        for i in 0..<count {
            let (a, b) = (other.real[lag + i], other.imaginary[lag + i])
            sumReal += a * real[i] + b * imaginary[i]
            sumImaginary += b * real[i] - a * imaginary[i]
        }
        return ((sumReal * sumReal + sumImaginary * sumImaginary) / energy).squareRoot()
    }
}
