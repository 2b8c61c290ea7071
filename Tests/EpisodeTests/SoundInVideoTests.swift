internal import AcousticScenes
internal import Acoustics
internal import Episode
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// A take of a camera and a microphone with chirps in it, written as the agent writes it.
private struct SoundTake {
    static let spec = ChirpSpec(fromHz: 17_000, toHz: 19_000, amplitude: 0.3)
    static let start = 7_000_000_000_000_000_123

    var rate = 48_000
    var channels = 1
    var encoding = AudioFormat.Encoding.s16
    /// Of the card's clock.
    var ppm = 0.0
    /// Of the stamps, standard deviation.
    var jitter = 0.0
    /// How long before its begin its stamps are seen, seconds.
    var observed = 0.0
    /// When the microphone begins after the first frame, seconds.
    var soundStart = -0.1
    /// Begins of chirps after the first frame, seconds.
    var chirps = [1.0]
    /// When the microphone delivers nothing.
    var holes: [ClosedRange<Double>] = []
    var seconds = 3.0

    /// Writes it; gives back the writer, which is ended unless it is killed.
    func write(_ path: String, kill: Bool = false) throws -> VideoFileWriter {
        let format = AudioFormat(encoding: encoding, rate: rate, channels: channels)
        let feed = SoundFeed(source: StreamID(unchecked: "host_audio"), format: format)
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 64, height: 48), nominalRate: 30, sound: feed)
        let trueRate = Double(rate) * (1 + ppm * 1e-6)
        let count = Int((seconds - soundStart) * trueRate)
        var signal = [Float](repeating: 0, count: count)
        for begin in chirps {
            let place = (begin - soundStart) * trueRate
            let chirp = Scene.chirp(Self.spec, rate: Double(rate), at: place, count: count, stretch: 1 + ppm * 1e-6)
            for index in signal.indices { signal[index] += chirp[index] }
        }
        var random = SeededGenerator(seed: 11)
        Scene.addNoise(0.001, to: &signal, &random)
        let block = rate / 50
        var next = 0
        for number in 0..<Int(observed * 50) {
            let begin = soundStart - Double((Int(observed * 50) - number) * block) / trueRate
            let stamp = begin + jitter * random.normal()
            feed.observe(frames: block, capture: Timestamp(nanoseconds: Int64(Self.start) + Int64(stamp * 1e9)))
        }
        for number in 0..<Int(seconds * 30) {
            let time = Double(number) / 30
            // Blocks that are complete when the frame comes.
            while soundStart + Double(next + block) / trueRate <= time, next + block <= count {
                let begin = soundStart + Double(next) / trueRate
                let isLost = holes.contains { $0.overlaps(begin...begin + Double(block) / trueRate) }
                if isLost {
                    feed.interrupt()
                } else {
                    let stamp = begin + jitter * random.normal()
                    feed.push(
                        pcm(signal[next..<next + block]), frames: block,
                        capture: Timestamp(nanoseconds: Int64(Self.start) + Int64(stamp * 1e9)))
                }
                next += block
            }
            try writer.append(
                TestPicture.yuyv(width: 64, height: 48, stride: 128, number: number),
                capture: Timestamp(nanoseconds: Int64(Self.start) + Int64(time * 1e9)), isKey: false)
        }
        if !kill { try writer.finish() }
        return writer
    }

    private func pcm(_ samples: ArraySlice<Float>) -> [UInt8] {
        var bytes: [UInt8] = []
        for sample in samples {
            for _ in 0..<channels {
                switch encoding {
                case .s16: bytes.append(little: Int16((sample * 32_767).rounded()))
                case .s32: bytes.append(little: Int32((Double(sample) * 2_147_483_647).rounded()))
                case .s24:
                    let value = UInt32(bitPattern: Int32((sample * 8_388_607).rounded()))
                    bytes += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
                    bytes.append(UInt8(truncatingIfNeeded: value >> 16))
                case .f32: bytes.append(little: sample.bitPattern)
                }
            }
        }
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(little value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}

@Suite(.timeLimit(.minutes(3))) struct SoundInVideoTests {
    let folder: TemporaryFolder
    var path: String { "\(folder.path)/cam.mp4" }

    init() throws { folder = try TemporaryFolder() }

    /// What ffmpeg's decoder makes of the track, at 48 kHz, and the time of its first sample after the first frame.
    private func decode(_ path: String) throws -> (samples: [Float], start: Double) {
        let raw = "\(folder.path)/decoded.f32"
        let result = try MediaTools.run(
            "ffmpeg",
            [
                "-v", "error", "-y", "-i", "file:\(path)", "-map", "0:a:0", "-af", "pan=mono|c0=c0", "-ar", "48000",
                "-f", "f32le",
                raw,
            ])
        try #require(result.status == 0, "\(result.errors)")
        let data = try Data(contentsOf: URL(fileURLWithPath: raw))
        let first = try ["a:0", "v:0"].map { stream in
            let text = try MediaTools.run(
                "ffprobe",
                [
                    "-v", "error", "-select_streams", stream, "-read_intervals", "%+#3", "-show_entries",
                    "frame=pts_time", "-of", "csv=p=0", "file:\(path)",
                ]
            ).output
            return try #require(Double(text.split(whereSeparator: { ",\n".contains($0) }).first ?? ""))
        }
        return (data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }, first[0] - first[1])
    }

    private func arrivals(_ samples: [Float]) throws -> [Double] {
        let filter = try #require(MatchedFilter(specs: [SoundTake.spec], rate: 48_000))
        let found = filter.push(samples) + filter.finish()
        let estimator = ArrivalEstimator(spec: SoundTake.spec, rate: 48_000)
        return try found.map { try #require(estimator.estimate(samples, near: $0.position).arrival).position / 48_000 }
    }

    /// A chirp is heard in the video when it was heard in the room: to a millisecond, for any card.
    @Test(arguments: [
        SoundTake(),
        SoundTake(soundStart: 0.35),
        SoundTake(soundStart: -0.0313),
        SoundTake(rate: 44_100, channels: 2, encoding: .s24, jitter: 100e-6),
        SoundTake(rate: 96_000, channels: 4, encoding: .s32),
        SoundTake(ppm: 1000, jitter: 100e-6, observed: 2, chirps: [0.5, 3, 10, 18], seconds: 20),
        SoundTake(ppm: 80, jitter: 100e-6, chirps: [0.5, 3, 10, 18], seconds: 20),
        SoundTake(encoding: .f32, ppm: -150, jitter: 500e-6, observed: 2, chirps: [0.7, 5, 18], seconds: 20),
    ])
    private func aChirpIsInItsPlace(take: SoundTake) throws {
        let writer = try take.write(path)
        #expect(writer.notes.isEmpty)
        let (samples, start) = try decode(path)
        let found = try arrivals(samples)
        try #require(found.count == take.chirps.count)
        for (place, begin) in zip(found, take.chirps) {
            let error = place + start - begin
            // A pacer that has heard nothing before T0 doesn't know the card's rate in the first second: 1.2 ms were seen.
            let allowed = take.observed == 0 && begin < 1 ? 0.002 : 0.001
            #expect(abs(error) < allowed, "\((error * 1e6).rounded()) µs at \(begin) s")
        }
        // Sound and pictures end together, to a frame and a packet.
        let length = Double(samples.count) / 48_000
        let allowed = 1.0 / 30 + 2 * 1024.0 / 48_000
        #expect(abs(length - take.seconds) < allowed)
        let record = try #require(writer.soundRecord)
        #expect(record.source.rawValue == "host_audio")
        if take.seconds > 10 { #expect(abs((record.skewPPM ?? 0) - take.ppm) < 20) }
        let silence = max(0, take.soundStart)
        #expect(abs(record.silenceLength.seconds - silence) < 0.001)
    }

    /// 17 to 19 kHz go through encoder and decoder: the chirp loses at most 0.2 dB.
    @Test(arguments: [(48_000, 1), (44_100, 1), (48_000, 2), (96_000, 1)])
    func theEncoderKeepsTheChirp(rate: Int, channels: Int) throws {
        let take = SoundTake(rate: rate, channels: channels)
        _ = try take.write(path)
        let (samples, start) = try decode(path)
        let place = Int((1 - start) * 48_000)
        // Without its soft ends, a sine of amplitude 0.3 has a power of 0.045.
        let power = Scene.power(samples, place + 1_500..<place + 22_500)
        let decibels = 10 * log10(power / 0.045)
        print("loss of the chirp at \(rate) Hz, \(channels) channels: \((-decibels * 1000).rounded() / 1000) dB")
        #expect(decibels > -0.2 && decibels < 0.2)
    }

    /// A hole is silence of its length, written down, and what comes after it is in its place; a microphone that dies
    /// ends in silence, and the video goes on.
    @Test func holesAreSilence() throws {
        let take = SoundTake(chirps: [0.3, 2.5], holes: [1.2...1.5, 4...9], seconds: 6)
        let writer = try take.write(path)
        let (samples, start) = try decode(path)
        let found = try arrivals(samples)
        try #require(found.count == 2)
        #expect(abs(found[0] + start - 0.3) < 0.001)
        #expect(abs(found[1] + start - 2.5) < 0.001)
        let record = try #require(writer.soundRecord)
        try #require(record.silences.count == 2)
        // Blocks of 20 ms that the hole touches are lost.
        #expect(abs((record.silences[0].to - record.silences[0].from).seconds - 0.32) < 0.021)
        #expect(abs((record.silences[1].to - record.silences[1].from).seconds - 2) < 0.06)
        #expect(try MediaTools.packetCount(path) == 180)
        let silent = 196_000..<284_000
        #expect(Scene.power(samples, silent) < 1e-9)
    }

    /// A program that was killed leaves fragments with both tracks, and its recovery makes them whole.
    @Test func aKilledVideoHasItsSound() throws {
        let take = SoundTake(chirps: [0.5], seconds: 4)
        let writer = try take.write(path, kill: true)
        #expect(writer.durableFrames >= 90)
        let (raw, rawStart) = try decode(path)
        #expect(try abs(#require(arrivals(raw).first) + rawStart - 0.5) < 0.001)
        #expect(try MovieFinisher.finish(path) == .copied)
        let (samples, start) = try decode(path)
        #expect(try abs(#require(arrivals(samples).first) + start - 0.5) < 0.001)
        #expect(samples.count > 2 * 48_000)
        #expect(Int64(try MediaTools.packetCount(path)) == writer.durableFrames)
    }

    /// The camera stalls for 40 s while the microphone goes on: nothing of either is lost, and nothing is moved.
    @Test func soundGoesOnWhileTheCameraStalls() throws {
        let format = AudioFormat(encoding: .s16, rate: 48_000, channels: 1)
        let feed = SoundFeed(source: StreamID(unchecked: "mic"), format: format)
        let writer = try VideoFileWriter(
            path: path, format: VideoFormat(encoding: .yuyv, width: 64, height: 48), nominalRate: 30, sound: feed)
        let place = 41.5
        let chirp = Scene.chirp(SoundTake.spec, rate: 48_000, at: place * 48_000, count: 43 * 48_000)
        func hear(_ second: Int) {
            for block in 0..<50 {
                let first = second * 48_000 + block * 960
                var bytes: [UInt8] = []
                for sample in chirp[first..<first + 960] { bytes.append(little: Int16((sample * 32_767).rounded())) }
                feed.push(bytes, frames: 960, capture: Timestamp(nanoseconds: Int64(first) * 1_000_000_000 / 48_000))
            }
        }
        func see(_ seconds: Double) throws {
            try writer.append(
                TestPicture.yuyv(width: 64, height: 48, stride: 128, number: Int(seconds * 30)),
                capture: Timestamp(nanoseconds: Int64(seconds * 1e9)), isKey: false)
        }
        try see(0)
        for second in 0..<43 {
            hear(second)
            try writer.sync()
        }
        for frame in 0..<60 { try see(41 + Double(frame) / 30) }
        try writer.finish()
        #expect(writer.soundRecord?.silences.isEmpty == true)
        let (samples, start) = try decode(path)
        #expect(try abs(#require(arrivals(samples).first) + start - place) < 0.001)
        let times = try MediaTools.times(path)
        #expect(times.count == 61)
        #expect(abs(times[1] - 41) < 1e-4)
    }

    @Test func aMicrophoneThatNeverSpeaksIsNotCalledSound() throws {
        var take = SoundTake(chirps: [])
        take.holes = [-1...10]
        let writer = try take.write(path)
        #expect(writer.soundRecord == nil)
        #expect(try MediaTools.packetCount(path) == 90)
        #expect(try MediaTools.decodedFrames(path).complaints.isEmpty)
    }
}
