internal import Glibc

/// How much of a sound lies in a band of frequencies: Goertzel's filter over Hann-windowed blocks.
package struct BandEnergy: Sendable {
    /// Mean square of the band's part of one block; a full-scale sine inside the band gives 0.5.
    package struct Level: Sendable, Hashable {
        /// The block's first sample.
        package var position: Int
        package var meanSquare: Double
        /// Relative to full scale's 0.5, in dB; −∞ for silence.
        package var decibels: Double { 10 * log10(meanSquare / 0.5) }
    }

    /// The band of SyncField's chirps, Hz.
    package static let chirpBand: ClosedRange<Double> = 17_000...19_000

    private let block: Int
    private let window: [Double]
    private let coefficients: [Double]
    private let scale: Double

    /// Blocks of `milliseconds`; bins lie rate/block apart, from the band's lower to its upper end.
    package init(band: ClosedRange<Double> = BandEnergy.chirpBand, rate: Int, milliseconds: Double = 10) {
        let block = max(8, Int(Double(rate) * min(max(milliseconds, 0), 10_000) / 1000))
        self.block = block
        window = (0..<block).map { 0.5 - 0.5 * cos(2 * Double.pi * (Double($0) + 0.5) / Double(block)) }
        let spacing = Double(rate) / Double(block)
        let top = min(band.upperBound, Double(rate) / 2)
        coefficients = stride(from: band.lowerBound, through: max(top, band.lowerBound), by: spacing).map {
            2 * cos(2 * Double.pi * $0 / Double(rate))
        }
        // Parseval for one side of the spectrum, with the Hann window's mean square of 3/8.
        scale = 2 / (Double(block) * Double(block) * 0.375)
    }

    /// The level of the block that begins at a position; what lies outside of the signal is silence.
    package func level(of signal: [Float], at position: Int) -> Level {
        var windowed = [Double](repeating: 0, count: block)
        for i in 0..<block where position + i >= 0 && position + i < signal.count {
            windowed[i] = Double(signal[position + i]) * window[i]
        }
        var power = 0.0
        for coefficient in coefficients {
            var (last, beforeLast) = (0.0, 0.0)
            for x in windowed { (last, beforeLast) = (x + coefficient * last - beforeLast, last) }
            power += last * last + beforeLast * beforeLast - coefficient * last * beforeLast
        }
        return Level(position: position, meanSquare: max(power, 0) * scale)
    }

    /// The levels of blocks one after the other over a range of the signal.
    package func profile(of signal: [Float], over range: Range<Int>? = nil) -> [Level] {
        let range = (range ?? 0..<signal.count).clamped(to: 0..<signal.count)
        return stride(from: range.lowerBound, to: range.upperBound, by: block).map { level(of: signal, at: $0) }
    }
}
