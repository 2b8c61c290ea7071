internal import AcousticScenes
internal import Acoustics
internal import Foundation
internal import Protocol
internal import TestSupport

extension [Double] {
    /// The value below which a share of the values is.
    func quantile(_ share: Double) -> Double {
        let ordered = sorted()
        return ordered.isEmpty ? .nan : ordered[Swift.min(Int(Double(ordered.count) * share), ordered.count - 1)]
    }
}

func line(_ text: String, _ values: Double...) { print(String(format: text, arguments: values)) }

let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)

/// Arrival errors in white noise, against the bound.
enum WhiteNoiseStudy {
    static func run(trials: Int, seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let estimator = ArrivalEstimator(spec: up, rate: 48_000)
        var (worst, threshold) = (0.0, Double.infinity)
        print("white noise: SNR of the samples (0-24 kHz), error in µs")
        for snr in stride(from: -30.0, through: 30, by: 5) {
            let ratio = pow(10, snr / 10)
            var (squares, found, inside): (Double, Int, Int) = (0, 0, 0)
            for _ in 0..<trials {
                let place = 14_000 + Double.random(in: 0..<1, using: &random)
                var signal = Scene.chirp(up, rate: 48_000, at: place, count: 44_000)
                let power = Scene.power(signal, 14_000..<38_000)
                Scene.addNoise((power / ratio).squareRoot(), to: &signal, &random)
                guard let arrival = estimator.estimate(signal, near: 14_050).arrival else { continue }
                let error = arrival.position - place
                squares += error * error
                found += 1
                if abs(error) <= 2 * arrival.deviation { inside += 1 }
            }
            let rms = (squares / Double(max(found, 1))).squareRoot() / 48_000 * 1e6
            let bound = Scene.bound(up, rate: 48_000, snr: ratio) * 1e6
            line(
                "  %5.0f dB  found %5.1f %%  rmse %9.3f  bound %9.3f  ratio %.2f  within 2 sigma %.1f %%", snr,
                100 * Double(found) / Double(trials), rms, bound, rms / bound,
                100 * Double(inside) / Double(max(found, 1)))
            if snr >= -10 { worst = max(worst, rms / bound) }
            if found == trials, rms / bound <= 1.5 { threshold = min(threshold, snr) }
        }
        line("chirp threshold_db=%.0f", threshold)
        line("chirp ratio=%.2f goal=1.50 \(worst <= 1.5 ? "pass" : "fail")", worst)
    }
}

/// Arrival errors in simulated rooms.
enum RoomStudy {
    static func run(trials: Int, seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let estimator = ArrivalEstimator(spec: up, rate: 48_000)
        let source = Scene.chirp(up, rate: 48_000, at: 14_000, count: 60_000)
        var rows: [(distance: Double, time: Double, snr: Double, error: Double, deviation: Double)] = []
        var missed = 0
        var seconds = 0.0
        for _ in 0..<trials {
            let room = RoomSimulator.random(&random)
            let (a, b) = room.pair(&random)
            let snr = Double.random(in: 0...20, using: &random)
            var signal = Scene.convolve(
                source, room.response(from: a, to: b, rate: 48_000, duration: room.reverberation * 0.8))
            let distance = a.distance(to: b)
            let true_ = 14_000 + distance / RoomSimulator.soundSpeed * 48_000
            let power = Scene.power(signal, Int(true_)..<Int(true_) + 24_000)
            Scene.addNoise((power / pow(10, snr / 10)).squareRoot(), to: &signal, &random)
            guard let filter = MatchedFilter(specs: [up, up.reversed], rate: 48_000) else { return }
            let candidates = filter.push(signal) + filter.finish()
            guard let best = candidates.filter({ $0.template == 0 }).max(by: { $0.correlation < $1.correlation }) else {
                missed += 1
                continue
            }
            let start = Date()
            let outcome = estimator.estimate(signal, near: best.position)
            seconds += Date().timeIntervalSince(start)
            guard let arrival = outcome.arrival else {
                missed += 1
                continue
            }
            rows.append(
                (
                    distance, room.reverberation, snr, (arrival.position - true_) / 48_000 * 1e6,
                    arrival.deviation / 48_000 * 1e6
                ))
        }
        let errors = rows.map { abs($0.error) }
        line(
            "rooms: %.0f takes, %.0f not found, %.1f ms each", Double(trials), Double(missed),
            1000 * seconds / Double(trials))
        for (low, high) in [(0.0, 2.0), (2, 4), (4, 8)] {
            let part = rows.filter { $0.distance >= low && $0.distance < high }.map { abs($0.error) }
            line(
                "  %.0f-%.0f m: %4.0f takes  median %6.1f  p90 %6.1f  p95 %6.1f µs", low, high, Double(part.count),
                part.quantile(0.5), part.quantile(0.9), part.quantile(0.95))
        }
        let inside = Double(rows.filter { abs($0.error) <= 2 * $0.deviation }.count) / Double(max(rows.count, 1))
        line(
            "  all: median %.1f  p90 %.1f  p95 %.1f  p99 %.1f  max %.0f µs; bias %.1f; within 2 sigma %.1f %%",
            errors.quantile(0.5), errors.quantile(0.9), errors.quantile(0.95), errors.quantile(0.99),
            errors.max() ?? .nan, rows.map { $0.error }.quantile(0.5), 100 * inside)
        for row in rows.sorted(by: { abs($0.error) > abs($1.error) }).prefix(6) {
            line(
                "    worst: %.1f m, RT %.2f s, %.0f dB: %.0f µs, said ±%.0f", row.distance, row.time, row.snr,
                row.error, row.deviation)
        }
        let p95 = errors.quantile(0.95)
        line("chirp p95_us=%.1f goal=50 \(p95 <= 50 && missed == 0 ? "pass" : "fail")", p95)
        line("chirp coverage_2_sigma=%.3f goal=0.93 \(inside >= 0.93 ? "pass" : "fail")", inside)
    }
}
