internal import Glibc
internal import Protocol

/// How strong a chirp is along its length: which part of it is there, and what an automatic gain did to it.
///
/// A sweep's time is its frequency, so a gain that falls by 12 dB on the way is a tilt of its spectrum, which bends the
/// pulse and looks like a path of its own. The tilt is taken out of the signal before it is measured; what is left of it
/// widens the uncertainty (`ArrivalEstimator.unevenDistortion`).
struct ChirpProfile {
    private static let pieces = 16
    /// The part that is heard, in whole sixteenths.
    private(set) var part: ClosedRange<Double>
    /// Whether the level rises or falls by more than 8 dB along the part: a room ripples, but doesn't tilt so much.
    private(set) var isUneven = false
    private let start: Int
    /// dB from the chirp's begin to its end.
    private var slope = 0.0

    /// The chirp begins at `start`; `part` is what the recording's ends leave of it.
    init(_ signal: [Float], _ chirp: AnalyticChirp, at start: Int, within part: ClosedRange<Double>) {
        self.part = part
        self.start = start
        let low = Int((part.lowerBound * Double(Self.pieces)).rounded())
        let high = Int((part.upperBound * Double(Self.pieces)).rounded())
        guard high - low >= 4 else { return }
        let powers = (low..<high).map { Self.power(signal, chirp, start, piece: $0) }
        let strong = powers.sorted()[powers.count * 7 / 8]
        guard strong > 0 else { return }
        // 15 dB below the others, twice in a row and at an end, is missing. The piece beside it is only partly there.
        let heard = powers.map { $0 > strong / 32 }
        let (leading, trailing) = (heard.prefix { !$0 }.count, heard.reversed().prefix { !$0 }.count)
        let (cutLow, cutHigh) = (leading >= 2 ? leading + 1 : 0, trailing >= 2 ? trailing + 1 : 0)
        if powers.count - cutLow - cutHigh >= 2, cutLow + cutHigh > 0 {
            self.part = Double(low + cutLow) / 16...Double(high - cutHigh) / 16
        }
        fit(powers, low: low, from: low + cutLow, to: high - cutHigh)
    }

    /// Four coherent sums of 8 ms: an echo 15 ms late is out of step by half a turn in them.
    private static func power(_ signal: [Float], _ chirp: AnalyticChirp, _ start: Int, piece: Int) -> Double {
        let (from, to) = (chirp.count * piece / pieces, chirp.count * (piece + 1) / pieces)
        var power = 0.0
        for quarter in 0..<4 {
            var (re, im) = (0.0, 0.0)
            let (a, b) = (from + (to - from) * quarter / 4, from + (to - from) * (quarter + 1) / 4)
            for i in a..<b where start + i >= 0 && start + i < signal.count {
                let x = Double(signal[start + i].isFinite ? signal[start + i] : 0)
                re += x * Double(chirp.interleaved[2 * i])
                im += x * Double(chirp.interleaved[2 * i + 1])
            }
            power += re * re + im * im
        }
        return power
    }

    /// A line through the decibels; the first and the last piece hold the ramps.
    private mutating func fit(_ powers: [Double], low: Int, from: Int, to: Int) {
        let range = max(from, 1)..<min(to, Self.pieces - 1)
        guard range.count >= 5 else { return }
        var (count, sumX, sumY, sumXX, sumXY) = (0.0, 0.0, 0.0, 0.0, 0.0)
        for piece in range {
            let x = (Double(piece) + 0.5) / Double(Self.pieces)
            let y = 10 * log10(max(powers[piece - low], 1e-30))
            (count, sumX, sumY) = (count + 1, sumX + x, sumY + y)
            (sumXX, sumXY) = (sumXX + x * x, sumXY + x * y)
        }
        let spread = count * sumXX - sumX * sumX
        guard spread > 0 else { return }
        slope = (count * sumXY - sumX * sumY) / spread
        isUneven = abs(slope) * (part.upperBound - part.lowerBound) > 8
    }

    /// The signal with the gain taken out, and cut to the part with the template's own ramps.
    ///
    /// `noiseGain` is what this does to the power of white noise inside the part.
    func evened(_ signal: [Float], _ chirp: AnalyticChirp, spec: ChirpSpec, rate: Double) -> (
        signal: [Float], noiseGain: Double
    ) {
        let from = Int((Double(chirp.count) * part.lowerBound).rounded())
        let to = Int((Double(chirp.count) * part.upperBound).rounded())
        guard to > from else { return (signal, 1) }
        let ramp = Chirp.ramp(spec, trueRate: rate, count: to - from)
        let best = slope > 0 ? part.upperBound : part.lowerBound
        var result = signal
        var sum = 0.0
        for i in from..<to where start + i >= 0 && start + i < signal.count {
            // At most 15 dB: what is weaker is noise.
            let lack = slope * (best - Double(i) / Double(chirp.count))
            let lift = isUneven ? pow(10, min(max(lack, 0), 15) / 20) : 1
            sum += lift * lift
            result[start + i] *= Float(lift)
        }
        if part.upperBound < 1 {
            for i in 0..<ramp where start + to - ramp + i >= 0 && start + to - ramp + i < signal.count {
                let x = Double(ramp - 1 - i) / Double(ramp)
                result[start + to - ramp + i] *= Float(0.5 - 0.5 * cos(Double.pi * x))
            }
            for i in min(max(start + to, 0), signal.count)..<signal.count { result[i] = 0 }
        }
        if part.lowerBound > 0 {
            for i in 0..<ramp where start + from + i >= 0 && start + from + i < signal.count {
                result[start + from + i] *= Float(0.5 - 0.5 * cos(Double.pi * Double(i) / Double(ramp)))
            }
        }
        return (result, max(sum / Double(to - from), 1))
    }
}
