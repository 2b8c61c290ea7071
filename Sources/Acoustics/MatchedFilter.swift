internal import Glibc
package import Protocol

/// Finds chirps in a stream of any length: a matched filter by overlap-save, in bounded memory.
///
/// Each block is transformed once. For each sweep the bins of its band are multiplied with the template's conjugate
/// and transformed back at an eighth of the rate or less, since nothing outside of the band is left: that is why two
/// sweeps cost little more than one. What is tested is the normalised correlation ρ² = |⟨x, s⟩|² / (‖x in band‖² ‖s‖²)
/// over the chirp's length. It is a detector with a constant false alarm rate: in noise of whatever level it exceeds r
/// with the probability (1 − r)^(BT − 1), BT = 1000 for SyncField's chirps, and a click, a tone or the other sweep
/// stay at about 1/BT, since each is spread over the whole length.
///
/// A candidate is good to about a tenth of a millisecond; `ArrivalEstimator` makes an arrival of it. Not thread-safe:
/// one owner feeds it.
package final class MatchedFilter {
    package struct Candidate: Sendable, Hashable {
        /// Which of the specs.
        package var template: Int
        /// Of the strongest path's first sample, in samples since the stream's begin.
        package var position: Double
        /// ρ² at the peak, 0…1.
        package var correlation: Double
    }

    /// ρ² of a candidate.
    ///
    /// 0.97^999 × 7.2 million cells of half a millisecond in an hour = 4e-7 false alarms an hour in noise. A chirp of
    /// −15 dB in its band still reaches it, and so does the strongest path in a hall, with a thirtieth of the energy.
    package static let threshold = 0.03

    package let rate: Double
    /// A candidate comes at the latest so many samples after its place.
    package var latency: Int { 2 * bank.length }
    private let threshold: Double
    private let bank: FilterBank
    private var peaks: [PeakPicker]
    private var filled = 0

    /// Nil when a spec has no samples at the rate, or its band isn't below half of it.
    package init?(specs: [ChirpSpec], rate: Double, threshold: Double = MatchedFilter.threshold) {
        guard let bank = FilterBank(specs: specs, rate: rate) else { return nil }
        self.rate = rate
        self.bank = bank
        self.threshold = threshold
        let guardTime = Int(0.25 * rate) / bank.decimation
        peaks = specs.indices.map { PeakPicker(template: $0, decimation: bank.decimation, separation: guardTime) }
    }

    /// Takes the next samples, mono, full scale 1; gives the candidates that became certain.
    ///
    /// Samples that aren't finite count as silence.
    package func push(_ samples: ArraySlice<Float>) -> [Candidate] {
        var found: [Candidate] = []
        var index = samples.startIndex
        samples.withUnsafeBufferPointer { source in
            let start = samples.startIndex
            while index < samples.endIndex {
                let take = min(bank.length - filled, samples.endIndex - index)
                for i in 0..<take {
                    let x = source[index - start + i]
                    bank.input.floats[filled + i] = x.isFinite ? x : 0
                }
                filled += take
                index += take
                if filled == bank.length { found += runBlock(usable: bank.hop) }
            }
        }
        return found
    }

    package func push(_ samples: [Float]) -> [Candidate] { push(samples[...]) }

    /// The end of the stream: also chirps of which only the first part is there.
    package func finish() -> [Candidate] {
        for i in filled..<bank.length { bank.input.floats[i] = 0 }
        var found = filled > 0 ? runBlock(usable: min(filled, bank.hop)) : []
        if filled > 0 {
            for i in filled..<bank.length { bank.input.floats[i] = 0 }
            found += runBlock(usable: min(filled, bank.hop))
        }
        for index in peaks.indices { found += peaks[index].finish(threshold) }
        filled = 0
        return found.sorted { $0.position < $1.position }
    }

    private func runBlock(usable: Int) -> [Candidate] {
        var found: [Candidate] = []
        let count = usable / bank.decimation
        bank.transformInput()
        for template in peaks.indices {
            bank.correlate(template, count: count) { peaks[template].append($0) }
            found += peaks[template].take(threshold)
        }
        // What the next block still needs moves to the front.
        let keep = max(filled - bank.hop, 0)
        let floats = bank.input.floats
        for i in 0..<keep { floats[i] = floats[bank.hop + i] }
        filled = keep
        return found.sorted { $0.position < $1.position }
    }
}

