internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing

@testable internal import Episode

@Suite struct WAVWriterTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// ffprobe reads format, rate, channels and duration of each encoding.
    @Test(arguments: [
        (AudioFormat.Encoding.s16, 44_100, 1, "pcm_s16le"), (.s16, 48_000, 2, "pcm_s16le"),
        (.s24, 48_000, 1, "pcm_s24le"), (.s32, 96_000, 2, "pcm_s32le"), (.f32, 48_000, 1, "pcm_f32le"),
        (.s16, 16_000, 6, "pcm_s16le"), (.f32, 48_000, 4, "pcm_f32le"),
    ])
    func othersReadIt(encoding: AudioFormat.Encoding, rate: Int, channels: Int, codec: String) throws {
        let path = "\(folder.path)/sound.wav"
        let format = AudioFormat(encoding: encoding, rate: rate, channels: channels)
        let writer = try WAVWriter(path: path, format: format)
        // 1.5 s and one odd sample frame, in pieces of 10 ms.
        let total = rate * 3 / 2 + 1
        var left = total
        while left > 0 {
            let frames = min(left, rate / 100)
            try writer.append([UInt8](repeating: 0, count: frames * format.bytesPerFrame))
            left -= frames
        }
        try writer.finish()
        #expect(writer.frames == Int64(total))
        let shown = try MediaTools.entry("stream=codec_name,sample_rate,channels,duration_ts", path)
        #expect(shown == "\(codec),\(rate),\(channels),\(total)")
        #expect(try Files.read(path).count % 2 == 0)
    }

    /// While it grows its header is never more than half a second behind.
    @Test func theHeaderIsTrueWhileItGrows() throws {
        let path = "\(folder.path)/growing.wav"
        let writer = try WAVWriter(path: path, format: AudioFormat(encoding: .s16, rate: 48_000, channels: 1))
        for _ in 0..<100 {
            try writer.append([UInt8](repeating: 1, count: 4_800))
            let copy = "\(folder.path)/copy.wav"
            try AtomicFile.write(try Files.read(path), to: copy)
            let bytes = try Files.read(copy)
            let size = bytes[76..<80].reversed().reduce(0) { $0 << 8 | Int($1) }
            #expect(Int(writer.frames) * 2 - size < 48_000)
        }
        try writer.sync()
        let bytes = try Files.read(path)
        // RIFF size: file less 8; data size at 76: 12 + 36 (JUNK) + 24 (fmt) + 4.
        #expect(bytes[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) } == bytes.count - 8)
        #expect(bytes[76..<80].reversed().reduce(0) { $0 << 8 | Int($1) } == 480_000)
    }

    /// The turn to RF64, by arithmetic: 80 bytes of header, so 2^32 - 1 + 8 - 80 bytes of samples are the most for RIFF.
    @Test func overFourGiBItIsRF64() {
        let header = WAVHeader(AudioFormat(encoding: .s16, rate: 48_000, channels: 1))
        #expect(header.length == 80)
        let most: Int64 = 4_294_967_294 - 72
        let last = header.bytes(dataBytes: most)
        #expect(Array(last[0..<4]) == Array("RIFF".utf8))
        #expect(Array(last[4..<8]) == [0xFE, 0xFF, 0xFF, 0xFF])
        #expect(Array(last[12..<16]) == Array("JUNK".utf8))

        let first = header.bytes(dataBytes: most + 2)
        #expect(first.count == 80)
        #expect(Array(first[0..<8]) == Array("RF64".utf8) + [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(Array(first[12..<16]) == Array("ds64".utf8))
        #expect(Array(first[16..<20]) == [28, 0, 0, 0])
        // 2^32 in 64 bits, then 2^32 - 72 bytes of samples, then half as many frames.
        #expect(Array(first[20..<28]) == [0, 0, 0, 0, 1, 0, 0, 0])
        #expect(Array(first[28..<36]) == [0xB8, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])
        #expect(Array(first[36..<44]) == [0xDC, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0])
        #expect(Array(first[72..<80]) == Array("data".utf8) + [0xFF, 0xFF, 0xFF, 0xFF])
    }

    /// A sparse file of 5 GiB with our header is read by ffprobe as what it is.
    @Test func othersReadRF64() throws {
        let path = "\(folder.path)/large.wav"
        let header = WAVHeader(AudioFormat(encoding: .s16, rate: 48_000, channels: 1))
        let data: Int64 = 5 << 30
        try AtomicFile.write(header.bytes(dataBytes: data), to: path)
        #expect(try MediaTools.run("truncate", ["-s", String(data + 80), path]).status == 0)
        #expect(try MediaTools.entry("stream=codec_name,duration_ts", path) == "pcm_s16le,\(data / 2)")
    }

    @Test func aBrokenSampleFrameIsRefused() throws {
        let writer = try WAVWriter(
            path: "\(folder.path)/odd.wav", format: AudioFormat(encoding: .s16, rate: 48_000, channels: 2))
        #expect(throws: EpisodeError.self) { try writer.append([1, 2, 3]) }
        #expect(writer.frames == 0)
    }

    @Test func aFullDiskLeavesATrueHeader() throws {
        guard let disk = try TinyDisk(bytes: 64 << 10, in: folder) else { return }
        let path = "\(disk.path)/full.wav"
        let writer = try WAVWriter(path: path, format: AudioFormat(encoding: .s16, rate: 48_000, channels: 1))
        let error = #expect(throws: SystemError.self) {
            for _ in 0..<100 { try writer.append([UInt8](repeating: 1, count: 9_600)) }
        }
        #expect(error?.errno == .noSpace)
        #expect(Int64(try Files.read(path).count) == writer.bytesWritten)
        #expect(try MediaTools.entry("stream=duration_ts", path) == String(writer.frames))
    }
}
