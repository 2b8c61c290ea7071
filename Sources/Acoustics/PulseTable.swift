internal import Glibc
internal import Protocol
internal import Synchronization

/// A chirp's pulse: its autocorrelation at the middle of its band, real and even, 1 at 0; in cells of 1/bandwidth.
struct PulseTable: Sendable {
    private static let perCell = 64.0
    private let values: [Double]

    /// A linear sweep's |S|² is what the pulse is the transform of; it is taken from the samples themselves.
    init(_ chirp: AnalyticChirp, rate: Double) {
        // 1/4 of the rate or less, mixed to 0: the pulse is smooth there, and interpolated by a sinc below.
        let reach = 260.0
        let length = (2 * chirp.count).powerOfTwoAbove
        let forward = FourierTransform(.forwardReal, length: length)
        let low = max(1, Int((chirp.middle - 0.75 * chirp.width) * Double(length) / rate))
        let high = min(length / 2, Int((chirp.middle + 0.75 * chirp.width) * Double(length) / rate) + 1)
        let bins = max(high - low, 1)
        let spectrum = chirp.conjugateSpectrum(forward, first: low, bins: bins)
        // A dense inverse: pad the bins' power to a transform whose step is 1/perCell of a cell or finer.
        let middle = chirp.middle * Double(length) / rate
        let stepsNeeded = Double(length) * Self.perCell * chirp.width / rate
        // Eight times finer than the table: a line between two points is then wrong by 1e-6.
        let size = 8 * Int(stepsNeeded.rounded(.up)).powerOfTwoAbove
        let backward = FourierTransform(.backwardComplex, length: size)
        let (input, output) = (FourierBuffer(count: 2 * size), FourierBuffer(count: 2 * size))
        var total = 0.0
        for bin in 0..<bins {
            let power = spectrum[2 * bin] * spectrum[2 * bin] + spectrum[2 * bin + 1] * spectrum[2 * bin + 1]
            input.floats[2 * bin] = power
            total += Double(power)
        }
        backward.run(input, into: output)
        // Sample n of the dense series is at n × (length / size) samples of the signal.
        let sampleStep = Double(length) / Double(size)
        let cell = rate / chirp.width
        values = (0...Int(reach * Self.perCell)).map { index in
            let position = Double(index) / Self.perCell * cell / sampleStep
            let whole = Int(position)
            guard whole + 1 < size / 2 else { return 0 }
            let value = { (n: Int) -> Double in
                let turn = 2 * Double.pi * (Double(low) - middle) * Double(n) / Double(size)
                return Double(output.floats[2 * n]) * cos(turn) - Double(output.floats[2 * n + 1]) * sin(turn)
            }
            let part = position - Double(whole)
            return (value(whole) * (1 - part) + value(whole + 1) * part) / total
        }
    }

    /// Cubic between the table's points; 0 far outside.
    subscript(_ cells: Double) -> Double {
        let x = abs(cells) * Self.perCell
        let i = Int(min(x, 1e9))
        guard i + 2 < values.count else { return 0 }
        let t = x - Double(i)
        let (a, b, c, d) = (values[i == 0 ? 1 : i - 1], values[i], values[i + 1], values[i + 2])
        return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    }
}

/// The models of one pulse, made once and shared by all who look for such a chirp.
final class FirstPathModels: Sendable {
    let coarse: FirstPathModel
    let fine: FirstPathModel
    let pulse: PulseTable

    private struct Key: Hashable {
        var width: Int
        var duration: Int
        var envelope: Int
    }

    private static let shared = Mutex<[(key: Key, models: FirstPathModels)]>([])

    private init(_ pulse: PulseTable) {
        self.pulse = pulse
        coarse = FirstPathModel(.coarse, pulse: pulse)
        fine = FirstPathModel(.fine, pulse: pulse)
    }

    /// Takes half a second the first time for a kind of chirp; the last eight kinds are kept (20 MB each).
    ///
    /// A pulse depends on bandwidth, length and ramps, and not on the band or the rate.
    static func models(_ chirp: AnalyticChirp, spec: ChirpSpec, part: ClosedRange<Double>, rate: Double)
        -> FirstPathModels
    {
        let length = spec.durationMilliseconds * (part.upperBound - part.lowerBound)
        let whole = { (x: Double) in Int(min(max(x.rounded(), -1e9), 1e9)) }
        let key = Key(
            width: whole(chirp.width / 4), duration: whole(length * 4), envelope: whole(spec.envelopeMilliseconds * 10))
        return shared.withLock { cache in
            if let known = cache.first(where: { $0.key == key }) { return known.models }
            let made = FirstPathModels(PulseTable(chirp, rate: rate))
            cache.append((key, made))
            if cache.count > 8 { cache.removeFirst() }
            return made
        }
    }
}
