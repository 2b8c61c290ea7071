internal import AcousticScenes
internal import Acoustics
internal import Foundation
internal import Protocol
internal import TestSupport
internal import Testing

/// Through the real encoder: AAC at 96 kb/s, as a camera's track has it.
@Suite struct CodecTests {
    private func ffmpeg(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y"] + arguments
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    @Test("both chirps survive AAC at 96 kb/s, and stay in their places", .timeLimit(.minutes(1)))
    func aac() throws {
        let folder = try TemporaryFolder()
        var random = SeededGenerator(seed: 51)
        let up = ChirpSpec(fromHz: 17_000, toHz: 19_000, amplitude: 0.3)
        let places = [60_000.3, 160_000.7]
        var signal = Scene.chirp(up, rate: 48_000, at: places[0], count: 240_000)
        let stop = Scene.chirp(up.reversed, rate: 48_000, at: places[1], count: 240_000)
        let voice = Scene.chirp(
            ChirpSpec(fromHz: 200, toHz: 3_000, durationMilliseconds: 4_900, amplitude: 0.3), rate: 48_000, at: 0,
            count: 240_000)
        for i in signal.indices { signal[i] += stop[i] + voice[i] }
        Scene.addNoise(0.003, to: &signal, &random)
        let (raw, packed, back) = ("\(folder.path)/in.f32", "\(folder.path)/a.m4a", "\(folder.path)/out.f32")
        try signal.withUnsafeBytes { Data($0) }.write(to: URL(fileURLWithPath: raw))
        try ffmpeg(["-f", "f32le", "-ar", "48000", "-ac", "1", "-i", raw, "-c:a", "aac", "-b:a", "96k", packed])
        try ffmpeg(["-i", packed, "-f", "f32le", "-ar", "48000", "-ac", "1", back])
        let data = try Data(contentsOf: URL(fileURLWithPath: back))
        let decoded = data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        let filter = try #require(MatchedFilter(specs: [up, up.reversed], rate: 48_000))
        let found = filter.push(decoded) + filter.finish()
        try #require(found.map { $0.template } == [0, 1])
        for (candidate, (place, spec)) in zip(found, zip(places, [up, up.reversed])) {
            let outcome = ArrivalEstimator(spec: spec, rate: 48_000).estimate(decoded, near: candidate.position)
            let arrival = try #require(outcome.arrival)
            #expect(abs(arrival.position - place) / 48_000 < 20e-6, "\(arrival)")
            #expect(arrival.confidence > 0.8)
        }
    }
}
