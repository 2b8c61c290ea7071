internal import AcousticScenes
internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Timing

/// A take with known truth: hosts at places on a line, clocks with offsets and skews, sweeps that sound at true instants.
///
/// True time is in seconds. A host's clock shows `true × (1 + skew) + offset`; its card takes `rate × (1 + cardSkew)`
/// samples in each second of that clock.
struct SoundStage {
    struct Host {
        var name: String
        /// Metres.
        var place = 0.0
        /// Seconds.
        var offset = 0.0
        var skew = 0.0
        var rate = 48_000
        var cardSkew = 0.0
        /// True seconds from and to which it records.
        var from = 0.0
        var to = 10.0
        var hears = true
        /// What its stamps of sound are wrong by, seconds.
        var lie = 0.0
        /// Standard deviation of its stamps, seconds.
        var jitter = 20e-6

        func clock(_ true_: Double) -> Double { true_ * (1 + skew) + offset }
        func nanoseconds(_ true_: Double) -> Int64 {
            // The offset apart: a double has no nanoseconds of years.
            Int64((offset * 1e9).rounded()) + Int64((true_ * (1 + skew) * 1e9).rounded())
        }
    }

    struct Sweep {
        var player: Int
        var spec: ChirpSpec
        var at: Double
    }

    static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)
    static let speed = 343.2

    var hosts: [Host]
    var sweeps: [Sweep]
    var noise = 0.002
    var seed: UInt64 = 1

    /// The leader's start and stop chirps, and a turn of each other host between them.
    static func take(_ hosts: [Host], turns: Bool = false, start: Double = 1, stop: Double = 8.5) -> SoundStage {
        var sweeps = [Sweep(player: 0, spec: up, at: start), Sweep(player: 0, spec: up.reversed, at: stop)]
        if turns {
            for player in hosts.indices.dropFirst() {
                let at = start + 1.5 + 1.8 * Double(player - 1)
                for sweep in ChirpMoment.turn.sweeps(of: up) {
                    sweeps.append(Sweep(player: player, spec: sweep.spec, at: at + sweep.delay.seconds))
                }
            }
        }
        return SoundStage(hosts: hosts, sweeps: sweeps)
    }

    /// The samples that a host's microphone takes.
    func samples(_ index: Int) -> [Float] {
        var random = SeededGenerator(seed: seed &* 1000 &+ UInt64(index))
        let ear = hosts[index]
        let trueRate = Double(ear.rate) * (1 + ear.cardSkew) * (1 + ear.skew)
        let count = Int((ear.to - ear.from) * trueRate)
        var signal = [Float](repeating: 0, count: count)
        for sweep in ear.hears ? sweeps : [] {
            let player = hosts[sweep.player]
            let distance = max(abs(player.place - ear.place), 0.1)
            let arrival = (sweep.at + distance / Self.speed - ear.from) * trueRate
            let playerRate = (1 + player.cardSkew) * (1 + player.skew)
            var spec = sweep.spec
            spec.amplitude = 0.4 / max(distance, 1)
            let from = Int(arrival) - 2
            guard from < count, from + 2 * ear.rate / 2 > 0 else { continue }
            let base = max(from, 0)
            let length = min(count - base, ear.rate * 6 / 10)
            guard length > 0 else { continue }
            let part = Scene.chirp(
                spec, rate: Double(ear.rate), at: arrival - Double(base), count: length,
                stretch: trueRate / Double(ear.rate) / playerRate)
            for i in part.indices { signal[base + i] += part[i] }
        }
        Scene.addNoise(noise, to: &signal, &random)
        return signal
    }

    /// Rows every 100 ms: the number of sample frames before an instant.
    func soundRows(_ index: Int, extra: String = "") -> String {
        var random = SeededGenerator(seed: seed &* 77 &+ UInt64(index))
        let host = hosts[index]
        let step = host.rate / 10
        let count = Int((host.to - host.from) * 10)
        return (0..<count).map { row in
            let seconds = Double(row * step) / (Double(host.rate) * (1 + host.cardSkew))
            let time =
                host.nanoseconds(host.from) + Int64((seconds * 1e9).rounded())
                + Int64(((host.lie + random.normal() * host.jitter) * 1e9).rounded())
            return "{\"frame_number\":\(row * step),\"capture_ns\":\(time)\(extra)}\n"
        }.joined()
    }

    /// Rows of a sensor or a camera of the host.
    func rows(_ index: Int, rate: Double = 30) -> String {
        let host = hosts[index]
        return (0..<Int((host.to - host.from) * rate)).map { row in
            "{\"frame_number\":\(row),\"capture_ns\":\(host.nanoseconds(host.from + Double(row) / rate))}\n"
        }.joined()
    }

    func writeSound(_ index: Int, to path: String) throws {
        let format = AudioFormat(encoding: .s16, rate: hosts[index].rate, channels: 1)
        let writer = try WAVWriter(path: path, format: format)
        let values = samples(index).map { Int16((max(-1, min(1, $0)) * 32_767).rounded()) }
        try writer.append(values.withUnsafeBytes { Array($0) })
        try writer.finish()
    }

    /// `sync_point.json` with the chirps that the host played.
    func syncPoint(_ index: Int, source: String = "software_fallback", stampError: Double = 0.03) -> String {
        let host = hosts[index]
        var keys = [
            "\"sdk_version\":\"0.8.14\"", "\"monotonic_ns\":\(host.nanoseconds(host.from))",
            "\"wall_clock_ns\":\(1_775_921_370_000_000_000 + Int64(host.from * 1e9))", "\"host_id\":\"\(host.name)\"",
            "\"role\":\"\(index == 0 ? "leader" : "follower")\"",
        ]
        let own = sweeps.filter { $0.player == index }
        if index == 0 {
            for (word, isUp) in [("start", true), ("stop", false)] {
                guard let sweep = own.first(where: { ($0.spec.fromHz < $0.spec.toHz) == isUp }) else { continue }
                keys.append("\"chirp_\(word)_ns\":\(host.nanoseconds(sweep.at - stampError))")
                keys.append("\"chirp_\(word)_source\":\"\(source)\"")
            }
        } else if let turn = own.first {
            keys.append("\"chirp_turn_ns\":\(host.nanoseconds(turn.at - stampError))")
            keys.append("\"chirp_turn_source\":\"\(source)\"")
        }
        if !own.isEmpty {
            keys.append(
                "\"chirp_spec\":{\"from_hz\":17000,\"to_hz\":19000,\"duration_ms\":500,\"amplitude\":0.8,\"envelope_ms\":15}"
            )
        }
        return "{\(keys.joined(separator: ","))}"
    }

    /// One host's episode in SyncField's Python dialect: a webcam without sound, a sensor, and `host_audio`.
    func writePython(_ index: Int, to folder: String, prefix: String = "") throws {
        try Files.makeFolder(folder)
        let host = hosts[index]
        func write(_ name: String, _ text: String) throws {
            try AtomicFile.write(text, to: "\(folder)/\(prefix)\(name)")
        }
        try write("sync_point.json", syncPoint(index))
        try write(
            "manifest.json",
            """
            {"sdk_version":"0.8.14","host_id":"\(host.name)","session_id":"amber-tiger-042",
             "role":"\(index == 0 ? "leader" : "follower")","leader_host_id":"\(hosts[0].name)","streams":{
              "cam":{"kind":"video","capabilities":{},"status":"completed","frame_count":1,"path":"/other/cam.mp4"},
              "imu":{"kind":"sensor","capabilities":{},"status":"completed","frame_count":1,"path":"/other/imu.jsonl"},
              "host_audio":{"kind":"audio","capabilities":{"provides_audio_track":true},"status":"completed",
               "frame_count":1,"path":"/other/host_audio.wav"}}}
            """)
        try write("cam.timestamps.jsonl", rows(index))
        try write("imu.jsonl", rows(index, rate: 100))
        try write("cam.mp4", "a video that no one opens")
        try write("host_audio.timestamps.jsonl", soundRows(index))
        try writeSound(index, to: "\(folder)/\(prefix)host_audio.wav")
    }

    /// An episode of an iPhone: a video with an AAC track, whose times are those of its frames.
    func writePhone(_ index: Int, to folder: String, bitRate: String = "128k") throws {
        try Files.makeFolder(folder)
        let host = hosts[index]
        try AtomicFile.write(syncPoint(index), to: "\(folder)/sync_point.json")
        try AtomicFile.write(
            """
            {"host_id":"\(host.name)","role":"single","sdk_version":"0.11.1","streams":[{"capabilities":{"produces_file":
             true,"provides_audio_track":true,"requires_ingest":false,"supports_precise_timestamps":true},
             "file_path":"cam_ego.mp4","frame_count":1,"kind":"video","stream_id":"cam_ego"}]}
            """, to: "\(folder)/manifest.json")
        let count = try writeVideo(index, to: "\(folder)/cam_ego.mp4", bitRate: bitRate)
        let rows = (0..<count).map { row in
            let time = host.nanoseconds(host.from + Double(row) / 30)
            return "{\"capture_ns\":\(time),\"frame_number\":\(row),\"uncertainty_ns\":1000000}\n"
        }
        try AtomicFile.write(rows.joined(), to: "\(folder)/cam_ego.timestamps.jsonl")
    }

    /// A video of 30 frames a second by the host's clock with its sound; gives back the number of frames.
    @discardableResult
    func writeVideo(_ index: Int, to path: String, bitRate: String = "128k") throws -> Int {
        let sound = "\(path).wav"
        try writeSound(index, to: sound)
        defer { try? Files.remove(sound) }
        let host = hosts[index]
        let count = Int((host.to - host.from) * 30)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            [
                "ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-f", "lavfi", "-i", "color=s=64x48:r=30", "-i",
                sound,
                "-frames:v", "\(count)", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", "-b:a", bitRate,
            ] + [path]
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
        return count
    }

    /// Seconds that the second host's clock is ahead of the first's at a true instant.
    func offset(_ first: Int, _ second: Int, at instant: Double) -> Double {
        (hosts[second].offset - hosts[first].offset) + instant * (hosts[second].skew - hosts[first].skew)
    }
}
