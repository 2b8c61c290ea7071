package import Platform
package import Protocol
package import Timing

/// `<stream>.mp4`: the frames of a camera in an MP4 with their real times, and the host's sound; used by one thread.
///
/// Raw pictures are encoded to H.264; MJPEG, H.264 and HEVC are passed through as they are. While the take runs, the
/// file is fragmented: a fragment of just under a second is on the disk before the next one ends, so a killed program
/// loses less than a second, and a full disk leaves a file that ends with a whole fragment. `finish` makes a plain MP4
/// of it. Errors are `SystemError`s and `EpisodeError`s with the path; after one, each call throws it again. Trouble
/// with the sound never harms the video; it is in `notes`.
package final class VideoFileWriter {
    /// How the pictures of a camera without compression are encoded.
    package struct Encoding: Sendable, Hashable {
        /// libx264's constant rate factor: 0 is lossless, more is smaller.
        package var quality: Int
        /// 0 lets the encoder choose by the number of cores.
        package var threads: Int
        package var engine: Engine

        package init(quality: Int = 21, threads: Int = 0, engine: Engine = .software) {
            self.quality = quality
            self.threads = threads
            self.engine = engine
        }

        /// Who encodes.
        package enum Engine: String, Sendable, CaseIterable {
            /// libx264, on every machine the same.
            case software
            /// The graphics processor by VA-API, and libx264 where it can't.
            case vaapi
        }
    }

    private let path: String
    private let format: VideoFormat
    private let nominalRate: Double
    private let file: FragmentFile
    private let room: Int64
    private let encoder: H264Encoder?
    private let beforeFragment: () throws -> Void
    private var sound: SoundTrack?
    private var hasSoundFailed = false
    private var stamps: StampGuard
    private var muxer: FragmentWriter?
    private var parameterSets: [UInt8] = []
    private var scratch: [UInt8] = []
    private var lastCapture: Timestamp<HostTime>?
    private var failure: (any Error)?
    private var isFinished = false
    private var finalSize: Int64?

    /// Frames that were given and taken; each has its place in the file.
    package private(set) var frames: Int64 = 0
    /// Frames that could not be taken; see `append`.
    package private(set) var refused: Int64 = 0
    /// Why the last refused frame was refused.
    package private(set) var lastRefusal: String?
    /// How often the camera went over to other parameter sets.
    package private(set) var parameterChanges: Int64 = 0
    /// What the operator should know beside errors, a sentence each.
    package private(set) var notes: [String] = []
    /// How the file got its index.
    package private(set) var way: MovieFinisher.Way?

    /// Makes the file, which must not exist yet.
    ///
    /// - Parameters:
    ///   - path: of the file.
    ///   - format: of the frames.
    ///   - nominalRate: frames a second, for players and the length of the last frame; stamps are real whatever it is.
    ///   - encoding: of raw pictures.
    ///   - longest: how long the take may become: room for the index of so much is kept, which costs no disk space
    ///     until it is used. A recording that outgrows it is copied at its end.
    ///   - sound: what is to be heard in the video.
    ///   - beforeFragment: called just before a fragment goes to the disk: the time stamp log is flushed there, so that
    ///     no frame on the disk is ever without its stamp.
    /// - Throws: `EpisodeError` when there's no encoder for the format, `SystemError` when the file can't be made.
    package init(
        path: String, format: VideoFormat, nominalRate: Double, encoding: Encoding = Encoding(),
        longest: Interval = .seconds(600), sound: SoundFeed? = nil, beforeFragment: @escaping () throws -> Void = {}
    ) throws {
        guard (1...16_384).contains(format.width), (1...16_384).contains(format.height) else {
            throw EpisodeError(path, "a picture of \(format.width)×\(format.height) can't be written")
        }
        self.path = path
        self.format = format
        let rate = nominalRate.isFinite && nominalRate > 0 && nominalRate <= 10_000 ? nominalRate : 30
        self.nominalRate = rate
        self.beforeFragment = beforeFragment
        stamps = StampGuard(nominalRate: rate)
        room = Self.room(for: longest, rate: rate)
        if let sound {
            do { self.sound = try SoundTrack(path: path, feed: sound) } catch {
                notes.append("there is no sound in the video: \(error)")
            }
        }
        // Before the file: a missing encoder leaves no empty file behind.
        switch format.encoding {
        case .yuyv, .nv12, .yuv420p:
            func open(onGraphics: Bool) throws -> H264Encoder {
                try H264Encoder(
                    path: path, format: format, nominalRate: rate, quality: encoding.quality,
                    threads: encoding.threads, onGraphics: onGraphics)
            }
            if encoding.engine == .vaapi {
                do { encoder = try open(onGraphics: true) } catch {
                    notes.append("the processor encodes the video, not a graphics device: \(error)")
                    encoder = try open(onGraphics: false)
                }
            } else {
                encoder = try open(onGraphics: false)
            }
        case .mjpeg, .h264, .hevc: encoder = nil
        }
        file = try FragmentFile(path: path)
        if let encoder {
            try begin(encoder.trackWithParameters)
        } else if format.encoding == .mjpeg {
            try begin(track(.mjpeg))
        }
        // Else the head needs the parameter sets, which come with the first key frame.
    }

    /// 16 bytes for each frame, 4 for each packet of sound, 40 for each fragment; with a quarter more, at most 8 MiB.
    private static func room(for longest: Interval, rate: Double) -> Int64 {
        let seconds = min(max(longest.seconds, 1), 1e6)
        return min(16_384 + Int64(seconds * (rate * 16 + 47 * 4 + 40) * 1.25), 8 << 20)
    }

    /// Bytes in the file, with places that are kept for later.
    package var bytesWritten: Int64 { finalSize ?? max(0, file.end - (muxer == nil ? 0 : room)) }

    /// Frames in whole fragments on the disk.
    package var durableFrames: Int64 { muxer?.durablePackets ?? 0 }

    /// Frames whose time in the container was moved on, since it wasn't later than the one before.
    package var adjustedStamps: Int64 { stamps.adjusted }

    /// What is said of the sound; nil when there's none in the file.
    package var soundRecord: SoundRecord? { sound.flatMap { $0.hasHeard ? $0.record : nil } }

    /// Takes one frame.
    ///
    /// `isKey` is whether it can be decoded alone; for H.264 and HEVC the bytes themselves are looked at too. The answer
    /// is false when the frame can't be in the file: a raw picture with too few bytes, no bytes at all, or a frame
    /// before the first key frame of a compressed stream. It must have no row in the time stamp file then.
    @discardableResult
    package func append(_ bytes: FrameBytes, capture: Timestamp<HostTime>, isKey: Bool) throws -> Bool {
        if let failure { throw failure }
        guard !isFinished else { throw EpisodeError(path, "a frame came after the file was ended") }
        do {
            if bytes.count == 0 { return refuse("a frame without bytes came") }
            guard try bytes.withUnsafeBytes({ try take($0, capture: capture, isKey: isKey) }) else { return false }
            sound?.begin(at: capture)
            lastCapture = max(lastCapture ?? capture, capture)
            try pumpSound()
            return true
        } catch {
            failure = error
            throw error
        }
    }

    /// Brings the sound so far into the file, and a fragment to the disk that waits for a frame of a stalled camera.
    ///
    /// Call it about once a second.
    package func sync() throws {
        if let failure { throw failure }
        guard !isFinished else { return }
        do {
            try pumpSound()
            try muxer?.endStale()
        } catch {
            failure = error
            throw error
        }
    }

    /// Ends the file, makes a plain MP4 of it, and brings it to the disk; the second call does nothing.
    package func finish() throws {
        guard !isFinished else { return }
        isFinished = true
        if let failure { throw failure }
        do {
            try encoder?.finish { try write($0) }
            guard let muxer else {
                throw EpisodeError(
                    path, "no key frame with parameter sets came, so nothing could be written",
                    cure: "let the camera send key frames more often, or choose MJPEG")
            }
            guard muxer.packets == frames else {
                throw EpisodeError(path, "\(frames) frames went in and \(muxer.packets) came out of the encoder")
            }
            try finishSound()
            try muxer.finish()
        } catch {
            failure = error
            throw error
        }
        do {
            way = try MovieFinisher.finish(path, keepsParametersInside: parameterChanges > 0)
        } catch {
            // Every player reads it as it is; some seek badly in it.
            notes.append("the recording is whole, and stays in fragments: \(error)")
        }
        finalSize = Files.size(path)
    }

    // MARK: Frames

    private func begin(_ track: VideoTrack) throws {
        muxer = try FragmentWriter(
            file: file, track: track, sound: sound?.format, nominalStep: stamps.nominalStep, room: room,
            beforeFragment: beforeFragment)
    }

    private func take(_ bytes: UnsafeRawBufferPointer, capture: Timestamp<HostTime>, isKey: Bool) throws -> Bool {
        switch format.encoding {
        case .mjpeg:
            frames += 1
            try muxer?.append(bytes, stamp: stamps.stamp(captureNanoseconds: capture.nanoseconds), isKey: true)
            return true
        case .h264, .hevc:
            return try pass(bytes, capture: capture)
        case .yuyv, .nv12, .yuv420p:
            guard let encoder else { return refuse("there is no encoder") }
            if let objection = encoder.objection(toBytes: bytes.count) { return refuse(objection) }
            frames += 1
            let stamp = stamps.stamp(captureNanoseconds: capture.nanoseconds)
            try encoder.encode(bytes, stamp: stamp) { try write($0) }
            return true
        }
    }

    private func write(_ picture: H264Encoder.Picture) throws {
        AnnexB(picture.bytes, codec: .h264).lengthPrefixed(picture.bytes, into: &scratch)
        try scratch.withUnsafeBytes { try muxer?.append($0, stamp: picture.stamp, isKey: picture.isKey) }
    }

    private func pass(_ bytes: UnsafeRawBufferPointer, capture: Timestamp<HostTime>) throws -> Bool {
        let units = AnnexB(bytes, codec: format.encoding == .h264 ? .h264 : .hevc)
        if muxer == nil {
            guard units.hasRandomAccess, !units.parameterSets.isEmpty else {
                return refuse("a frame came before the first key frame with parameter sets")
            }
            var track = track(format.encoding == .h264 ? .h264 : .hevc)
            track.extradata = units.parameterSets
            track.hasParametersInside = true
            try begin(track)
            parameterSets = units.parameterSets
        } else if !units.parameterSets.isEmpty, units.parameterSets != parameterSets {
            parameterSets = units.parameterSets
            parameterChanges += 1
            if parameterChanges == 1 {
                notes.append("the camera changed its parameter sets at frame \(frames); they are kept among the frames")
            }
        }
        units.lengthPrefixed(bytes, into: &scratch)
        guard !scratch.isEmpty else { return refuse("a frame without a start code came") }
        frames += 1
        let stamp = stamps.stamp(captureNanoseconds: capture.nanoseconds)
        try scratch.withUnsafeBytes { try muxer?.append($0, stamp: stamp, isKey: units.hasRandomAccess) }
        return true
    }

    private func refuse(_ why: String) -> Bool {
        refused += 1
        lastRefusal = why
        return false
    }

    private func track(_ codec: VideoTrack.Codec) -> VideoTrack {
        VideoTrack(codec: codec, width: format.width, height: format.height, extradata: [], nominalRate: nominalRate)
    }

    // MARK: Sound

    private func pumpSound() throws {
        guard let lastCapture else { return }
        try withSound { sound, write in try sound.pump(now: lastCapture, write: write) }
    }

    private func finishSound() throws {
        guard let lastCapture else { return }
        try withSound { sound, write in try sound.finish(end: lastCapture, write: write) }
    }

    /// The encoder's errors end the sound; the disk's end the file.
    private func withSound(
        _ run: (SoundTrack, (UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        guard let sound, let muxer, !hasSoundFailed else { return }
        var diskError: (any Error)?
        do {
            try run(sound) { packet in
                do { try muxer.append(sound: packet) } catch {
                    diskError = error
                    throw error
                }
            }
        } catch {
            if let diskError { throw diskError }
            notes.append("the sound in the video ends early: \(error)")
            hasSoundFailed = true
        }
    }
}
