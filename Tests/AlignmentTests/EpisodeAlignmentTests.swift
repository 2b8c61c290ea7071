internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

@testable internal import Alignment

/// Episodes of every dialect with known truth, from their files to the reports.
@Suite(.timeLimit(.minutes(3))) struct EpisodeAlignmentTests {
    private func align(
        _ folders: [String], _ folder: TemporaryFolder, primary: String? = nil,
        _ change: (inout AlignmentSettings) -> Void = { _ in }
    ) throws -> AlignmentRun.Outcome {
        let input = try EpisodeInput(folders, primary: primary, scratch: "\(folder.path)/scratch")
        var options = AlignmentSettings()
        change(&options)
        return try AlignmentRun(input.job, options: options).run(into: "\(folder.path)/synced")
    }

    private func refusal(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "it was aligned"
        } catch {
            return "\(error)"
        }
    }

    /// Seconds of error between two hosts at an instant of true time, and what was claimed.
    private func error(
        _ outcome: AlignmentRun.Outcome, _ stage: SoundStage, _ first: ClockID, _ second: ClockID, at instant: Double
    ) throws -> (error: Double, claimed: Double) {
        let (a, b) = try (#require(outcome.alignment.placements[first]), #require(outcome.alignment.placements[second]))
        func host(_ clock: ClockID) -> SoundStage.Host { stage.hosts.first { $0.name == clock.host } ?? stage.hosts[0] }
        let (x, y) = (host(first).nanoseconds(instant), host(second).nanoseconds(instant))
        let error = Double(b.timeline.common(y) - a.timeline.common(x)) / 1e9
        let claimed = Double((a.timeline.bound(at: x) ?? -1) + (b.timeline.bound(at: y) ?? -1)) / 1e9
        return (error, claimed)
    }

    private func clocks(_ names: String...) -> [ClockID] { names.map { .host($0) } }

    // MARK: SyncField's Python

    @Test("A follower that has only the stop chirp is aligned by it, with what the distance leaves open")
    func follower() throws {
        let folder = try TemporaryFolder()
        // It comes 4 s after the leader, as SyncField's followers do, and its clock is 37 s ahead.
        let stage = SoundStage.take([
            .init(name: "desk", offset: 1000, rate: 44_100, cardSkew: 20e-6),
            .init(name: "bench", place: 2.5, offset: 1037.25, rate: 44_100, cardSkew: -35e-6, from: 4, to: 10.2),
        ])
        for index in 0...1 { try stage.writePython(index, to: "\(folder.path)/\(stage.hosts[index].name)") }
        let folders = ["\(folder.path)/desk", "\(folder.path)/bench"]
        let outcome = try align(folders, folder)
        #expect(outcome.report["alignment"]?["hosts"]?["bench"]?["method"]?.string == "sound_one_way")
        #expect(outcome.heard.map(\.chirps.count) == [2, 1])
        let found = try error(outcome, stage, .host("desk"), .host("bench"), at: 8)
        // The middle of 0 to 8 m is 4 m; the truth is 2.5 m: 1.5 / 343.2 = 4.4 ms, within 4 / 343.2 = 11.7 ms.
        #expect(abs(abs(found.error) - 0.0044) < 0.0003, "\(found)")
        // Beside that the unknown rates count: 4.25 µs for each ppm of 150 (one deviation), three times: 1.9 ms.
        #expect((0.0130..<0.0145).contains(found.claimed), "\(found)")
        #expect(outcome.report["summary"]?["primary_stream"]?.string == "desk.cam")
        #expect(outcome.report["streams"]?["bench.cam"]?["method"]?.string == "sound_one_way")
        // Rows of bench begin at 4 s: frame 0 of the map is frame 120 of desk's camera.
        let map = try String(contentsOfFile: "\(folder.path)/synced/frame_map.jsonl", encoding: .utf8)
        let first = try JSONText.decode(JSONValue.self, from: Array(map.split(separator: "\n")[0].utf8))
        let original = try #require(first["original_frame"]?.integer)
        #expect((119...121).contains(original))
        #expect(Set(first["streams"]?.object?.keys.map { $0 } ?? []) == ["bench.cam", "bench.imu", "desk.imu"])

        // Who knows the distance gets the clock.
        let sharp = try align(folders, folder) { $0.distance = 2.5 }
        let better = try error(sharp, stage, .host("desk"), .host("bench"), at: 8)
        #expect(abs(better.error) < 0.0005 && better.claimed < 0.004, "\(better)")
        let picture = try String(contentsOfFile: "\(folder.path)/synced/heard.svg", encoding: .utf8)
        #expect(picture.contains("bench.host_audio") && picture.contains("<circle"))
        #expect(try XMLCheck.isWellFormed("\(folder.path)/synced/heard.svg"))
    }

    @Test("An episode without any chirp is refused with the host and the reason; by wall clock only when asked")
    func silent() throws {
        let folder = try TemporaryFolder()
        var stage = SoundStage.take([
            .init(name: "desk", offset: 1000), .init(name: "bench", offset: 1037.25, from: 4, hears: false),
        ])
        stage.noise = 0.003
        for index in 0...1 { try stage.writePython(index, to: "\(folder.path)/\(stage.hosts[index].name)") }
        let folders = ["\(folder.path)/desk", "\(folder.path)/bench"]
        let words = refusal { _ = try align(folders, folder) }
        #expect(words.contains("the hosts bench, desk have no common clock"), "\(words)")
        #expect(words.contains("host 'bench': no clock_sync.jsonl was given"), "\(words)")
        #expect(words.contains("no chirp is in its sound"), "\(words)")
        #expect(words.contains("--wall-clock"), "\(words)")
        #expect(!Files.exists("\(folder.path)/synced"))

        let wall = try align(folders, folder) { $0.usesWallClock = true }
        #expect(wall.report["alignment"]?["common_clock"]?.string == "wall")
        #expect(wall.report["alignment"]?["hosts"]?["bench"]?["method"]?.string == "wall_clock")
        #expect(wall.report["alignment"]?["hosts"]?["bench"]?["uncertainty_ns"] == .null)
        #expect(wall.report["streams"]?["bench.cam"]?["uncertainty_ms"] == .null)
        let found = try error(wall, stage, .host("desk"), .host("bench"), at: 8)
        // The fixture's wall clocks are true.
        #expect(abs(found.error) < 1e-6)
    }

    @Test("A microphone at 16 kHz says that it can't hear the band")
    func lowRate() throws {
        let folder = try TemporaryFolder()
        let stage = SoundStage.take([
            .init(name: "desk", offset: 1000), .init(name: "bench", offset: 37, rate: 16_000, hears: false),
        ])
        for index in 0...1 { try stage.writePython(index, to: "\(folder.path)/\(stage.hosts[index].name)") }
        let words = refusal { _ = try align(["\(folder.path)/desk", "\(folder.path)/bench"], folder) }
        #expect(
            words.contains("host 'bench'") && words.contains("this microphone can't hear it: at 16000 Hz"), "\(words)")
    }

    @Test("A session's folder and the collected files of a leader are the same episode")
    func layouts() throws {
        let folder = try TemporaryFolder()
        let stage = SoundStage.take([
            .init(name: "desk", offset: 5), .init(name: "desk.b", place: 1, offset: 1_000_000, from: 4),
        ])
        let session = "\(folder.path)/amber-tiger-042"
        let collected = "\(folder.path)/ep_20260411_172930_a1b2c3"
        for index in 0...1 {
            let name = stage.hosts[index].name
            try stage.writePython(index, to: "\(session)/\(name)/ep_20260411_17293\(index)_a1b2c3")
            try stage.writePython(index, to: collected, prefix: "\(name).")
        }
        try AtomicFile.write(
            """
            {"session_id":"amber-tiger-042","leader_host_id":"desk","leader_episode":"ep_20260411_172930_a1b2c3","hosts":[
             {"host_id":"desk","status":"ok","files":[],"error":null},
             {"host_id":"desk.b","status":"ok","files":[],"error":null}]}
            """, to: "\(collected)/aggregated_manifest.json")
        for path in [session, collected] {
            let outcome = try align([path], folder)
            #expect(Set(outcome.alignment.placements.keys) == Set(clocks("desk", "desk.b")))
            let found = try error(outcome, stage, .host("desk"), .host("desk.b"), at: 8)
            #expect(abs(found.error) <= found.claimed && found.claimed < 0.0145, "\(path): \(found)")
        }
        // A host with two takes: which one is meant must be said.
        try stage.writePython(1, to: "\(session)/desk.b/ep_20260411_180000_ffffff")
        let words = refusal { _ = try align([session], folder) }
        #expect(words.contains("host 'desk.b' has 2 episodes"), "\(words)")
    }

    // MARK: Two ways

    @Test(
        "Hosts that play and hear in turn: each pair's clock to 100 µs, whatever the cards' rates",
        arguments: [1, 2, 3])
    func twoWay(_ seed: Int) throws {
        let folder = try TemporaryFolder()
        var stage = SoundStage.take(
            [
                .init(name: "a", place: 0, offset: 100, skew: 30e-6, cardSkew: 60e-6),
                .init(name: "b", place: 3, offset: -2_000, skew: -40e-6, cardSkew: -80e-6),
                .init(name: "c", place: 5.5, offset: 1e7, skew: 5e-6, rate: 44_100, cardSkew: 20e-6),
            ], turns: true)
        stage.seed = UInt64(seed)
        for index in stage.hosts.indices {
            try stage.writePython(index, to: "\(folder.path)/\(stage.hosts[index].name)")
        }
        let outcome = try align(["a", "b", "c"].map { "\(folder.path)/\($0)" }, folder)
        #expect(outcome.heard.map(\.chirps.count) == [6, 6, 6])
        #expect(outcome.alignment.method == "sound_two_way")
        for (first, second) in [("a", "b"), ("a", "c"), ("b", "c")] {
            for instant in [1.0, 5, 9] {
                let found = try error(outcome, stage, .host(first), .host(second), at: instant)
                #expect(abs(found.error) < 100e-6, "\(first) \(second) at \(instant): \(found)")
                #expect(abs(found.error) <= found.claimed, "\(first) \(second) at \(instant): \(found)")
            }
        }
    }

    // MARK: Phones and clips

    @Test("A phone's video with AAC is aligned by its track, whose times are those of its frames")
    func phone() throws {
        let folder = try TemporaryFolder()
        let stage = SoundStage.take([
            .init(name: "iphone", place: 0, offset: 88_000, rate: 44_100),
            .init(name: "pixel", place: 1.2, offset: -12, rate: 48_000, from: 0.5),
        ])
        for index in 0...1 { try stage.writePhone(index, to: "\(folder.path)/\(stage.hosts[index].name)") }
        let outcome = try align(["\(folder.path)/iphone", "\(folder.path)/pixel"], folder) { $0.distance = 1.2 }
        #expect(outcome.heard.map(\.chirps.count) == [2, 2])
        #expect(outcome.heard.first?.format?.codec == "aac")
        for instant in [1.0, 9] {
            let found = try error(outcome, stage, .host("iphone"), .host("pixel"), at: instant)
            #expect(abs(found.error) < 0.001 && abs(found.error) <= found.claimed, "\(found)")
        }
    }

    @Test("A clip without stamps is placed by its sound, also when its end cut the stop chirp")
    func clip() throws {
        let folder = try TemporaryFolder()
        // The wrist camera's clip ends 350 ms before the end of the stop chirp: 150 ms of it are there.
        let stage = SoundStage.take([
            .init(name: "desk", offset: 1000), .init(name: "wrist", place: 0.6, from: 3, to: 8.65),
        ])
        let path = "\(folder.path)/desk"
        try stage.writePython(0, to: path)
        let frames = try stage.writeVideo(1, to: "\(path)/cam_wrist.mp4")
        let outcome = try align([path], folder)
        let clip = try #require(outcome.alignment.placements[.clip(of: "cam_wrist", host: "desk")])
        // The clip's time zero is true 3 s, and the common clock is the host's: 1003 s. It is 0.6 m away.
        let error = Double(clip.timeline.common(0) - 1_003_000_000_000) / 1e9
        #expect(abs(error) <= Double(clip.uncertainty ?? 0) / 1e9, "\(error)")
        #expect(outcome.report["streams"]?["cam_wrist"]?["original_frame_count"]?.integer == Int64(frames))
        #expect((clip.confidence ?? 0) > 0.4)

        // One that nobody can place is left out, and the rest is aligned.
        let deaf = SoundStage.take([.init(name: "desk", offset: 1000), .init(name: "wrist", to: 5, hears: false)])
        try deaf.writeVideo(1, to: "\(path)/cam_left.mp4")
        let rest = try align([path], folder)
        #expect(rest.report["streams"]?["cam_left"] == nil)
        #expect(rest.report["left_out"]?.array?.contains { $0.string?.contains("cam_left") == true } == true)
    }

    // MARK: The network's clocks beside the sound

    private func series(_ stage: SoundStage, lie: [String: Double] = [:]) -> String {
        stage.hosts.flatMap { host in
            (0..<10).map { second in
                // The rig's clock is true time.
                let at = Double(second)
                let offset = host.offset + at * host.skew + (lie[host.name] ?? 0)
                return
                    "{\"host_id\":\"\(host.name)\",\"rig_ns\":\(Int64(at * 1e9)),\"offset_ns\":\(Int64((offset * 1e9).rounded())),"
                    + "\"skew\":\(host.skew),\"bound_ns\":50000,\"skew_bound\":1e-7}\n"
            }
        }.joined()
    }

    @Test(
        "The clock series places the hosts and sound is its witness: a lie of 50 ms, 1 s or 37 s is refused",
        arguments: [0, 0.05, 1, 37])
    func witness(_ lie: Double) throws {
        let folder = try TemporaryFolder()
        let stage = SoundStage.take(
            [.init(name: "a", offset: 100), .init(name: "b", place: 3, offset: -50, skew: 20e-6)], turns: true)
        for index in 0...1 { try stage.writePython(index, to: "\(folder.path)/ep/hosts/\(stage.hosts[index].name)") }
        try AtomicFile.write(series(stage, lie: ["b": lie]), to: "\(folder.path)/ep/clock_sync.jsonl")
        guard lie > 0 else {
            let outcome = try align(["\(folder.path)/ep"], folder)
            #expect(outcome.alignment.method == "clock_series")
            #expect(outcome.alignment.common == "rig")
            #expect(outcome.alignment.notes.contains { $0.contains("clocks agree") }, "\(outcome.alignment.notes)")
            let found = try error(outcome, stage, .host("a"), .host("b"), at: 5)
            #expect(abs(found.error) < 1e-6)
            return
        }
        let words = refusal { _ = try align(["\(folder.path)/ep"], folder) }
        #expect(words.contains("a and b: clocks disagree"), "\(words)")
        // Who knows that the network lied takes the sound.
        let outcome = try align(["\(folder.path)/ep"], folder) { $0.method = .sound }
        let found = try error(outcome, stage, .host("a"), .host("b"), at: 5)
        #expect(abs(found.error) < 200e-6)
    }

    @Test("A host that the network doesn't know is hung up by its sound on one that it knows")
    func mixed() throws {
        let folder = try TemporaryFolder()
        let stage = SoundStage.take(
            [
                .init(name: "a", offset: 100), .init(name: "b", place: 3, offset: -50, skew: 20e-6),
                .init(name: "c", place: 1, offset: 7000, skew: -30e-6),
            ], turns: true)
        for index in 0...2 { try stage.writePython(index, to: "\(folder.path)/ep/hosts/\(stage.hosts[index].name)") }
        let rows = series(stage).split(separator: "\n").filter { !$0.contains("\"c\"") }.joined(separator: "\n")
        try AtomicFile.write(rows + "\n", to: "\(folder.path)/ep/clock_sync.jsonl")
        let outcome = try align(["\(folder.path)/ep"], folder)
        #expect(outcome.alignment.placements[.host("c")]?.method == .soundTwoWay)
        #expect(outcome.alignment.method == "mixed")
        for instant in [1.0, 9] {
            let found = try error(outcome, stage, .host("b"), .host("c"), at: instant)
            #expect(abs(found.error) < 200e-6 && abs(found.error) <= found.claimed, "\(found)")
        }
    }
}

/// Whether another program can read a file as XML.
enum XMLCheck {
    static func isWellFormed(_ path: String) throws -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])", path]
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
