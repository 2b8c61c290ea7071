internal import CAV
internal import Protocol

/// Raw pictures to H.264 by libavcodec, for live capture: no picture waits for a later one.
///
/// Used by one thread.
final class H264Encoder {
    /// An encoded picture, valid during the call that it is given to.
    struct Picture {
        /// With start codes.
        let bytes: UnsafeRawBufferPointer
        let stamp: Int64
        let isKey: Bool
    }

    private let path: String
    private let pictures: PictureSource
    private let graphics: GraphicsDevice?
    private let context: UnsafeMutablePointer<AVCodecContext>
    private let packet: UnsafeMutablePointer<AVPacket>
    private var lastKey: Int64?
    let track: VideoTrack

    /// Opens the encoder; `path` is that of the file, for messages.
    ///
    /// With `onGraphics` that of the machine's graphics processor, else libx264.
    init(path: String, format: VideoFormat, nominalRate: Double, quality: Int, threads: Int, onGraphics: Bool) throws {
        LibAV.prepare()
        self.path = path
        let pictures = try PictureSource(path: path, format: format, onlyNV12: onGraphics)
        self.pictures = pictures
        graphics =
            onGraphics ? try GraphicsDevice(path: path, width: pictures.width, height: pictures.height) : nil
        let name = onGraphics ? "h264_vaapi" : "libx264"
        guard let codec = avcodec_find_encoder_by_name(name) else {
            throw EpisodeError(
                path, "libavcodec has no encoder named \(name)",
                cure: "install libavcodec-extra or a libavcodec that was built with it")
        }
        guard let context = avcodec_alloc_context3(codec) else {
            throw EpisodeError(path, "libavcodec has no memory")
        }
        guard let packet = av_packet_alloc() else {
            var context: UnsafeMutablePointer<AVCodecContext>? = context
            avcodec_free_context(&context)
            throw EpisodeError(path, "libavcodec has no memory")
        }
        self.context = context
        self.packet = packet
        context.pointee.width = Int32(pictures.width)
        context.pointee.height = Int32(pictures.height)
        context.pointee.pix_fmt = graphics == nil ? pictures.pixelFormat : AV_PIX_FMT_VAAPI
        if let surfaces = graphics?.surfaces { context.pointee.hw_frames_ctx = av_buffer_ref(surfaces) }
        context.pointee.time_base = AVRational(num: 1, den: Int32(Ticks.perSecond))
        context.pointee.framerate = av_d2q(nominalRate, 100_000)
        // Key frames are asked for by time, see `encode`; this is only the limit of a very fast camera.
        context.pointee.gop_size = 1_000
        context.pointee.max_b_frames = 0
        context.pointee.thread_count = Int32(clamping: threads)
        context.pointee.color_range = AVCOL_RANGE_MPEG
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        let settings =
            onGraphics
            // A constant quantizer is what every driver can do; no picture waits for the next one.
            ? [("rc_mode", "CQP"), ("qp", String(quality)), ("async_depth", "1")]
            : [
                ("preset", "superfast"), ("tune", "zerolatency"), ("crf", String(quality)), ("forced-idr", "1"),
                ("sc_threshold", "0"),
            ]
        for (key, value) in settings { av_dict_set(&options, key, value, 0) }
        track = VideoTrack(
            codec: .h264, width: pictures.width, height: pictures.height, extradata: [], nominalRate: nominalRate)
        let code = avcodec_open2(context, codec, &options)
        guard code >= 0 else { throw EpisodeError(path, "\(name) can't be opened: \(LibAV.text(code))") }
    }

    deinit {
        var packet: UnsafeMutablePointer<AVPacket>? = packet
        av_packet_free(&packet)
        var context: UnsafeMutablePointer<AVCodecContext>? = context
        avcodec_free_context(&context)
    }

    /// The track with the encoder's parameter sets.
    var trackWithParameters: VideoTrack {
        var track = track
        if let extradata = context.pointee.extradata {
            track.extradata = Array(
                UnsafeBufferPointer(start: extradata, count: Int(max(0, context.pointee.extradata_size))))
        }
        return track
    }

    /// Why a picture of so many bytes can't be encoded; nil when it can.
    func objection(toBytes count: Int) -> String? { pictures.objection(toBytes: count) }

    /// Encodes one picture; `write` gets each packet that is ready.
    func encode(_ bytes: UnsafeRawBufferPointer, stamp: Int64, write: (Picture) throws -> Void) throws {
        let picture = try pictures.fill(bytes)
        var uploaded = try graphics?.upload(picture)
        defer { av_frame_free(&uploaded) }
        let frame = uploaded ?? picture
        frame.pointee.pts = stamp
        let isKey = lastKey.map { stamp - $0 >= FragmentWriter.fragmentTicks } ?? true
        frame.pointee.pict_type = isKey ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
        if isKey { lastKey = stamp }
        let code = avcodec_send_frame(context, frame)
        guard code >= 0 else { throw EpisodeError(path, "the encoder refused a picture: \(LibAV.text(code))") }
        try drain(write)
    }

    /// Gives out what the encoder still holds.
    func finish(write: (Picture) throws -> Void) throws {
        let code = avcodec_send_frame(context, nil)
        guard code >= 0 || code == cav_AVERROR_EOF else {
            throw EpisodeError(path, "the encoder couldn't end: \(LibAV.text(code))")
        }
        try drain(write)
    }

    private func drain(_ write: (Picture) throws -> Void) throws {
        while true {
            let code = avcodec_receive_packet(context, packet)
            if cav_is_again(code) != 0 || code == cav_AVERROR_EOF { return }
            guard code >= 0 else { throw EpisodeError(path, "the encoder failed: \(LibAV.text(code))") }
            defer { av_packet_unref(packet) }
            try write(
                Picture(
                    bytes: UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(max(0, packet.pointee.size))),
                    stamp: packet.pointee.pts, isKey: packet.pointee.flags & AV_PKT_FLAG_KEY != 0))
        }
    }
}
