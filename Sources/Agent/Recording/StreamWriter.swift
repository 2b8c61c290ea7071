internal import Devices
package import Episode
internal import Platform
internal import Protocol
package import Timing

/// The files of one stream in one take; used by the stream's writer thread alone.
protocol StreamWriter: AnyObject {
    /// Adds a sample that the gate has let in.
    ///
    /// - Returns: how many samples are in the file now that weren't before (audio: sample frames); 0 for one that can't
    ///   be in it.
    func append(_ sample: Sample) throws -> Int64

    /// A sample came before T0: it is not written, and may tell something of its clock.
    func passed(_ sample: Sample)

    /// Samples were lost before the next one.
    func interrupted()

    /// The samples from here on are of this description; where the file can't hold them, the next one is begun.
    func describe(_ description: StreamDescription) throws
    /// The name of the file that is being written; nil for the usual one.
    var currentFile: String? { get }

    /// Brings all to the disk.
    func sync() throws
    func finish() throws

    var bytesWritten: Int64 { get }
    /// Why a sample that `append` answered with 0 can't be in the file.
    var lastRefusal: String? { get }
    /// Frames whose stamp in the container had to be moved.
    var adjustedStamps: Int64? { get }
    /// The sound that is in the file beside its own samples.
    var sound: SoundRecord? { get }
    /// What the operator should know of the files; whole after `finish`.
    var notes: [String] { get }
}

extension StreamWriter {
    func passed(_ sample: Sample) {}
    func interrupted() {}
    func describe(_ description: StreamDescription) throws {}
    var currentFile: String? { nil }
    var lastRefusal: String? { nil }
    var adjustedStamps: Int64? { nil }
    var sound: SoundRecord? { nil }
    var notes: [String] { [] }
}

/// Where the files of a take go, and what they have to do with each other.
package struct WriterPlace: Sendable {
    package var folder: String
    package var clockDomain: String
    /// How long the take may become.
    package var longest: Interval
    /// For a video what is to be heard in it, for a microphone where else its sound goes.
    package var sound: SoundFeed?
    /// How pictures are encoded that a camera hasn't compressed.
    package var encoding = VideoFileWriter.Encoding()

    package init(folder: String, clockDomain: String, longest: Interval = .seconds(600), sound: SoundFeed? = nil) {
        self.folder = folder
        self.clockDomain = clockDomain
        self.longest = longest
        self.sound = sound
    }
}

enum StreamWriters {
    /// Makes the files of a stream in a folder.
    static func writer(_ stream: StreamDescription, _ place: WriterPlace) throws -> any StreamWriter {
        switch stream.kind {
        case .video:
            guard let format = stream.video else { throw missing(stream, "a picture format") }
            return try VideoStreamWriter(stream, format, place)
        case .audio:
            guard let format = stream.audio else { throw missing(stream, "a sound format") }
            return try AudioStreamWriter(stream, format, place)
        case .sensor:
            guard let format = stream.sensor else { throw missing(stream, "channels") }
            return try SensorStreamWriter(stream, format, place)
        }
    }

    private static func missing(_ stream: StreamDescription, _ what: String) -> SessionError {
        .deviceUnsupported(reason: "stream '\(stream.id)': its device (\(stream.deviceKind)) didn't say \(what)")
    }
}

/// `<id>.mp4` and `<id>.timestamps.jsonl`.
final class VideoStreamWriter: StreamWriter {
    private var video: VideoFileWriter
    private let stamps: TimestampLog
    private let place: WriterPlace
    private var stream: StreamDescription
    /// Of the files before this one.
    private var (framesBefore, bytesBefore, adjustedBefore) = (Int64(0), Int64(0), Int64(0))
    private var notesBefore: [String] = []
    private var firstSound: SoundRecord?
    private var segment = 0

    init(_ stream: StreamDescription, _ format: VideoFormat, _ place: WriterPlace) throws {
        let stamps = try TimestampLog(
            path: "\(place.folder)/\(EpisodeLayout.timestamps(stream.id))", clockDomain: place.clockDomain)
        self.stamps = stamps
        self.place = place
        self.stream = stream
        // No frame is ever on the disk without its stamp.
        video = try VideoFileWriter(
            path: "\(place.folder)/\(EpisodeLayout.video(stream.id))", format: format,
            nominalRate: stream.nominalRate ?? 30, encoding: place.encoding, longest: place.longest, sound: place.sound,
            beforeFragment: { try stamps.flush() })
    }

    func append(_ sample: Sample) throws -> Int64 {
        guard case .frame(let bytes, let isKey) = sample.payload else { return 0 }
        let frame = framesBefore + video.frames
        guard try video.append(bytes, capture: sample.capture, isKey: isKey) else { return 0 }
        try stamps.append(
            frame: frame, capture: sample.capture, uncertainty: sample.uncertainty, device: sample.device,
            extra: extra(sample))
        return 1
    }

    /// Keys beside the documented ones: the driver's counter, what is wrong with the frame, and the file it is in.
    private func extra(_ sample: Sample) -> [(String, JSONValue)] {
        var extra: [(String, JSONValue)] = []
        if let sequence = sample.sequence { extra.append(("sequence", .integer(sequence))) }
        if !sample.flags.isEmpty { extra.append(("flags", .array(sample.flags.names.map { .string($0) }))) }
        if segment > 0 { extra.append(("segment", .integer(Int64(segment)))) }
        return extra
    }

