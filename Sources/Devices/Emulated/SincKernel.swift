internal import Glibc

/// Values between samples: a Blackman-windowed sinc, tabulated over the fraction of a sample.
///
/// 48 taps keep the passband flat (below 0.01 dB) up to 0.88 of the Nyquist frequency, where 19 kHz lies at 44.1 kHz;
/// straight lines between the samples would take 5 dB off there. The table has 2048 fractions: the nearest one is at
/// most 5 ns off at 48 kHz.
struct SincKernel: Sendable {
    /// Even.
    let taps: Int
    private let phases: Int
    private let table: [Float]

    /// The kernel for reading a sound at its own or a higher rate.
    static let full = SincKernel(cutoff: 1)

    /// - Parameter cutoff: the end of the passband as a part of the source's Nyquist frequency, above 0 and at most 1.
    init(cutoff: Double) {
        let cutoff = min(max(cutoff, 1.0 / 32), 1)
        let half = Int((24 / cutoff).rounded(.up))
        taps = 2 * half
        phases = max(64, 2048 * 48 / taps)
        var table = [Float](repeating: 0, count: taps * phases)
        for phase in 0..<phases {
            let fraction = Double(phase) / Double(phases)
            for tap in 0..<taps {
                let x = Double(tap - half + 1) - fraction
                let turn = cos(Double.pi * x / Double(half))
                let window = abs(x) < Double(half) ? 0.42 + 0.5 * turn + 0.08 * (2 * turn * turn - 1) : 0
                let argument = Double.pi * cutoff * x
                let sinc = abs(argument) < 1e-9 ? 1 : sin(argument) / argument
                table[phase * taps + tap] = Float(cutoff * sinc * window)
            }
        }
        self.table = table
    }

    /// Adds a stretch of a sound, resampled, to an output.
    ///
    /// - Parameters:
    ///   - source: the sound, with `taps` zeros before and behind it.
    ///   - position: where in the sound (without its zeros) output `range.lowerBound` lies; may be negative.
    ///   - step: source samples for each output sample.
    ///   - gain: a factor.
    ///   - output: is added to.
    ///   - range: of the output; positions outside of the sound add nothing.
    func add(
        _ source: [Float], from position: Double, step: Double, gain: Float, to output: inout [Float],
        _ range: Range<Int>
    ) {
        let last = source.count - taps
        table.withUnsafeBufferPointer { table in
            source.withUnsafeBufferPointer { source in
                for (count, index) in range.enumerated() {
                    let place = position + Double(count) * step
                    let below = place.rounded(.down)
                    var phase = Int(((place - below) * Double(phases)).rounded())
                    var first = Int(below) + taps / 2 + 1
                    if phase == phases { (phase, first) = (0, first + 1) }
                    guard first >= 0, first <= last else { continue }
                    let row = phase * taps
                    var sum: Float = 0
                    for tap in 0..<taps { sum += table[row + tap] * source[first + tap] }
                    output[index] += gain * sum
                }
            }
        }
    }
}
