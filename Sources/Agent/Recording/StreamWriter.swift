internal import Devices
internal import Episode
internal import Protocol
internal import Timing

/// The files of one stream in one take; used by the stream's writer thread alone.
protocol StreamWriter: AnyObject {
    /// Adds a sample that the gate has let in.
    ///
    /// - Returns: how many samples are in the file now that weren't before (audio: sample frames); 0 for one that can't
    ///   be in it.
    func append(_ sample: Sample) throws -> Int64

    /// Samples were lost before the next one.
    func interrupted()

    /// Brings all to the disk.
    func sync() throws
    func finish() throws

    var bytesWritten: Int64 { get }
    /// Why a sample that `append` answered with 0 can't be in the file.
    var lastRefusal: String? { get }
    /// Frames whose stamp in the container had to be moved.
    var adjustedStamps: Int64? { get }
}

extension StreamWriter {
    func interrupted() {}
    var lastRefusal: String? { nil }
    var adjustedStamps: Int64? { nil }
}

enum StreamWriters {
    /// Makes the files of a stream in a folder.
    static func writer(_ stream: StreamDescription, folder: String, clockDomain: String) throws -> any StreamWriter {
        switch stream.kind {
        case .video:
            guard let format = stream.video else { throw missing(stream, "a picture format") }
            return try VideoStreamWriter(stream, format, folder: folder, clockDomain: clockDomain)
        case .audio:
            guard let format = stream.audio else { throw missing(stream, "a sound format") }
            return try AudioStreamWriter(stream, format, folder: folder, clockDomain: clockDomain)
        case .sensor:
            guard let format = stream.sensor else { throw missing(stream, "channels") }
            return try SensorStreamWriter(stream, format, folder: folder, clockDomain: clockDomain)
        }
    }

    private static func missing(_ stream: StreamDescription, _ what: String) -> SessionError {
        .deviceUnsupported(reason: "stream '\(stream.id)': its device (\(stream.deviceKind)) didn't say \(what)")
    }
}

/// `<id>.mp4` and `<id>.timestamps.jsonl`.
final class VideoStreamWriter: StreamWriter {
    private let video: VideoFileWriter
    private let stamps: TimestampLog

    init(_ stream: StreamDescription, _ format: VideoFormat, folder: String, clockDomain: String) throws {
        let stamps = try TimestampLog(
            path: "\(folder)/\(EpisodeLayout.timestamps(stream.id))", clockDomain: clockDomain)
        self.stamps = stamps
        // No frame is ever on the disk without its stamp.
        video = try VideoFileWriter(
            path: "\(folder)/\(EpisodeLayout.video(stream.id))", format: format, nominalRate: stream.nominalRate ?? 30,
            beforeFragment: { try stamps.flush() })
    }

    func append(_ sample: Sample) throws -> Int64 {
        guard case .frame(let bytes, let isKey) = sample.payload else { return 0 }
        let frame = video.frames
        guard try video.append(bytes, capture: sample.capture, isKey: isKey) else { return 0 }
        try stamps.append(
            frame: frame, capture: sample.capture, uncertainty: sample.uncertainty, device: sample.device)
        return 1
    }

    func sync() throws { try stamps.sync() }

    func finish() throws {
        // Both are closed, whatever the first one says.
        defer { try? stamps.finish() }
        try video.finish()
        try stamps.finish()
    }

    var bytesWritten: Int64 { video.bytesWritten + stamps.bytesWritten }
    var lastRefusal: String? { video.lastRefusal }
    var adjustedStamps: Int64? { video.adjustedStamps }
}

/// `<id>.wav`, and `<id>.timestamps.jsonl` with a row every 100 ms and after each gap.
final class AudioStreamWriter: StreamWriter {
    private static let rowInterval = Interval.milliseconds(100)
    private let wav: WAVWriter
    private let stamps: TimestampLog
    private let format: AudioFormat
    private var lastRow: Timestamp<HostTime>?
    private var isFilling = false
    private var level = AudioLevel()

    init(_ stream: StreamDescription, _ format: AudioFormat, folder: String, clockDomain: String) throws {
        self.format = format
        stamps = try TimestampLog(path: "\(folder)/\(EpisodeLayout.timestamps(stream.id))", clockDomain: clockDomain)
        wav = try WAVWriter(path: "\(folder)/\(EpisodeLayout.audio(stream.id))", format: format)
    }

    func append(_ sample: Sample) throws -> Int64 {
        guard case .audio(let bytes, let frames) = sample.payload, frames > 0 else { return 0 }
        let before = wav.frames
        try wav.append(bytes)
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

    func interrupted() { lastRow = nil }

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

    init(_ stream: StreamDescription, _ format: SensorFormat, folder: String, clockDomain: String) throws {
        log = try SensorLog(
            path: "\(folder)/\(EpisodeLayout.sensor(stream.id))", clockDomain: clockDomain,
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
