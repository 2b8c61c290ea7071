internal import CAV
internal import Platform
package import Protocol
package import Timing

/// `<stream>.mp4`: the frames of a camera in a fragmented MP4 with their real times; used by one thread.
///
/// Raw pictures are encoded to H.264; MJPEG, H.264 and HEVC are passed through as they are. A fragment of just under a
/// second is on the disk before the next one grows, so a killed program loses less than a second, and a full disk
/// leaves a file that ends with a whole fragment. Errors are `SystemError`s and `EpisodeError`s with the path; after
/// one, each call throws it again.
package final class VideoFileWriter {
    /// How the pictures of a camera without compression are encoded.
    package struct Encoding: Sendable, Hashable {
        /// libx264's constant rate factor: 0 is lossless, more is smaller.
        package var quality: Int
        /// 0 lets the encoder choose by the number of cores.
        package var threads: Int

        package init(quality: Int = 21, threads: Int = 0) {
            self.quality = quality
            self.threads = threads
        }
    }

    private let path: String
    private let format: VideoFormat
    private let nominalRate: Double
    private let file: FragmentFile
    private let encoder: H264Encoder?
    private let beforeFragment: () throws -> Void
    private var stamps: StampGuard
    private var muxer: FragmentedMP4?
    private var failure: (any Error)?
    private var isFinished = false

    /// Frames that were given and taken; each has its place in the file.
    package private(set) var frames: Int64 = 0
    /// Frames that could not be taken; see `append`.
    package private(set) var refused: Int64 = 0
    /// Why the last refused frame was refused.
    package private(set) var lastRefusal: String?

    /// Makes the file, which must not exist yet.
    ///
    /// `nominalRate` is frames a second, for players and the length of the last frame; stamps are real whatever it is.
    /// `beforeFragment` is called just before a fragment goes to the disk: the time stamp log is flushed there, so that
    /// no frame on the disk is ever without its stamp.
    package init(
        path: String, format: VideoFormat, nominalRate: Double, encoding: Encoding = Encoding(),
        beforeFragment: @escaping () throws -> Void = {}
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
        switch format.encoding {
        case .yuyv, .nv12, .yuv420p:
            // Before the file: a missing encoder leaves no empty file behind.
            let encoder = try H264Encoder(
                path: path, format: format, nominalRate: rate, nominalStep: stamps.nominalStep,
                quality: encoding.quality, threads: encoding.threads)
            self.encoder = encoder
            file = try FragmentFile(path: path)
            muxer = try FragmentedMP4(
                file: file, track: encoder.trackWithParameters, beforeFragment: beforeFragment)
        case .mjpeg:
            encoder = nil
            file = try FragmentFile(path: path)
            muxer = try FragmentedMP4(file: file, track: track(.mjpeg), beforeFragment: beforeFragment)
        case .h264, .hevc:
            // The head needs the parameter sets, which come with the first key frame.
            encoder = nil
            file = try FragmentFile(path: path)
        }
    }

    /// Bytes handed to the system; the fragment in memory isn't counted.
    package var bytesWritten: Int64 { file.written }

    /// Frames in whole fragments on the disk.
    package var durableFrames: Int64 { muxer?.durablePackets ?? 0 }

    /// Frames whose time in the container was moved on, since it wasn't later than the one before.
    package var adjustedStamps: Int64 { stamps.adjusted }

    /// Takes one frame.
    ///
    /// `isKey` is whether it can be decoded alone; for H.264 and HEVC the bytes themselves are looked at too. The answer
    /// is false when the frame can't be in the file: a raw picture with too few bytes, no bytes at all, or a frame
    /// before the first key frame of a compressed stream. It must have no row in the time stamp file then.
    @discardableResult
    package func append(_ bytes: [UInt8], capture: Timestamp<HostTime>, isKey: Bool) throws -> Bool {
        if let failure { throw failure }
        guard !isFinished else { throw EpisodeError(path, "a frame came after the file was ended") }
        do {
            if bytes.isEmpty { return refuse("a frame without bytes came") }
            if let encoder {
                if let objection = encoder.objection(toBytes: bytes.count) { return refuse(objection) }
                let stamp = stamps.stamp(captureNanoseconds: capture.nanoseconds)
                frames += 1
                try encoder.encode(bytes, stamp: stamp) { try muxer?.write($0) }
                return true
            }
            return try pass(bytes, capture: capture, isKey: isKey)
        } catch {
            failure = error
            throw error
        }
    }

    /// Ends the file and brings it to the disk; the second call does nothing.
    package func finish() throws {
        guard !isFinished else { return }
        isFinished = true
        if let failure { throw failure }
        do {
            try encoder?.finish { try muxer?.write($0) }
            guard let muxer else {
                throw EpisodeError(
                    path, "no key frame with parameter sets came, so nothing could be written",
                    cure: "let the camera send key frames more often, or choose MJPEG")
            }
            guard muxer.packets == frames else {
                throw EpisodeError(path, "\(frames) frames went in and \(muxer.packets) came out of the encoder")
            }
            try muxer.finish()
        } catch {
            failure = error
            throw error
        }
    }

    private func pass(_ bytes: [UInt8], capture: Timestamp<HostTime>, isKey: Bool) throws -> Bool {
        var isKey = isKey || format.encoding == .mjpeg
        if format.encoding != .mjpeg {
            let units = AnnexB(bytes, codec: format.encoding == .h264 ? .h264 : .hevc)
            isKey = isKey || units.hasRandomAccess
            if muxer == nil {
                guard isKey, !units.parameterSets.isEmpty else {
                    return refuse("a frame came before the first key frame with parameter sets")
                }
                var track = track(format.encoding == .h264 ? .h264 : .hevc)
                track.extradata = units.parameterSets
                muxer = try FragmentedMP4(file: file, track: track, beforeFragment: beforeFragment)
            }
        }
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        guard let packet, let size = Int32(exactly: bytes.count), av_new_packet(packet, size) >= 0,
            let data = packet.pointee.data
        else { throw EpisodeError(path, "libavcodec has no memory for a frame of \(bytes.count) bytes") }
        data.update(from: bytes, count: bytes.count)
        let stamp = stamps.stamp(captureNanoseconds: capture.nanoseconds)
        packet.pointee.pts = stamp
        packet.pointee.dts = stamp
        packet.pointee.duration = stamps.nominalStep
        if isKey { packet.pointee.flags |= AV_PKT_FLAG_KEY }
        frames += 1
        try muxer?.write(packet)
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
}