    func describe(_ description: StreamDescription) throws {
        guard let format = description.video, format != stream.video else {
            stream = description
            return
        }
        // A file in which nothing is yet is begun anew; one that has frames is ended, and the next one has the rest.
        if video.frames == 0 {
            try? video.finish()
            try Files.remove("\(place.folder)/\(currentFile ?? EpisodeLayout.video(stream.id))")
        } else {
            try video.finish()
            notesBefore += video.notes
            firstSound = firstSound ?? video.soundRecord
            (framesBefore, bytesBefore) = (framesBefore + video.frames, bytesBefore + video.bytesWritten)
            adjustedBefore += video.adjustedStamps
            segment += 1
        }
        stream = description
        let stamps = stamps
        // The sound is in the first file, and whole in its own.
        video = try VideoFileWriter(
            path: "\(place.folder)/\(currentFile ?? EpisodeLayout.video(stream.id))", format: format,
            nominalRate: description.nominalRate ?? 30, longest: place.longest,
            sound: segment == 0 ? place.sound : nil, beforeFragment: { try stamps.flush() })
    }

    var currentFile: String? { segment == 0 ? nil : EpisodeLayout.videoSegment(stream.id, segment) }

    func sync() throws {
        try stamps.sync()
        try video.sync()
    }

    func finish() throws {
        // Both are closed, whatever the first one says.
        defer { try? stamps.finish() }
        try video.finish()
        try stamps.finish()
    }

    var bytesWritten: Int64 { bytesBefore + video.bytesWritten + stamps.bytesWritten }
    var lastRefusal: String? { video.lastRefusal }
    var adjustedStamps: Int64? { adjustedBefore + video.adjustedStamps }
    var sound: SoundRecord? { firstSound ?? video.soundRecord }
    var notes: [String] { notesBefore + video.notes }
}

/// `<id>.wav`, and `<id>.timestamps.jsonl` with a row every 100 ms and after each gap.
final class AudioStreamWriter: StreamWriter {
    private static let rowInterval = Interval.milliseconds(100)
    private let wav: WAVWriter
    private let stamps: TimestampLog
    private let format: AudioFormat
    private let feed: SoundFeed?
    private var lastRow: Timestamp<HostTime>?
    private var isFilling = false
    private var level = AudioLevel()

    init(_ stream: StreamDescription, _ format: AudioFormat, _ place: WriterPlace) throws {
        self.format = format
        feed = place.sound
        stamps = try TimestampLog(
            path: "\(place.folder)/\(EpisodeLayout.timestamps(stream.id))", clockDomain: place.clockDomain)
        wav = try WAVWriter(path: "\(place.folder)/\(EpisodeLayout.audio(stream.id))", format: format)
    }

    func append(_ sample: Sample) throws -> Int64 {
        guard case .audio(let bytes, let frames) = sample.payload, frames > 0 else { return 0 }
        let before = wav.frames
        try wav.append(bytes)
        feed?.push(bytes, frames: frames, capture: sample.capture)
        level.add(bytes, format.encoding)
        // Silence that stands for a gap begins and ends with a row.
        if sample.isFilling != isFilling { lastRow = nil }
        isFilling = sample.isFilling
        if lastRow.map({ sample.capture - $0 >= Self.rowInterval }) ?? true {
            try stamps.append(
                frame: before, capture: sample.capture, uncertainty: sample.uncertainty, device: sample.device,
                extra: [("rms", .number(Self.rounded(level.rms))), ("peak", .number(Self.rounded(level.peak)))]
                    + (isFilling ? [("filled", .bool(true))] : []))
            lastRow = sample.capture
            level = AudioLevel()
        }
        return wav.frames - before
    }

    func passed(_ sample: Sample) {
        guard case .audio(_, let frames) = sample.payload else { return }
        feed?.observe(frames: frames, capture: sample.capture)
    }

    func interrupted() {
        lastRow = nil
        feed?.interrupt()
    }

    func sync() throws {
        try wav.sync()
        try stamps.sync()
    }

    func finish() throws {
        defer { try? stamps.finish() }
        try wav.finish()
        try stamps.finish()
    }

    var bytesWritten: Int64 { wav.bytesWritten + stamps.bytesWritten }

    /// Six digits are more than 16 bits have.
    private static func rounded(_ value: Double) -> Double { (value * 1e6).rounded() / 1e6 }
}

/// `<id>.jsonl`.
final class SensorStreamWriter: StreamWriter {
    private let log: SensorLog
    private(set) var lastRefusal: String?

    init(_ stream: StreamDescription, _ format: SensorFormat, _ place: WriterPlace) throws {
        log = try SensorLog(
            path: "\(place.folder)/\(EpisodeLayout.sensor(stream.id))", clockDomain: place.clockDomain,
            channels: format.channels.map(\.name))
    }

    func append(_ sample: Sample) throws -> Int64 {
        guard case .values(let values) = sample.payload else { return 0 }
        do {
            try log.append(
                frame: log.rows, capture: sample.capture, uncertainty: sample.uncertainty, values: values,
                device: sample.device)
        } catch let error as EpisodeError {
            // A row that doesn't fit the channels: the file is whole without it.
            lastRefusal = error.description
            return 0
        }
        return 1
    }

    func sync() throws { try log.sync() }
    func finish() throws { try log.finish() }
    var bytesWritten: Int64 { log.bytesWritten }
}
