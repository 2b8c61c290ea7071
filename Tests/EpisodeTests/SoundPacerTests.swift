internal import Foundation
internal import TestSupport
internal import Testing

@testable internal import Episode

@Suite struct SoundPacerTests {
    /// A card that is off by so much, with stamps that jitter: the sound is led after the stamps.
    @Test(arguments: [0.0, 50, -150, 1000, -1000], [0.0, 100e-6, 500e-6])
    func drift(ppm: Double, jitter: Double) {
        var pacer = SoundPacer()
        var random = SeededGenerator(seed: 3)
        // True and led place of a block's begin in seconds.
        var (place, worst, late) = (0.0, 0.0, 0.0)
        for block in 0..<3_000 {
            let truth = Double(block) * 0.02 * (1 - ppm * 1e-6)
            let noise = jitter * (Double.random(in: -1...1, using: &random) + Double.random(in: -1...1, using: &random))
            guard case .follow(let stretch) = pacer.judge(error: truth + noise - place, length: 0.02) else {
                Issue.record("it gave up at block \(block)")
                return
            }
            worst = max(worst, abs(truth - place))
            if block > 1_000 { late = max(late, abs(truth - place)) }
            place += 0.02 * (1 + stretch)
        }
        #expect(worst < 0.001 + jitter)
        // 10.9 µs at 1000 ppm.
        #expect(late < 1.5e-5 + jitter * 0.3)
        #expect(abs(-pacer.skew * 1e6 - ppm) < 1 + jitter * 1e4)
    }

    /// What is too far off is no drift.
    @Test(arguments: [0.011, -0.011, 5, .nan, .infinity])
    func leaps(error: Double) {
        var pacer = SoundPacer()
        #expect(pacer.judge(error: error, length: 0.02) == .move)
        #expect(pacer.skew == 0)
    }
}

@Suite struct SincResamplerTests {
    /// A sine through the resampler, and what is left of it beside the sine that it should be.
    private func through(_ frequency: Double, rate: Double, ratio: Double, stretch: Double) -> (
        gain: Double, rest: Double
    ) {
        var resampler = SincResampler(channels: 1, ratio: ratio)
        let step = 1 / (ratio * (1 + stretch))
        let input = (0..<Int(rate / 2)).map { Float(sin(2 * Double.pi * frequency * Double($0) / rate)) }
        resampler.restart(offset: 0)
        var output: [[Float]] = [[]]
        for begin in stride(from: 0, to: input.count, by: 960) {
            resampler.push([Array(input[begin..<min(begin + 960, input.count)])])
            _ = resampler.pull(step: step, into: &output)
        }
        // Away from both ends: the part that is the sine of the right phase, and the remainder.
        let range = 200..<output[0].count - 200
        let (angle, count) = (2 * Double.pi * frequency * step / rate, Double(range.count))
        // Least squares, since the range has no whole number of periods.
        var (ss, sc, cc, sy, cy) = (0.0, 0.0, 0.0, 0.0, 0.0)
        for index in range {
            let (s, c, y) = (sin(angle * Double(index)), cos(angle * Double(index)), Double(output[0][index]))
            (ss, sc, cc) = (ss + s * s, sc + s * c, cc + c * c)
            (sy, cy) = (sy + s * y, cy + c * y)
        }
        let determinant = ss * cc - sc * sc
        let (a, b) = ((sy * cc - cy * sc) / determinant, (cy * ss - sy * sc) / determinant)
        var rest = 0.0
        for index in range {
            let model = a * sin(angle * Double(index)) + b * cos(angle * Double(index))
            rest += pow(Double(output[0][index]) - model, 2) / count
        }
        // The phase is right to a thousandth of a radian.
        #expect(abs(atan2(b, a)) < 1e-3)
        return (20 * log10(hypot(a, b)), 10 * log10(rest / 0.5))
    }

    @Test(arguments: [100.0, 1_000, 17_000, 19_000])
    func itIsFlatAndClean(frequency: Double) {
        for (rate, ratio) in [(48_000.0, 1.0), (96_000, 0.5)] {
            for stretch in [0.0, 37e-6, -1e-3] {
                let (gain, rest) = through(frequency, rate: rate, ratio: ratio, stretch: stretch)
                #expect(abs(gain) < 0.1, "\(frequency) Hz at \(rate): \(gain) dB")
                #expect(rest < -70, "\(frequency) Hz at \(rate): \(rest) dB")
            }
        }
    }

    /// What lies above the new band is kept out of it: 30 kHz of 96 kHz would be 18 kHz of 48 kHz.
    @Test func itKeepsTheHighOut() {
        var resampler = SincResampler(channels: 1, ratio: 0.5)
        resampler.push([(0..<48_000).map { Float(sin(2 * Double.pi * 30_000 * Double($0) / 96_000)) }])
        var output: [[Float]] = [[]]
        _ = resampler.pull(step: 2, into: &output)
        let power = output[0][200...].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(output[0].count - 200)
        #expect(10 * log10(power / 0.5) < -70)
    }
}
