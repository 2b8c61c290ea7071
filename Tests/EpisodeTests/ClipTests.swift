internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite struct ClipTests {
    /// 2026-04-01T12:00:00Z.
    private let noon = Timestamp<WallTime>(nanoseconds: 1_775_044_800_000_000_000)

    private func file(_ name: String, _ size: Int64 = 50_000) -> ClipChooser.File {
        ClipChooser.File(path: "/DCIM/Camera01/\(name)", size: size)
    }

    private func names(_ choice: ClipChooser.Choice?) -> [String]? {
        guard case .files(let files, _) = choice else { return nil }
        return files.map { FilePath.name(of: $0.path) }
    }

    // MARK: Names

    @Test func `A clip's name has its time`() {
        #expect(ClipName("/DCIM/Camera01/VID_20260401_120000_00_007.mp4")?.begin == noon)
        #expect(ClipName("VID_20260401_120000_00_007.insv")?.index == 7)
        for name in [
            "LRV_20260401_120000_00_007.mp4", "VID_20260401_120000_00_007.lrv", "VID_20260431_120000_00_007.mp4",
            "VID_20260401_250000_00_007.mp4", "VID_2026_1_00_007.mp4", "IMG_20260401_120000_00_007.jpg", "VID_.mp4", "",
        ] { #expect(ClipName(name) == nil, "\(name)") }
    }

    // MARK: Choice

    @Test func `A named file is taken, whatever its time`() {
        var chooser = ClipChooser()
        let choice = chooser.choose(
            [.init(id: "a", path: "/DCIM/Camera01/VID_20260401_180000_00_001.mp4", start: noon)],
            among: [file("VID_20260401_120000_00_009.mp4"), file("VID_20260401_180000_00_001.mp4")])
        #expect(names(choice["a"]) == ["VID_20260401_180000_00_001.mp4"])
    }

    @Test func `8.1 item 12: Two unresolved clips of one camera get two files`() {
        var chooser = ClipChooser()
        // Two takes 25 s apart: both files are in both windows.
        let choices = chooser.choose(
            [
                .init(id: "second", start: noon + .seconds(25), stop: noon + .seconds(45)),
                .init(id: "first", start: noon, stop: noon + .seconds(20)),
            ],
            among: [file("VID_20260401_120000_00_001.mp4"), file("VID_20260401_120025_00_002.mp4")])
        #expect(names(choices["first"]) == ["VID_20260401_120000_00_001.mp4"])
        #expect(names(choices["second"]) == ["VID_20260401_120025_00_002.mp4"])
    }

    @Test func `8.1 item 12: A file that another take has is never given again`() {
        var chooser = ClipChooser(taken: ["VID_20260401_120000_00_001.mp4"])
        let files = [file("VID_20260401_120000_00_001.mp4")]
        #expect(names(chooser.choose([.init(id: "a", start: noon)], among: files)["a"]) == nil)
        #expect(names(chooser.choose([.init(id: "a")], among: files)["a"]) == nil)
        #expect(
            names(
                chooser.choose([.init(id: "a", path: "/DCIM/Camera01/VID_20260401_120000_00_001.mp4")], among: files)[
                    "a"])
                == nil)
    }

    @Test func `8.1 item 12: Without any times only a single clip takes the newest file`() {
        let files = [file("VID_20260401_120000_00_001.mp4"), file("VID_20260401_130000_00_002.mp4")]
        var chooser = ClipChooser()
        #expect(names(chooser.choose([.init(id: "a")], among: files)["a"]) == ["VID_20260401_130000_00_002.mp4"])
        var other = ClipChooser()
        let both = other.choose([.init(id: "a"), .init(id: "b")], among: files)
        #expect(names(both["a"]) == nil && names(both["b"]) == nil)
    }

    @Test func `8.1 item 13: A long recording is all its segments, in order, and a hole is told`() {
        let wanted = ClipChooser.Wanted(id: "a", start: noon, stop: noon + .seconds(2400), segments: 3)
        let files = [
            file("VID_20260401_123600_00_003.mp4"), file("VID_20260401_120001_00_001.mp4"),
            file("VID_20260401_121800_00_002.mp4"), file("VID_20260401_110000_00_000.mp4"),
        ]
        var chooser = ClipChooser()
        #expect(
            names(chooser.choose([wanted], among: files)["a"]) == [
                "VID_20260401_120001_00_001.mp4", "VID_20260401_121800_00_002.mp4", "VID_20260401_123600_00_003.mp4",
            ])
        var other = ClipChooser()
        let choice = other.choose([wanted], among: [files[0], files[1]])["a"]
        #expect(choice == .files([files[1]], note: "1 of 3 segments were found on the camera"))
        #expect(ClipChooser.segments(of: .seconds(1080)) == 1 && ClipChooser.segments(of: .seconds(1081)) == 2)
    }

    @Test func `A camera whose clock shows local time is understood`() {
        // 14:00 local, UTC+2.
        var chooser = ClipChooser(zone: .seconds(7200))
        let files = [file("VID_20260401_140002_00_001.mp4"), file("VID_20260401_090000_00_000.mp4")]
        #expect(
            names(chooser.choose([.init(id: "a", start: noon)], among: files)["a"])
                == ["VID_20260401_140002_00_001.mp4"])
        // What is named teaches the clock's offset, also one of a zone that isn't the host's.
        var other = ClipChooser()
        let choices = other.choose(
            [
                .init(id: "a", path: "/DCIM/Camera01/VID_20260401_174500_00_001.mp4", start: noon),
                .init(id: "b", start: noon + .seconds(600)),
            ], among: [file("VID_20260401_174500_00_001.mp4"), file("VID_20260401_175500_00_002.mp4")])
        #expect(names(choices["b"]) == ["VID_20260401_175500_00_002.mp4"])
        // When both clocks fit nothing is guessed.
        var third = ClipChooser(zone: .seconds(7200))
        let both = [file("VID_20260401_140002_00_001.mp4"), file("VID_20260401_120002_00_000.mp4")]
        #expect(names(third.choose([.init(id: "a", start: noon)], among: both)["a"]) == nil)
    }

    @Test func `No two clips ever get one file, whatever the card holds`() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<200 {
            let files = Set(
                (0..<Int.random(in: 0...6, using: &random)).map { index -> String in
                    let second = Int.random(in: 10...59, using: &random)
                    return "VID_20260401_1200\(second)_00_00\(index).mp4"
                }
            ).sorted().map { file($0) }
            let wanted = (0..<Int.random(in: 1...4, using: &random)).map { index in
                ClipChooser.Wanted(
                    id: "\(index)", path: Bool.random(using: &random) ? files.randomElement(using: &random)?.path : nil,
                    start: Bool.random(using: &random)
                        ? noon + .seconds(Double.random(in: 0...60, using: &random)) : nil,
                    segments: Int.random(in: 1...3, using: &random))
            }
            var chooser = ClipChooser(zone: .seconds(3600))
            let given = chooser.choose(wanted, among: files).values.flatMap { names($0) ?? [] }
            #expect(Set(given).count == given.count)
        }
    }

    // MARK: Sidecars

    @Test func `A pending file is SyncField Swift's, and Kotlin's is read`() throws {
        let folder = try TemporaryFolder()
        var clip = PendingClip(stream: "cam_wrist", cameraID: "go3s:1TEBJJ", cameraName: "GO 3S 1TEBJJ")
        (clip.role, clip.acknowledged, clip.uncertainty) = ("left", Timestamp(nanoseconds: 1_234), .nanoseconds(56))
        (clip.acknowledgedWall, clip.stoppedWall, clip.savedAt) = (noon, noon + .seconds(10), noon + .seconds(11))
        try clip.writeTentative(to: folder.path)
        #expect(try PendingClip.all(in: folder.path).clips.first?.isTentative == true)
        try clip.write(to: folder.path)
        #expect(try Files.list(folder.path) == ["cam_wrist.pending.json"])
        let value = try JSONText.decode(
            JSONValue.self, from: try Files.read("\(folder.path)/cam_wrist.pending.json"))
        #expect(value["streamId"] == .string("cam_wrist") && value["bleAckMonotonicNs"] == .integer(1_234))
        #expect(value["cameraFileURI"] == .string("unresolved://latest-video"))
        #expect(value["bleAckWallClockMs"] == .integer(1_775_044_800_000))
        #expect(try PendingClip.all(in: folder.path).clips == [clip])

        let kotlin = """
            {"stream_id": "cam_wrist", "ble_uuid": "", "ble_name": "GO 3S 1TEBJJ", "role": "left",
             "camera_file_uri": "/DCIM/Camera01/VID_20260401_120000_00_007.mp4", "ble_ack_monotonic_ns": 9007199254740993,
             "saved_at": "2026-04-01T12:00:11Z"}
            """
        let read = try PendingClip(reading: Array(kotlin.utf8), stream: "cam_wrist")
        #expect(read.acknowledged?.nanoseconds == 9_007_199_254_740_993)
        #expect(read.cameraPath == "/DCIM/Camera01/VID_20260401_120000_00_007.mp4")
        #expect(read.savedAt == noon + .seconds(11) && read.cameraID.isEmpty)
        #expect(throws: (any Error).self) { try PendingClip(reading: Array("[]".utf8), stream: "x") }
        #expect(throws: (any Error).self) { try PendingClip(reading: Array("{".utf8), stream: "x") }
    }

    // MARK: Copies

    @Test func `A copy is whole or isn't there`() throws {
        let folder = try TemporaryFolder()
        let source = "\(folder.path)/VID_20260401_120000_00_001.mp4"
        try AtomicFile.write([UInt8](repeating: 7, count: 9_000_000), to: source)
        let target = "\(folder.path)/wrist.mp4"
        #expect(throws: (any Error).self) { try ClipCopy.copy(source, to: target) { $0 < 5_000_000 } }
        #expect(try Files.list(folder.path) == ["VID_20260401_120000_00_001.mp4"])
        try ClipCopy.copy(source, to: target)
        #expect(try SHA256.ofFile(target) == SHA256.ofFile(source))
        #expect(throws: (any Error).self) { try ClipCopy.copy(source, to: target) }
    }

    @Test func `A clip gets its place, and doing it again changes nothing`() throws {
        let folder = try TemporaryFolder()
        let card = "\(folder.path)/card/DCIM/Camera01"
        let episode = "\(folder.path)/ep"
        try Files.makeFolder(card)
        try Files.makeFolder(episode)
        try AtomicFile.write([UInt8](repeating: 7, count: 20_000), to: "\(card)/VID_20260401_120000_00_001.mp4")
        try AtomicFile.write([UInt8](repeating: 8, count: 20_000), to: "\(card)/LRV_20260401_120000_00_001.mp4")
        var clip = PendingClip(stream: "wrist", cameraID: "go3s:A", cameraName: "GO 3S A")
        clip.acknowledgedWall = noon
        try clip.write(to: episode)
        let files = try ClipFolder.list("\(folder.path)/card")
        #expect(files.count == 1)
        let item = ClipIntake.Item(folder: episode, clip: clip)
        for _ in 0..<2 {
            let outcomes = ClipIntake().place([item], from: files) { file, path in
                try ClipCopy.copy(file.path, to: path)
            }
            guard case .placed(let names, _, _)? = outcomes[item.id] else { return #expect(Bool(false)) }
            #expect(names == ["wrist.mp4"])
            #expect(try Files.list(episode) == ["wrist.mp4"])
        }
        #expect(ClipPlacement.fileName("wrist", 1, of: 3) == "wrist_seg02.mp4")
    }
}
