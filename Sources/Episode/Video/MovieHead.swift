internal import CAV
internal import Protocol

/// The beginning of a recording: what libavformat writes as `ftyp` and `moov` for its tracks, without samples.
///
/// libavformat makes the sample descriptions, which need knowledge of each codec; the index of the samples is ours.
struct MovieHead {
    static let videoTrack: UInt32 = 1
    static let soundTrack: UInt32 = 2

    let fileType: [UInt8]
    let movie: [UInt8]

    init(path: String, video: VideoTrack, sound: SoundFormat?) throws {
        LibAV.prepare()
        let bytes = try Self.written(path: path, video: video, sound: sound)
        let boxes = BoxView.list(bytes[...])
        guard let fileType = boxes.first(where: { $0.kind == "ftyp" }),
            let movie = boxes.first(where: { $0.kind == "moov" })
        else { throw EpisodeError(path, "libavformat wrote no head") }
        self.fileType = Array(fileType.whole)
        self.movie = Self.withEdits(movie, priming: sound?.priming)
    }

    /// The encoder's first samples are none of the sound: an edit list tells a decoder to leave them out.
    private static func withEdits(_ movie: BoxView, priming: Int?) -> [UInt8] {
        guard let priming else { return Array(movie.whole) }
        var builder = BoxBuilder()
        builder.box("moov") { moov in
            for box in movie.children {
                guard box.kind == "trak", trackID(box) == soundTrack else {
                    moov.add(bytes: box.whole)
                    continue
                }
                moov.box("trak") { trak in
                    for part in box.children where part.kind != "edts" {
                        trak.add(bytes: part.whole)
                        // A length of 0 stands for all fragments to come.
                        if part.kind == "tkhd" { trak.addEdits(length: 0, from: Int64(priming)) }
                    }
                }
            }
        }
        return builder.bytes
    }

    static func trackID(_ trak: BoxView) -> UInt32 {
        guard let content = trak.first("tkhd")?.content, let version = content.first else { return 0 }
        return UInt32(content.big(at: content.startIndex + (version == 1 ? 20 : 12), 4))
    }

    // MARK: libavformat

    private static func written(path: String, video: VideoTrack, sound: SoundFormat?) throws -> [UInt8] {
        var made: UnsafeMutablePointer<AVFormatContext>?
        let code = avformat_alloc_output_context2(&made, nil, "mp4", nil)
        guard code >= 0, let context = made else {
            throw EpisodeError(path, "libavformat has no MP4 muxer: \(LibAV.text(code))")
        }
        defer { avformat_free_context(context) }
        try add(video, to: context, path)
        if let sound { try add(sound, to: context, path) }
        var output: UnsafeMutablePointer<AVIOContext>?
        guard avio_open_dyn_buf(&output) >= 0, let output else { throw noMemory(path) }
        context.pointee.pb = output
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "movflags", "empty_moov+default_base_moof", 0)
        av_dict_set(&options, "video_track_timescale", String(Ticks.perSecond), 0)
        let result = avformat_write_header(context, &options)
        var buffer: UnsafeMutablePointer<UInt8>?
        let count = avio_close_dyn_buf(output, &buffer)
        context.pointee.pb = nil
        defer { av_free(buffer) }
        guard result >= 0, let buffer, count > 0 else {
            throw EpisodeError(path, "libavformat couldn't begin the file: \(LibAV.text(result))")
        }
        return Array(UnsafeBufferPointer(start: buffer, count: Int(count)))
    }

    private static func add(
        _ track: VideoTrack, to context: UnsafeMutablePointer<AVFormatContext>, _ path: String
    ) throws {
        guard let stream = avformat_new_stream(context, nil), let parameters = stream.pointee.codecpar else {
            throw noMemory(path)
        }
        stream.pointee.time_base = AVRational(num: 1, den: Int32(Ticks.perSecond))
        stream.pointee.avg_frame_rate = av_d2q(track.nominalRate, 100_000)
        parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters.pointee.width = Int32(track.width)
        parameters.pointee.height = Int32(track.height)
        switch track.codec {
        case .h264:
            parameters.pointee.codec_id = AV_CODEC_ID_H264
            if track.hasParametersInside { parameters.pointee.codec_tag = VideoTrack.tag("avc3") }
        case .hevc:
            parameters.pointee.codec_id = AV_CODEC_ID_HEVC
            parameters.pointee.codec_tag = VideoTrack.tag(track.hasParametersInside ? "hev1" : "hvc1")
        case .mjpeg:
            parameters.pointee.codec_id = AV_CODEC_ID_MJPEG
            parameters.pointee.format = AV_PIX_FMT_YUVJ422P.rawValue
        }
        try set(track.extradata, of: parameters, path)
    }

    private static func add(
        _ sound: SoundFormat, to context: UnsafeMutablePointer<AVFormatContext>, _ path: String
    ) throws {
        guard let stream = avformat_new_stream(context, nil), let parameters = stream.pointee.codecpar else {
            throw noMemory(path)
        }
        stream.pointee.time_base = AVRational(num: 1, den: Int32(sound.rate))
        parameters.pointee.codec_type = AVMEDIA_TYPE_AUDIO
        parameters.pointee.codec_id = AV_CODEC_ID_AAC
        parameters.pointee.sample_rate = Int32(sound.rate)
        parameters.pointee.frame_size = Int32(sound.packetFrames)
        parameters.pointee.initial_padding = Int32(sound.priming)
        parameters.pointee.bit_rate = Int64(sound.bitRate)
        av_channel_layout_default(&parameters.pointee.ch_layout, Int32(sound.channels))
        try set(sound.extradata, of: parameters, path)
    }

    private static func set(
        _ extradata: [UInt8], of parameters: UnsafeMutablePointer<AVCodecParameters>, _ path: String
    ) throws {
        guard !extradata.isEmpty else { return }
        guard let memory = av_mallocz(extradata.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)) else { throw noMemory(path) }
        memory.copyMemory(from: extradata, byteCount: extradata.count)
        parameters.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
        parameters.pointee.extradata_size = Int32(extradata.count)
    }

    private static func noMemory(_ path: String) -> EpisodeError { EpisodeError(path, "libavformat has no memory") }
}

extension BoxBuilder {
    /// An edit list with one edit; the length is in the movie's ticks, the place in the track's.
    mutating func addEdits(length: Int64, from place: Int64) {
        box("edts") { edts in
            edts.fullBox("elst", version: 1) { list in
                list.add(UInt32(1))
                list.add(length)
                list.add(place)
                list.add(UInt32(0x0001_0000))
            }
        }
    }
}
