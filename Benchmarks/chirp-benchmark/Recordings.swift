internal import AcousticScenes
internal import Acoustics
internal import Foundation
internal import Protocol
internal import TestSupport

/// 16-bit mono WAV files: what the peers read.
enum WaveFile {
    static func write(_ samples: [Float], rate: Int, to path: String) throws {
        var bytes = Data()
        func put(_ text: String) { bytes.append(contentsOf: Array(text.utf8)) }
        func put32(_ value: Int) { for shift in [0, 8, 16, 24] { bytes.append(UInt8(value >> shift & 255)) } }
        func put16(_ value: Int) { for shift in [0, 8] { bytes.append(UInt8(value >> shift & 255)) } }
        put("RIFF")
        put32(36 + 2 * samples.count)
        put("WAVEfmt ")
        put32(16)
        put16(1)
        put16(1)
        put32(rate)
        put32(2 * rate)
        put16(2)
        put16(16)
        put("data")
        put32(2 * samples.count)
        for sample in samples { put16(Int((max(-1, min(1, sample)) * 32_767).rounded()) & 0xFFFF) }
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    /// The samples of such a file, read piece by piece.
    static func read(_ path: String, piece: Int = 1 << 20, _ take: ([Float]) -> Void) throws {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? file.close() }
        _ = try file.read(upToCount: 44)
        while let data = try file.read(upToCount: piece), !data.isEmpty {
            let bytes = [UInt8](data)
            take(
                (0..<bytes.count / 2).map {
                    Float(Int16(bitPattern: UInt16(bytes[2 * $0]) | UInt16(bytes[2 * $0 + 1]) << 8)) / 32_768
                })
        }
    }
}

/// Pairs of recordings of one take by two microphones, with the true difference of their starts.
enum PairStudy {
    /// `DIR/NN-PRESET-a.wav`, `-b.wav`, and `truth.tsv`: name, seconds that b's chirp comes later in b than a's in a.
    static func make(_ folder: String, pairs: Int, seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var truth = ""
        for index in 0..<pairs {
            for preset in [ChirpPreset.ultrasonic, .audible] {
                guard let start = preset.startSpec else { continue }
                let room = RoomSimulator.random(&random)
                let (speaker, near) = room.pair(&random)
                let far = room.place(&random)
                let snr = Double.random(in: 10...20, using: &random)
                var arrivals: [Double] = []
                for (label, ear) in [("a", near), ("b", far)] {
                    let begin = 96_000 + Double.random(in: 0..<96_000, using: &random)
                    var clean = Scene.chirp(start, rate: 48_000, at: begin, count: 960_000)
                    let stop = Scene.chirp(start.reversed, rate: 48_000, at: begin + 600_000, count: 960_000)
                    for i in clean.indices { clean[i] += stop[i] }
                    var signal = Scene.convolve(
                        clean, room.response(from: speaker, to: ear, rate: 48_000, duration: room.reverberation * 0.7))
                    let power = Scene.power(signal, Int(begin)..<Int(begin) + 24_000)
                    Scene.addNoise((power / pow(10, snr / 10)).squareRoot(), to: &signal, &random)
                    let peak = signal.reduce(0) { max($0, abs($1)) }
                    try WaveFile.write(
                        signal.map { $0 / peak * 0.7 }, rate: 48_000,
                        to: "\(folder)/\(index)-\(preset.rawValue)-\(label).wav")
                    arrivals.append(begin + speaker.distance(to: ear) / RoomSimulator.soundSpeed * 48_000)
                }
                truth += "\(index)-\(preset.rawValue)\t\((arrivals[1] - arrivals[0]) / 48_000)\n"
            }
        }
        try truth.write(toFile: "\(folder)/truth.tsv", atomically: true, encoding: .utf8)
    }

