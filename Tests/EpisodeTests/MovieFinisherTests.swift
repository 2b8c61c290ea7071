internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Episode

@Suite(.timeLimit(.minutes(2))) struct MovieFinisherTests {
    let folder: TemporaryFolder
    var path: String { "\(folder.path)/cam.mp4" }

    init() throws { folder = try TemporaryFolder() }

    /// A recording of JPEG pictures at uneven times that isn't ended; 60 frames in about 4 s.
    @discardableResult
    private func record(longest: Interval, path: String? = nil, codec: String = "mjpeg") throws -> VideoFileWriter {
        let frames = try TestPicture.encoded(codec, frames: 60, in: folder.path)
        let encoding = try #require(VideoFormat.Encoding(rawValue: codec))
        let writer = try VideoFileWriter(
            path: path ?? self.path, format: VideoFormat(encoding: encoding, width: 320, height: 240), nominalRate: 30,
            longest: longest)
        var time: Int64 = 1_000_000_000
        for (number, frame) in frames.enumerated() {
            try writer.append(frame, capture: Timestamp(nanoseconds: time), isKey: true)
            time += number == 40 ? 2_000_000_000 : 33_333_333 + Int64(number % 3) * 1_000_000
        }
        return writer
    }

    /// Everything that ffprobe says of the packets, with a hash of each.
    private func packets(_ path: String) throws -> [String] {
        let result = try MediaTools.run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v:0", "-show_data_hash", "sha256", "-show_entries",
                "packet=pts,dts,size,flags,data_hash", "-of", "csv=p=0", "file:\(path)",
            ])
        try #require(result.errors.isEmpty, "\(result.errors)")
        return result.output.split(separator: "\n").map(String.init)
    }

    private func boxes(_ path: String) throws -> [String] { BoxView.list(try Files.read(path)[...]).map(\.kind) }

    private func copy(_ source: String, _ name: String) throws -> String {
        let target = "\(folder.path)/\(name)"
        try AtomicFile.write(try Files.read(source), to: target)
        return target
    }

    /// Both ways: the same packets with the same bytes at the same times, the index in front, the same length.
    @Test(arguments: ["mjpeg", "h264", "hevc"], [1.0, 36_000])
    func nothingButTheIndexChanges(codec: String, longest: Double) throws {
        try record(longest: .seconds(longest), codec: codec).sync()
        // All but the last fragment, as a kill leaves it.
        let before = try packets(path)
        let whole = try #require(try TornTail.wholeLength(ofFragments: path))
        let torn = try copy(path, "torn.mp4")
        let way = try MovieFinisher.finish(torn)
        #expect(try packets(torn) == before)
        let writer = try record(longest: .seconds(longest), path: "\(folder.path)/ended.mp4", codec: codec)
        try writer.finish()
        let ended = try packets("\(folder.path)/ended.mp4")
        #expect(ended.count == 60)
        func hashes(_ lines: some Sequence<String>) -> [Substring] {
            lines.compactMap { $0.split(separator: ",").last }
        }
        #expect(hashes(ended.prefix(before.count)) == hashes(before))
        for file in ["torn.mp4", "ended.mp4"] {
            let kinds = try boxes("\(folder.path)/\(file)")
            #expect(kinds == ["ftyp", "moov", "mdat"] || kinds == ["ftyp", "moov", "free", "mdat"])
        }
        // 59 steps of 33.3 to 35.3 ms, one of them 2 s, and a nominal one.
        var steps = 2.0
        for number in 0..<59 where number != 40 { steps += 0.033333333 + Double(number % 3) * 0.001 }
        let duration = try #require(Double(try MediaTools.entry("format=duration", "\(folder.path)/ended.mp4")))
        #expect(abs(duration - steps - 1.0 / 30) < 0.001)
        // 60 pictures of some kilobytes: far more than sixteen times the least room only as JPEGs.
        let data = try #require(Files.size(path)).advanced(by: 0) - whole
        #expect(data >= 0)
        #expect(way == (longest == 1 && codec == "mjpeg" ? .inPlace : .copied))
        let tag = try MediaTools.entry("stream=codec_tag_string", "\(folder.path)/ended.mp4")
        #expect(tag == ["mjpeg": "mp4v", "h264": "avc1", "hevc": "hvc1"][codec])
        #expect(try MovieFinisher.finish(torn) == .untouched)
        #expect(try MediaTools.decodedFrames(torn).complaints.isEmpty)
    }

    /// A file in fragments has the length that it had on the wall, ± a frame, also before its end.
    @Test func fragmentsHaveTheRightLength() throws {
        let writer = try record(longest: .seconds(60))
        try writer.sync()
        let times = try MediaTools.times(path)
        #expect(Int64(times.count) == writer.durableFrames)
        let duration = try #require(Double(try MediaTools.entry("format=duration", path)))
        #expect(abs(duration - (times.last ?? 0)) < 2.1)
        #expect(duration >= (times.last ?? 0))
    }

    /// A program that dies anywhere in between leaves a file that can be read and finished.
    @Test func anInterruptionDoesNoHarm() throws {
        _ = try record(longest: .seconds(1))
        let before = try packets(path)
        // The room half written, whatever is in it, but its head is still that of a free box.
        let bytes = try Files.read(path)
        let free = try #require(BoxView.list(bytes[...]).first { $0.kind == "free" })
        var random = SeededGenerator(seed: 5)
        for cut in [9, 100, 4_000, free.whole.count - 8, free.whole.count] {
            var torn = bytes
            for index in 8..<cut { torn[free.whole.startIndex + index] = UInt8.random(in: 0...255, using: &random) }
            let file = "\(folder.path)/torn\(cut).mp4"
            try AtomicFile.write(torn, to: file)
            #expect(try packets(file) == before)
            #expect(try MovieFinisher.finish(file) == .inPlace)
            #expect(try packets(file) == before)
        }
        // A copy that was never renamed.
        let other = "\(folder.path)/other.mp4"
        try record(longest: .seconds(36_000), path: other).sync()
        try AtomicFile.write([1, 2, 3], to: other + ".part")
        #expect(try MovieFinisher.finish(other) == .copied)
        #expect(try packets(other).count == before.count)
        #expect(!Files.exists(other + ".part"))
    }

    /// Every length that a file can have: what is whole is kept, and finishing never crashes.
    @Test func anyPrefixCanBeFinished() throws {
        _ = try record(longest: .seconds(1))
        let bytes = try Files.read(path)
        let all = try packets(path).count
        for part in 0...24 {
            let file = "\(folder.path)/prefix.mp4"
            try AtomicFile.write(Array(bytes.prefix(bytes.count * part / 24)), to: file)
            if let whole = try TornTail.wholeLength(ofFragments: file) {
                try AtomicFile.write(Array(bytes.prefix(Int(whole))), to: file)
            }
            let way = try MovieFinisher.finish(file)
            if part == 24 { #expect(try packets(file).count == all) }
            if way != .untouched { #expect(try packets(file).count <= all) }
        }
    }

    /// Random damage in the heads of fragments never crashes and never makes a wrong index.
    @Test func damageIsFound() throws {
        _ = try record(longest: .seconds(36_000))
        let bytes = try Files.read(path)
        let heads = BoxView.list(bytes[...]).filter { $0.kind == "moof" || $0.kind == "moov" }
        var random = SeededGenerator(seed: 8)
        for _ in 0..<150 {
            var damaged = bytes
            let head = try #require(heads.randomElement(using: &random))
            for _ in 0..<3 {
                damaged[Int.random(in: head.whole.startIndex..<head.whole.endIndex, using: &random)] =
                    UInt8.random(in: 0...255, using: &random)
            }
            let file = "\(folder.path)/damaged.mp4"
            try AtomicFile.write(damaged, to: file)
            do { try MovieFinisher.finish(file) } catch is EpisodeError {
                #expect(try Files.read(file) == damaged)
            }
        }
    }

    /// On a full disk the copy fails, and the fragments are as they were.
    @Test func aFullDiskKeepsTheFragments() throws {
        guard let disk = try TinyDisk(bytes: 900_000, in: folder) else { return }
        let file = "\(disk.path)/cam.mp4"
        let writer = try record(longest: .seconds(36_000), path: file)
        let before = try packets(file)
        #expect(throws: SystemError.self) { try MovieFinisher.finish(file) }
        #expect(try packets(file) == before)
        try writer.finish()
        #expect(writer.notes.count == 1)
        #expect(try packets(file).count == 60)
        #expect(try Files.list(disk.path) == ["cam.mp4"])
    }

    /// A camera that changes its parameter sets: they stay among the samples, and all frames can be decoded.
    @Test func changedParameterSetsStayInside() throws {
        let first = try TestPicture.encoded("h264", frames: 20, in: folder.path)
        let other = try TestPicture.encoded("h264", frames: 20, in: folder.path, size: "160x120")
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .h264, width: 320, height: 240), nominalRate: 30)
        for (number, frame) in (first + other).enumerated() {
            try writer.append(frame, capture: Timestamp(nanoseconds: Int64(number) * 33_333_333), isKey: false)
        }
        try writer.finish()
        #expect(writer.parameterChanges == 1)
        #expect(writer.notes.count == 1)
        #expect(try MediaTools.entry("stream=codec_tag_string", path) == "avc3")
        let decoded = try MediaTools.decodedFrames(path)
        #expect(decoded.count == 40)
        #expect(decoded.complaints.isEmpty)
    }
}
