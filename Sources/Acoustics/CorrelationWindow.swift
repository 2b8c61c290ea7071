internal import Glibc

/// The matched filter's output around one place, kept as the bins of its band so that it is exact at any delay.
///
/// Its unit is the template's amplitude: a path of amplitude a gives a/2 (a real signal's one-sided half).
struct CorrelationWindow {
    /// Variance of the output from noise alone, measured before the chirp in its own band.
    private(set) var noise = 0.0
    private var real: [Double] = []
    private var imaginary: [Double] = []
    /// Frequencies of the bins, radians a sample, from the middle of the band.
    private var firstTurn = 0.0
    private let turnStep: Double
    private let origin: Int
    private let center: Int
    private let energyOfSignal: Double
    private let energy: Double
    private let cell: Double

    init(
        _ signal: [Float], _ chirp: AnalyticChirp, rate: Double, around center: Int, reach: Int,
        noiseGain: Double = 1
    ) {
        // The coarse gate looks back by 56 cells.
        let margin = max(Int(0.06 * rate), Int(62 * rate / chirp.width)) + reach
        let span = chirp.count + 2 * margin
        let length = span.powerOfTwoAbove
        let forward = FourierTransform(.forwardReal, length: length)
        let (input, output) = (FourierBuffer(count: length), FourierBuffer(count: length + 2))
        self.center = center
        origin = center - margin
        energy = chirp.energy
        cell = rate / chirp.width
        for i in 0..<span where origin + i >= 0 && origin + i < signal.count {
            let x = signal[origin + i]
            input.floats[i] = x.isFinite ? x : 0
        }
        forward.run(input, into: output)
        // A little more than the band: the ramps widen the sweep's spectrum.
        let side = 0.06 * chirp.width + 80
        let low = max(1, Int((chirp.middle - chirp.width / 2 - side) * Double(length) / rate))
        let high = max(low + 1, min(length / 2, Int((chirp.middle + chirp.width / 2 + side) * Double(length) / rate)))
        let conjugate = chirp.conjugateSpectrum(forward, first: low, bins: high - low)
        let scale = 1 / (Double(length) * chirp.energy)
        var inBand = 0.0
        for bin in 0..<high - low {
            let (a, b) = (Double(output.floats[2 * (low + bin)]), Double(output.floats[2 * (low + bin) + 1]))
            let (c, d) = (Double(conjugate[2 * bin]), Double(conjugate[2 * bin + 1]))
            real.append((a * c - b * d) * scale)
            imaginary.append((a * d + b * c) * scale)
            inBand += a * a + b * b
        }
        energyOfSignal = inBand / Double(length)
        turnStep = 2 * Double.pi / Double(length)
        firstTurn = turnStep * (Double(low) - chirp.middle * Double(length) / rate)
        noise = Self.noise(
            signal, before: center - reach - Int(0.03 * rate), rate: rate, band: (chirp.middle, chirp.width))
        noise *= noiseGain / chirp.energy
        // A codec's noise is there only with the chirp: so the output just before is looked at as well.
        let precursor = precursor(rate: rate)
        if noise <= 0 || precursor > 1.5 * noise { noise = precursor }
    }

    /// The output at a position of the signal, in samples.
    func value(at position: Double) -> (real: Double, imaginary: Double) {
        let x = position - Double(origin)
        let (turnRe, turnIm) = (cos(turnStep * x), sin(turnStep * x))
        var (re, im) = (cos(firstTurn * x), sin(firstTurn * x))
        var (sumRe, sumIm) = (0.0, 0.0)
        for bin in real.indices {
            sumRe += real[bin] * re - imaginary[bin] * im
            sumIm += real[bin] * im + imaginary[bin] * re
            (re, im) = (re * turnRe - im * turnIm, re * turnIm + im * turnRe)
        }
        return (sumRe, sumIm)
    }

    func power(at position: Double) -> Double {
        let (re, im) = value(at: position)
        return re * re + im * im
    }

    /// The largest power within reach of the center, by steps of a fifth of a cell and a parabola.
    func strongest(reach: Int) -> (position: Double, power: Double)? {
        let step = cell / 5
        let steps = Int((Double(reach) / step).rounded(.up))
        var best = (position: Double(center), power: 0.0)
        for index in -steps...steps {
            let position = Double(center) + Double(index) * step
            let power = power(at: position)
            if power > best.power { best = (position, power) }
        }
        guard best.power > 1e-30 else { return nil }
        let (left, right) = (power(at: best.position - step), power(at: best.position + step))
        let bend = left - 2 * best.power + right
        guard bend < 0 else { return best }
        let shift = min(max(0.5 * (left - right) / bend, -1), 1)
        let refined = best.position + shift * step
        return (refined, max(power(at: refined), best.power))
    }

    /// ρ² of a path: the window is a little longer than the chirp, so it says a little less than the detector.
    func correlation(at position: Double, power: Double) -> Double {
        energyOfSignal > 0 ? min(power * energy / energyOfSignal, 1) : 0
    }

    /// The spectral density in a band before a place: the variance that a template of energy 1 sees.
    private static func noise(
        _ signal: [Float], before end: Int, rate: Double, band: (middle: Double, width: Double)
    ) -> Double {
        let end = min(end, signal.count)
        let start = max(0, end - Int(0.25 * rate))
        guard end - start >= Int(0.03 * rate) else { return 0 }
        let count = end - start
        let length = count.powerOfTwoAbove
        let forward = FourierTransform(.forwardReal, length: length)
        let (input, output) = (FourierBuffer(count: length), FourierBuffer(count: length + 2))
        var weights = 0.0
        for i in 0..<count {
            let weight = 0.5 - 0.5 * cos(2 * Double.pi * (Double(i) + 0.5) / Double(count))
            weights += weight * weight
            input.floats[i] = (signal[start + i].isFinite ? signal[start + i] : 0) * Float(weight)
        }
        forward.run(input, into: output)
        let low = max(1, Int((band.middle - band.width / 2) * Double(length) / rate))
        let high = max(low + 1, min(length / 2, Int((band.middle + band.width / 2) * Double(length) / rate)))
        var sum = 0.0
        for bin in low..<high {
            let (a, b) = (Double(output.floats[2 * bin]), Double(output.floats[2 * bin + 1]))
            sum += a * a + b * b
        }
        return sum / Double(high - low) / weights
    }

    /// The output's mean power over the stretch of 26 ms that ends `reach` and 34 ms before the center.
    ///
    /// The chirp's own sidelobes are over there: its ramps let them fall fast beyond 1/60 Hz.
    private func precursor(rate: Double) -> Double {
        var sum = 0.0
        for index in 0..<52 { sum += power(at: Double(origin) + (Double(index) + 0.5) * 0.0005 * rate) }
        return sum / 52
    }
}