/// The transforms of a matched filter for several sweeps.
final class FilterBank {
    private struct Template {
        let spectrum: [Float]
        let first: Int
        let bins: Int
        let energy: Double
        /// Chirp length in decimated samples.
        let span: Int
    }

    let length: Int
    let hop: Int
    let decimation: Int
    let input: FourierBuffer
    private let spectrum: FourierBuffer
    private let forward: FourierTransform
    private let backward: FourierTransform
    private let narrow: FourierBuffer
    private let output: FourierBuffer
    private var templates: [Template] = []
    private var energyBefore: [Double]
    private var energyTemplate = -1

    init?(specs: [ChirpSpec], rate: Double) {
        let chirps = specs.compactMap { AnalyticChirp($0, trueRate: rate) }
        guard !chirps.isEmpty, chirps.count == specs.count else { return nil }
        let longest = chirps.reduce(0) { max($0, $1.count) }
        let widest = chirps.reduce(0) { max($0, $1.width) }
        var decimation = 1
        while rate / Double(2 * decimation) >= 2 * widest, decimation < 64 { decimation *= 2 }
        self.decimation = decimation
        length = max((4 * longest).powerOfTwoAbove, 1024)
        hop = (length - longest) / decimation * decimation
        input = FourierBuffer(count: length)
        spectrum = FourierBuffer(count: length + 2)
        forward = FourierTransform(.forwardReal, length: length)
        backward = FourierTransform(.backwardComplex, length: length / decimation)
        narrow = FourierBuffer(count: 2 * length / decimation)
        output = FourierBuffer(count: 2 * length / decimation)
        energyBefore = [Double](repeating: 0, count: length / decimation + 1)
        for chirp in chirps {
            let low = Int((chirp.middle - chirp.width / 2) * Double(length) / rate)
            let high = Int((chirp.middle + chirp.width / 2) * Double(length) / rate)
            guard low > 0, high < length / 2, high > low else { return nil }
            templates.append(
                Template(
                    spectrum: chirp.conjugateSpectrum(forward, first: low, bins: high - low), first: low,
                    bins: high - low, energy: chirp.energy, span: chirp.count / decimation))
        }
    }

    func transformInput() {
        forward.run(input, into: spectrum)
        energyTemplate = -1
    }

    /// ρ² for the first `count` decimated lags of the block.
    func correlate(_ index: Int, count: Int, _ take: (Float) -> Void) {
        let template = templates[index]
        if energyTemplate < 0 || templates[energyTemplate].first != template.first
            || templates[energyTemplate].bins != template.bins
        {
            sumEnergy(template)
            energyTemplate = index
        }
        clearNarrow(from: template.bins)
        template.spectrum.withUnsafeBufferPointer { conjugate in
            for bin in 0..<template.bins {
                let at = 2 * (template.first + bin)
                let (a, b) = (spectrum.floats[at], spectrum.floats[at + 1])
                let (c, d) = (conjugate[2 * bin], conjugate[2 * bin + 1])
                narrow.floats[2 * bin] = a * c - b * d
                narrow.floats[2 * bin + 1] = a * d + b * c
            }
        }
        backward.run(narrow, into: output)
        // Unscaled sums over bins: ⟨x, s⟩ = sum / length, and a decimated sample of the band is sum / length as well,
        // of which `decimation` stand for one.
        let lags = length / decimation
        let total = energyBefore[lags]
        for lag in 0..<min(count, lags) {
            let (re, im) = (Double(output.floats[2 * lag]), Double(output.floats[2 * lag + 1]))
            let end = min(lag + template.span, lags)
            let energy = (energyBefore[end] - energyBefore[lag]) * Double(decimation) * template.energy
            // Below a billionth of the block's energy only rounding is left.
            let floor = total * 1e-9 * Double(decimation) * template.energy
            take(energy > floor && energy > 1e-30 ? Float(min((re * re + im * im) / energy, 1)) : 0)
        }
    }

    private func sumEnergy(_ template: Template) {
        clearNarrow(from: template.bins)
        for i in 0..<2 * template.bins { narrow.floats[i] = spectrum.floats[2 * template.first + i] }
        backward.run(narrow, into: output)
        for i in 0..<length / decimation {
            let (re, im) = (Double(output.floats[2 * i]), Double(output.floats[2 * i + 1]))
            energyBefore[i + 1] = energyBefore[i] + re * re + im * im
        }
    }

    private func clearNarrow(from bin: Int) {
        for i in 2 * bin..<narrow.floats.count { narrow.floats[i] = 0 }
    }
}
