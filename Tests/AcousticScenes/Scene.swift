internal import Acoustics
internal import Glibc
package import Protocol
package import TestSupport

extension SeededGenerator {
    /// Normal with variance 1, by Box and Muller.
    package mutating func normal() -> Double {
        let (u, v) = (
            Double.random(in: Double.leastNonzeroMagnitude..<1, using: &self), Double.random(in: 0..<1, using: &self)
        )
        return (-2 * log(u)).squareRoot() * cos(2 * Double.pi * v)
    }
}

/// What a microphone records, made from formulas.
package enum Scene {
    /// A chirp that begins at a broken sample, as a card records it.
    ///
    /// `stretch` is the microphone's rate over the speaker's: each sample of the speaker lasts so many of the recording's.
    package static func chirp(
        _ spec: ChirpSpec, rate: Double, at place: Double, count: Int, stretch: Double = 1
    ) -> [Float] {
        var result = [Float](repeating: 0, count: count)
        let (duration, envelope) = (spec.durationMilliseconds / 1000, spec.envelopeMilliseconds / 1000)
        let slope = (spec.toHz - spec.fromHz) / duration
        let first = max(0, Int(place.rounded(.up)))
        let last = min(count, Int((place + duration * rate * stretch).rounded(.up)))
        guard first < last else { return result }
        for index in first..<last {
            let t = (Double(index) - place) / rate / stretch
            guard t > 0, t < duration else { continue }
            let edge = min(t, duration - t) / envelope
            let gain = edge < 1 ? 0.5 * (1 - cos(Double.pi * edge)) : 1
            result[index] = Float(spec.amplitude * gain * sin(2 * Double.pi * (spec.fromHz * t + slope * t * t / 2)))
        }
        return result
    }

    /// Adds white noise of a standard deviation.
    package static func addNoise(_ deviation: Double, to signal: inout [Float], _ random: inout SeededGenerator) {
        for index in signal.indices { signal[index] += Float(deviation * random.normal()) }
    }

    /// Mean square over a range.
    package static func power(_ signal: [Float], _ range: Range<Int>) -> Double {
        let range = range.clamped(to: 0..<signal.count)
        guard !range.isEmpty else { return 0 }
        return signal[range].reduce(0) { $0 + Double($1) * Double($1) } / Double(range.count)
    }

    /// The convolution, as long as the signal.
    package static func convolve(_ signal: [Float], _ response: [Float]) -> [Float] {
        var length = 2
        while length < signal.count + response.count { length <<= 1 }
        let (forward, backward) = (
            FourierTransform(.forwardReal, length: length), FourierTransform(.backwardReal, length: length)
        )
        let (input, a, b) = (
            FourierBuffer(count: length), FourierBuffer(count: length + 2), FourierBuffer(count: length + 2)
        )
        for (values, output) in [(signal, a), (response, b)] {
            for i in 0..<length { input.floats[i] = i < values.count ? values[i] : 0 }
            forward.run(input, into: output)
        }
        for bin in 0...length / 2 {
            let (re, im) = (a.floats[2 * bin], a.floats[2 * bin + 1])
            let (c, d) = (b.floats[2 * bin], b.floats[2 * bin + 1])
            a.floats[2 * bin] = re * c - im * d
            a.floats[2 * bin + 1] = re * d + im * c
        }
        backward.run(a, into: input)
        return (0..<signal.count).map { input.floats[$0] / Float(length) }
    }

    /// The bound of Cramér and Rao for an arrival with an unknown phase, seconds.
    ///
    /// 1 / (2π · β · √(E/N₀ · 2)) with β² the variance of the frequency over the chirp's |s|², both sides counted: for a
    /// linear sweep the frequency at t is its own, so β² is the variance of f(t) weighted by the envelope's square.
    package static func bound(_ spec: ChirpSpec, rate: Double, snr: Double) -> Double {
        let count = Int(spec.durationMilliseconds / 1000 * rate)
        let ramp = spec.envelopeMilliseconds / 1000 * rate
        var (weights, mean, square) = (0.0, 0.0, 0.0)
        for i in 0..<count {
            let edge = min(Double(i), Double(count - 1 - i)) / ramp
            let gain = edge < 1 ? 0.5 * (1 - cos(Double.pi * edge)) : 1
            let f = spec.fromHz + (spec.toHz - spec.fromHz) * Double(i) / Double(count)
            weights += gain * gain
            mean += gain * gain * f
            square += gain * gain * f * f
        }
        let variance = square / weights - (mean / weights) * (mean / weights)
        // snr is the mean power over the whole chirp against the variance of a sample: E/(N₀/2) = snr × count.
        return 1 / (2 * Double.pi * variance.squareRoot() * (snr * Double(count)).squareRoot())
    }
}
