internal import Glibc
internal import Platform
internal import Timing

/// Makes the clips of an emulated camera: a test picture with the sound of the emulated room, encoded by ffmpeg.
///
/// Blocking; used by one thread at a time.
package struct Go3SClipMaker: Sendable {
    private static let rate = 48_000

    /// The card's folder; the clips are in `DCIM/Camera01`.
    package var card: String
    package var air: AirPlace?
    package var skewPPM = 0.0
    package var isCut = false

    package init(card: String, air: AirPlace? = nil) { (self.card, self.air) = (card, air) }

    package var folder: String { "\(card)/DCIM/Camera01" }

    /// Makes the files of a recording; each is whole when it has its name.
    package func make(_ recording: Go3SRecording) throws {
        try Files.makeFolder(folder)
        let length = max((recording.end - recording.begin).seconds, 0.1)
        let part = length / Double(max(recording.names.count, 1))
        for (index, name) in recording.names.enumerated() {
            let begin = recording.begin + .seconds(part * Double(index))
            try make(name, from: begin, seconds: part)
        }
    }

    private func make(_ name: String, from begin: Timestamp<HostTime>, seconds: Double) throws {
        let side = "\(folder)/.\(name).making"
        let sound = "\(side).pcm"
        defer {
            unlink(sound)
            unlink(side)
        }
        try AtomicFile.write(pcm(from: begin, seconds: seconds), to: sound)
        // The camera counts its own seconds, which are as long as its clock makes them.
        let own = seconds * (1 + skewPPM * 1e-6)
        let result = try ChildProcess.run(
            [
                "ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                "testsrc=size=320x240:rate=30:duration=\(own)", "-f", "s16le", "-ar", "\(Self.rate)", "-ac", "1", "-i",
                sound, "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "192k",
                "-cutoff", "20000", "-f", "mp4", side,
            ], within: .seconds(300))
        guard result.status == 0 else {
            throw SystemError(.inputOutput, "ffmpeg: \(result.errors.split(separator: "\n").first ?? "failed")")
        }
        if isCut, let size = Files.size(side) { truncate(side, off_t(size * 2 / 3)) }
        try Files.rename(side, to: "\(folder)/\(name)")
    }

    /// What the camera's microphone heard, by its own clock; 16-bit, one channel.
    private func pcm(from begin: Timestamp<HostTime>, seconds: Double) -> [UInt8] {
        let clock = RoomClock.ofThisProcess
        let trueRate = Double(Self.rate) * (1 + skewPPM * 1e-6)
        let count = Int((seconds * trueRate).rounded())
        var samples = [Float](repeating: 0, count: count)
        if let air {
            var listener = AirListener(folder: AirFolder(air.folder), position: air.position, rate: Self.rate)
            listener.refresh(now: clock.room(begin))
            listener.mix(into: &samples, from: clock.room(begin), rate: trueRate)
        }
        var noise = SeededNoise(seed: SeededNoise.seed("go3s", card))
        noise.add(to: &samples, deviation: Float(air?.noise ?? 0.001))
        let values = samples.map { Int16((max(-1, min(1, $0 * 0.5)) * 32_767).rounded()) }
        return values.withUnsafeBytes { Array($0) }
    }
}