    /// For each pair our difference and the seconds that it took, as a table.
    static func solve(_ folder: String) throws {
        let truth = try String(contentsOfFile: "\(folder)/truth.tsv", encoding: .utf8)
        for row in truth.split(separator: "\n") {
            let name = String(row.split(separator: "\t")[0])
            guard let spec = name.hasSuffix("audible") ? ChirpPreset.audible.startSpec : up else { continue }
            let begin = DispatchTime.now().uptimeNanoseconds
            var places: [Double] = []
            for label in ["a", "b"] {
                var signal: [Float] = []
                try WaveFile.read("\(folder)/\(name)-\(label).wav") { signal += $0 }
                guard let filter = MatchedFilter(specs: [spec, spec.reversed], rate: 48_000) else { continue }
                let found = filter.push(signal) + filter.finish()
                if let best = found.filter({ $0.template == 0 }).max(by: { $0.correlation < $1.correlation }),
                    let arrival = ArrivalEstimator(spec: spec, rate: 48_000).estimate(signal, near: best.position)
                        .arrival
                {
                    places.append(arrival.position)
                }
            }
            let seconds = Double(DispatchTime.now().uptimeNanoseconds - begin) / 1e9
            print("\(name)\t\(places.count == 2 ? (places[1] - places[0]) / 48_000 : .nan)\t\(seconds)")
        }
    }
}

/// How fast, and how often something that is no chirp is taken for one.
enum StreamStudy {
    static func speed(seconds: Int) {
        var random = SeededGenerator(seed: 3)
        var minute = [Float](repeating: 0, count: 60 * 48_000)
        Scene.addNoise(0.05, to: &minute, &random)
        let chirp = Scene.chirp(up, rate: 48_000, at: 1000.3, count: 30_000)
        for i in chirp.indices { minute[480_000 + i] += chirp[i] }
        guard let filter = MatchedFilter(specs: [up, up.reversed], rate: 48_000) else { return }
        let begin = clock()
        var found = 0
        for _ in 0..<max(seconds / 60, 1) { found += filter.push(minute).count }
        found += filter.finish().count
        let used = Double(clock() - begin) / Double(CLOCKS_PER_SEC)
        let factor = Double(max(seconds / 60, 1) * 60) / used
        line(
            "speed: %.0f s of sound, both sweeps, in %.2f s of one core; %.0f chirps found", Double(seconds), used,
            Double(found))
        line("chirp times_real_time=%.0f goal=500 \(factor >= 500 ? "pass" : "fail")", factor)
    }

    /// The candidates in WAV files that have no chirp, and what their tails say of the rate.
    static func alarms(_ paths: [String]) throws {
        var (hours, alarms, worst) = (0.0, 0, 0.0)
        for path in paths {
            let result = try self.alarms(path)
            hours += result.hours
            alarms += result.alarms
            worst = max(worst, result.expected.isFinite ? result.expected : 1)
        }
        // No alarm in some hours only says "under one in some hours": the tail's rate is the figure.
        let rate = alarms > 0 ? Double(alarms) / hours : worst
        line(
            "alarms: none expected in %.0f hours; %.0f in %.2f hours heard", 1 / max(rate, 1e-9), Double(alarms), hours)
        line("chirp alarms_an_hour=%.2e goal=1e-3 \(rate < 1e-3 ? "pass" : "fail")", rate)
    }

    private static func alarms(_ path: String) throws -> (hours: Double, alarms: Int, expected: Double) {
        guard let filter = MatchedFilter(specs: [up, up.reversed], rate: 48_000, threshold: 0.0015) else {
            return (0, 0, .nan)
        }
        var peaks: [Double] = []
        var samples = 0
        try WaveFile.read(path) {
            samples += $0.count
            peaks += filter.push($0).map { $0.correlation }
        }
        peaks += filter.finish().map { $0.correlation }
        let hours = Double(samples) / 48_000 / 3600
        let alarms = peaks.filter { $0 >= MatchedFilter.threshold }.count
        // The tail of ρ² is exponential: the mean excess over a high value gives its rate at the threshold.
        let ordered = peaks.sorted(by: >)
        let tail = min(100, max(ordered.count / 20, 5))
        var expected = Double.nan
        if ordered.count > tail {
            let base = ordered[tail]
            let mean = ordered.prefix(tail).reduce(0) { $0 + $1 - base } / Double(tail)
            expected = Double(tail) / hours * exp(-(MatchedFilter.threshold - base) / max(mean, 1e-9))
        }
        line(
            "  \(URL(fileURLWithPath: path).lastPathComponent): %.2f h, %.0f alarms, highest %.4f (threshold %.4f), expected %.2e in an hour",
            hours, Double(alarms), ordered.first ?? 0, MatchedFilter.threshold, expected)
        return (hours, alarms, expected)
    }
}
