internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@Suite struct VideoFileWriterTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Every raw encoding, tight and padded rows, even and odd sizes: all frames come out and can be decoded.
    @Test(arguments: [
        (VideoFormat.Encoding.yuyv, 320, 240, 0), (.yuyv, 320, 240, 704), (.yuyv, 322, 242, 0), (.yuyv, 101, 57, 0),
        (.nv12, 320, 240, 0), (.nv12, 320, 240, 384), (.yuv420p, 320, 240, 0), (.yuv420p, 161, 121, 0),
    ])
    func everyRawFrameComesOut(encoding: VideoFormat.Encoding, width: Int, height: Int, bytesPerLine: Int) throws {
        let path = "\(folder.path)/raw.mp4"
        let format = VideoFormat(encoding: encoding, width: width, height: height, bytesPerLine: bytesPerLine)
        let writer = try VideoFileWriter(path: path, format: format, nominalRate: 30)
        let stride = bytesPerLine == 0 ? (encoding == .yuyv ? 2 * ((width + 1) & ~1) : width) : bytesPerLine
        for number in 0..<50 {
            let bytes: [UInt8]
            if encoding == .yuyv {
                bytes = TestPicture.yuyv(width: width, height: height, stride: stride, number: number)
            } else {
                // One plane of full size and chroma of half of it, with room for odd sizes.
                bytes = [UInt8](repeating: UInt8(60 + number), count: (stride + 1) * (height + 1) * 3 / 2)
            }
            let capture = Timestamp<HostTime>(nanoseconds: 5_000_000_000 + Int64(number) * 33_333_333)
            #expect(try writer.append(bytes, capture: capture, isKey: false))
        }
        try writer.finish()
        #expect(writer.frames == 50)
        #expect(writer.durableFrames == 50)
        #expect(try MediaTools.packetCount(path) == 50)
        let decoded = try MediaTools.decodedFrames(path)
        #expect(decoded.count == 50)
        #expect(decoded.complaints.isEmpty)
        #expect(Int64((try Files.read(path)).count) == writer.bytesWritten)
    }

    /// A machine without a graphics device encodes by its processor, and says so; with one, all frames come out too.
    @Test(arguments: [VideoFormat.Encoding.yuyv, .nv12, .yuv420p])
    func graphicsOrNot(encoding: VideoFormat.Encoding) throws {
        let path = "\(folder.path)/graphics.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: encoding, width: 320, height: 240), nominalRate: 30,
            encoding: .init(engine: .vaapi))
        for number in 0..<40 {
            let bytes = [UInt8](repeating: UInt8(60 + number), count: 320 * 240 * 2)
            try writer.append(bytes, capture: Timestamp(nanoseconds: Int64(number) * 33_333_333), isKey: false)
        }
        try writer.finish()
        #expect(try MediaTools.decodedFrames(path).count == 40)
        if !Files.exists("/dev/dri") {
            #expect(
                writer.notes.first?.hasSuffix("graphics.mp4: this machine has no graphics device for VA-API") == true)
        }
    }

    /// The picture in the file is the picture that was given: a bright left and a dark right half stay so.
    @Test func theContentIsTheRightOne() throws {
        let path = "\(folder.path)/halves.mp4"
        let format = VideoFormat(encoding: .yuyv, width: 64, height: 32)
        let writer = try VideoFileWriter(path: path, format: format, nominalRate: 30, encoding: .init(quality: 5))
        var bytes = [UInt8](repeating: 128, count: 64 * 32 * 2)
        for index in stride(from: 0, to: bytes.count, by: 2) { bytes[index] = index / 2 % 64 < 32 ? 200 : 40 }
        for number in 0..<5 {
            try writer.append(bytes, capture: Timestamp(nanoseconds: Int64(number) * 33_333_333), isKey: false)
        }
        try writer.finish()
        let raw = "\(folder.path)/halves.gray"
        let result = try MediaTools.run(
            "ffmpeg", ["-v", "error", "-i", "file:\(path)", "-pix_fmt", "yuv420p", "-f", "rawvideo", raw])
        #expect(result.status == 0)
        let decoded = try Files.read(raw)
        #expect(decoded.count == 5 * 64 * 32 * 3 / 2)
        // In the middle of the first row of the last picture's halves.
        let last = decoded.suffix(64 * 32 * 3 / 2)
        #expect(abs(Int(last[last.startIndex + 16]) - 200) <= 4)
        #expect(abs(Int(last[last.startIndex + 48]) - 40) <= 4)
    }

    /// Real stamps: a rate that varies from 5 to 60 frames a second and a pause of 3 s stand in the container to
    /// within a tick of 1/90000 s.
    @Test func stampsAreTheCaptureTimes() throws {
        let path = "\(folder.path)/variable.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 64, height: 48), nominalRate: 30)
        var random = SeededGenerator(seed: 7)
        var captures: [Int64] = [1_234_567_890_123_456_789]
        for number in 1..<120 {
            let step = number == 60 ? 3_000_000_000 : Int64.random(in: 16_666_666...200_000_000, using: &random)
            captures.append(captures[number - 1] + step)
        }
        for (number, capture) in captures.enumerated() {
            let bytes = TestPicture.yuyv(width: 64, height: 48, stride: 128, number: number)
            try writer.append(bytes, capture: Timestamp(nanoseconds: capture), isKey: false)
        }
        try writer.finish()
        let times = try MediaTools.times(path)
        #expect(times.count == 120)
        for (time, capture) in zip(times, captures) {
            #expect(abs(time - Double(capture - captures[0]) / 1e9) < 1.0 / 90_000)
        }
        #expect(writer.adjustedStamps == 0)
        // The last frame lasts one nominal step: 1/30 s.
        let duration = try #require(Double(try MediaTools.entry("format=duration", path)))
        #expect(abs(duration - (Double(captures[119] - captures[0]) / 1e9 + 1.0 / 30)) < 0.001)
    }

    /// Stamps that stand still, go back and leap never lose a frame or end the file.
    @Test func wildStampsLoseNoFrame() throws {
        let path = "\(folder.path)/wild.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 64, height: 48), nominalRate: 30)
        let captures: [Int64] = [
            1_000, 1_000, 500, .min, 40_000_000, .max, 80_000_000, 120_000_000, -5, 4_000_000_000_000_000_000,
            200_000_000, 1_500_000_000, 1_400_000_000, 3_000_000_000,
        ]
        for (number, capture) in captures.enumerated() {
            let bytes = TestPicture.yuyv(width: 64, height: 48, stride: 128, number: number)
            try writer.append(bytes, capture: Timestamp(nanoseconds: capture), isKey: false)
        }
        try writer.finish()
        #expect(try MediaTools.packetCount(path) == captures.count)
        let times = try MediaTools.times(path)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(writer.adjustedStamps > 0)
        #expect(try MediaTools.decodedFrames(path).count == captures.count)
    }

    /// What cameras compress is passed through: the same bytes in the same order.
    @Test(arguments: ["mjpeg", "h264", "hevc"])
    func compressedFramesArePassedThrough(codec: String) throws {
        let frames = try TestPicture.encoded(codec, frames: 45, in: folder.path)
        try #require(frames.count == 45)
        let encoding = try #require(VideoFormat.Encoding(rawValue: codec))
        let path = "\(folder.path)/passed.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: encoding, width: 320, height: 240), nominalRate: 30)
        for (number, frame) in frames.enumerated() {
            let capture = Timestamp<HostTime>(nanoseconds: Int64(number) * 33_333_333)
            // UVC drivers seldom mark key frames: the bytes have to tell.
            #expect(try writer.append(frame, capture: capture, isKey: false))
        }
        try writer.finish()
        #expect(try MediaTools.packetCount(path) == 45)
        let decoded = try MediaTools.decodedFrames(path)
        #expect(decoded.count == 45)
        #expect(decoded.complaints.isEmpty)
        // The decoded pictures have the hashes of those of the source.
        let hashes = try ["source.\(codec)", "passed.mp4"].map { name in
            let result = try MediaTools.run(
                "ffmpeg", ["-v", "error", "-i", "file:\(folder.path)/\(name)", "-f", "framehash", "-"])
            return result.output.split(separator: "\n").filter { !$0.hasPrefix("#") }
                .compactMap { $0.split(separator: ",").last }.map { $0.trimmingCharacters(in: .whitespaces) }
        }
        #expect(hashes[0].count == 45)
        #expect(hashes[0] == hashes[1])
    }

    /// A compressed stream that is joined in the middle begins with its first key frame, and says what it left out.
    @Test func framesBeforeTheFirstKeyFrameAreRefused() throws {
        let frames = try TestPicture.encoded("h264", frames: 30, in: folder.path)
        let path = "\(folder.path)/joined.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .h264, width: 320, height: 240), nominalRate: 30)
        var taken = 0
        // Key frames are frames 0, 10 and 20: 7 are lost from the fourth on.
        for (number, frame) in frames.enumerated().dropFirst(3) {
            let capture = Timestamp<HostTime>(nanoseconds: Int64(number) * 33_333_333)
            if try writer.append(frame, capture: capture, isKey: false) { taken += 1 }
        }
        try writer.finish()
        #expect(taken == 20)
        #expect(writer.refused == 7)
        #expect(try MediaTools.decodedFrames(path).count == 20)
    }

    @Test func aShortPictureIsRefusedAndTheNextTaken() throws {
        let path = "\(folder.path)/short.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 64, height: 48), nominalRate: 30)
        let picture = TestPicture.yuyv(width: 64, height: 48, stride: 128, number: 0)
        #expect(try writer.append(picture, capture: Timestamp(nanoseconds: 0), isKey: false))
        #expect(try !writer.append(Array(picture.dropLast()), capture: Timestamp(nanoseconds: 1), isKey: false))
        #expect(try !writer.append([], capture: Timestamp(nanoseconds: 1), isKey: false))
        #expect(writer.lastRefusal == "a frame without bytes came")
        #expect(try writer.append(picture, capture: Timestamp(nanoseconds: 33_000_000), isKey: false))
        try writer.finish()
        #expect(try MediaTools.packetCount(path) == 2)
    }

    /// What is on the disk at any moment lacks less than a second, and can be read without being ended.
    @Test func anUnendedFileLacksLessThanASecond() throws {
        let path = "\(folder.path)/killed.mp4"
        var flushes = 0
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 64, height: 48), nominalRate: 30,
            beforeFragment: { flushes += 1 })
        #expect(try MediaTools.entry("stream=codec_name", path) == "h264")
        for number in 0..<200 {
            let bytes = TestPicture.yuyv(width: 64, height: 48, stride: 128, number: number)
            try writer.append(bytes, capture: Timestamp(nanoseconds: Int64(number) * 33_333_333), isKey: false)
            // 30 frames are a second.
            #expect(writer.frames - writer.durableFrames <= 30)
        }
        let copy = "\(folder.path)/copy.mp4"
        try AtomicFile.write(try Files.read(path), to: copy)
        #expect(Int64(try MediaTools.packetCount(copy)) == writer.durableFrames)
        #expect(try MediaTools.decodedFrames(copy).complaints.isEmpty)
        #expect(flushes == 6)
        try writer.finish()
    }

    @Test func aRecordingIsNeverWrittenOver() throws {
        let path = "\(folder.path)/twice.mp4"
        let format = VideoFormat(encoding: .mjpeg, width: 64, height: 48)
        _ = try VideoFileWriter(path: path, format: format, nominalRate: 30)
        #expect(throws: SystemError.self) { try VideoFileWriter(path: path, format: format, nominalRate: 30) }
    }

    /// On a file system without space the file ends with a whole fragment, and the error names the path.
    @Test func aFullDiskLeavesWholeFragments() throws {
        let disk = try TinyDisk(bytes: 2 << 20, in: folder)
        guard let disk else { return }
        let path = "\(disk.path)/full.mp4"
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 320, height: 240), nominalRate: 30,
            encoding: .init(quality: 10))
        var random = SeededGenerator(seed: 3)
        let pictures = (0..<3).map { _ in
            (0..<320 * 240 * 2).map { _ in UInt8.random(in: 16...235, using: &random) }
        }
        let error = #expect(throws: SystemError.self) {
            for number in 0..<3_000 {
                try writer.append(
                    pictures[number % 3], capture: Timestamp(nanoseconds: Int64(number) * 200_000_000), isKey: false)
            }
        }
        #expect(error?.errno == .noSpace)
        #expect(error?.description.contains(path) == true)
        #expect(throws: SystemError.self) { try writer.finish() }
        #expect(Int64(try MediaTools.packetCount(path)) == writer.durableFrames)
        #expect(try MediaTools.decodedFrames(path).complaints.isEmpty)
    }
}
