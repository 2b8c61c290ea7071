internal import CAV
internal import Protocol

/// The first audio track of a container, decoded by libavcodec; used by one thread.
///
/// Edit lists and an encoder's priming are taken into account: the places are those of the presentation times.
final class SoundDecoder {
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var decoder: UnsafeMutablePointer<AVCodecContext>?
    private let index: Int32
    private let base: AVRational

    private init(
        _ context: UnsafeMutablePointer<AVFormatContext>, _ decoder: UnsafeMutablePointer<AVCodecContext>,
        index: Int32, base: AVRational
    ) {
        (self.context, self.decoder, self.index, self.base) = (context, decoder, index, base)
    }

    /// Nil when there's no sound in it.
    ///
    /// - Throws: `EpisodeError` when the file or its codec can't be read.
    static func open(path: String) throws -> SoundDecoder? {
        LibAV.prepare()
        var context: UnsafeMutablePointer<AVFormatContext>?
        let opened = avformat_open_input(&context, "file:\(path)", nil, nil)
        guard opened >= 0, let input = context else {
            throw EpisodeError(path, "libavformat can't read it: \(LibAV.text(opened))")
        }
        _ = avformat_find_stream_info(input, nil)
        let index = av_find_best_stream(input, AVMEDIA_TYPE_AUDIO, -1, -1, nil, 0)
        var failure: EpisodeError?
        var decoder: UnsafeMutablePointer<AVCodecContext>?
        if index >= 0, let stream = input.pointee.streams[Int(index)] {
            (decoder, failure) = decoding(stream, path)
        }
        guard let decoder, let stream = input.pointee.streams[Int(index)] else {
            avformat_close_input(&context)
            if let failure { throw failure }
            return nil
        }
        // Pictures are only in the way.
        for other in 0..<Int(input.pointee.nb_streams) where other != Int(index) {
            input.pointee.streams[other]?.pointee.discard = AVDISCARD_ALL
        }
        return SoundDecoder(input, decoder, index: index, base: stream.pointee.time_base)
    }

    deinit {
        var (decoder, context) = (decoder, context)
        avcodec_free_context(&decoder)
        avformat_close_input(&context)
    }

    private static func decoding(
        _ stream: UnsafeMutablePointer<AVStream>, _ path: String
    ) -> (UnsafeMutablePointer<AVCodecContext>?, EpisodeError?) {
        guard let parameters = stream.pointee.codecpar else { return (nil, nil) }
        guard let codec = avcodec_find_decoder(parameters.pointee.codec_id) else {
            return (nil, EpisodeError(path, "its sound is of a kind that libavcodec can't decode here"))
        }
        var decoder = avcodec_alloc_context3(codec)
        guard let made = decoder, avcodec_parameters_to_context(made, parameters) >= 0 else {
            avcodec_free_context(&decoder)
            return (nil, EpisodeError(path, "libavcodec has no memory"))
        }
        made.pointee.pkt_timebase = stream.pointee.time_base
        let code = avcodec_open2(made, codec, nil)
        // A rate from a broken file must not become a size in memory.
        guard code >= 0, (1000...1_000_000).contains(made.pointee.sample_rate), made.pointee.ch_layout.nb_channels > 0
        else {
            avcodec_free_context(&decoder)
            return (nil, EpisodeError(path, "its sound can't be decoded: \(LibAV.text(code))"))
        }
        return (made, nil)
    }

    func read(
        _ begin: (SoundFileFormat) throws -> Void, _ body: (Int64, [Float]) throws -> Void
    ) throws -> SoundFileFormat? {
        guard let decoder, let context, let packet = av_packet_alloc() else { return nil }
        var ownedPacket: UnsafeMutablePointer<AVPacket>? = packet
        defer { av_packet_free(&ownedPacket) }
        guard let frame = av_frame_alloc() else { return nil }
        var ownedFrame: UnsafeMutablePointer<AVFrame>? = frame
        defer { av_frame_free(&ownedFrame) }
        let rate = Int(decoder.pointee.sample_rate)
        let name = avcodec_get_name(decoder.pointee.codec_id).map { String(cString: $0) } ?? ""
        let format = SoundFileFormat(rate: rate, channels: Int(decoder.pointee.ch_layout.nb_channels), codec: name)
        try begin(format)
        var state = State(rate: rate, base: base)
        while av_read_frame(context, packet) >= 0 {
            defer { av_packet_unref(packet) }
            guard packet.pointee.stream_index == index, packet.pointee.flags & AV_PKT_FLAG_CORRUPT == 0 else {
                continue
            }
            // A packet that can't be decoded is a hole, which the stamps of the next one show.
            guard avcodec_send_packet(decoder, packet) >= 0 else { continue }
            while avcodec_receive_frame(decoder, frame) >= 0 { try state.take(frame, body) }
        }
        _ = avcodec_send_packet(decoder, nil)
        while avcodec_receive_frame(decoder, frame) >= 0 { try state.take(frame, body) }
        return format
    }

    /// Where in the file's time the next block belongs.
    private struct State {
        let rate: Int
        let base: AVRational
        var place: Int64?
        var channel: Int?

        mutating func take(_ frame: UnsafeMutablePointer<AVFrame>, _ body: (Int64, [Float]) throws -> Void) throws {
            let count = Int(frame.pointee.nb_samples)
            // A rate that changes within the file would need another time line.
            guard count > 0, Int(frame.pointee.sample_rate) == rate else { return }
            var here = place ?? 0
            if frame.pointee.pts != cav_AV_NOPTS_VALUE {
                let told = av_rescale_q(frame.pointee.pts, base, AVRational(num: 1, den: Int32(clamping: rate)))
                guard told > Int64.min / 4, told < Int64.max / 4 else { return }
                // Time bases of a millisecond round; that isn't a hole.
                if let place {
                    let hole = told - place
                    let rounding = max(2, Int64(rate) / 500)
                    if hole < -rounding { return }
                    if hole > rounding {
                        here = told
                        if hole <= Int64(SoundReader.longestHole * rate) {
                            try body(place, [Float](repeating: 0, count: Int(hole)))
                        }
                    }
                } else {
                    here = told
                }
            }
            let channels = Int(frame.pointee.ch_layout.nb_channels)
            let chosen = channel ?? ChannelChoice.loudest(of: channels) { SoundDecoder.samples(frame, channel: $0) }
            channel = chosen
            let block = SoundDecoder.samples(frame, channel: min(chosen, max(channels - 1, 0)))
            if !block.isEmpty { try body(here, block) }
            place = here + Int64(count)
        }
    }

    private static func samples(_ frame: UnsafeMutablePointer<AVFrame>, channel: Int) -> [Float] {
        let format = AVSampleFormat(rawValue: frame.pointee.format)
        let count = Int(frame.pointee.nb_samples)
        let channels = max(Int(frame.pointee.ch_layout.nb_channels), 1)
        let isPlanar = av_sample_fmt_is_planar(format) == 1
        guard let planes = frame.pointee.extended_data, let plane = planes[isPlanar ? channel : 0] else { return [] }
        let (step, first) = isPlanar ? (1, 0) : (channels, channel)
        func values<T>(_ type: T.Type, _ convert: (T) -> Float) -> [Float] {
            let raw = UnsafeRawPointer(plane)
            return (0..<count).map {
                convert(
                    raw.loadUnaligned(fromByteOffset: (first + $0 * step) * MemoryLayout<T>.stride, as: T.self))
            }
        }
        switch format {
        case AV_SAMPLE_FMT_FLT, AV_SAMPLE_FMT_FLTP: return values(Float.self) { $0.isFinite ? $0 : 0 }
        case AV_SAMPLE_FMT_DBL, AV_SAMPLE_FMT_DBLP: return values(Double.self) { $0.isFinite ? Float($0) : 0 }
        case AV_SAMPLE_FMT_S16, AV_SAMPLE_FMT_S16P: return values(Int16.self) { Float($0) / 0x8000 }
        case AV_SAMPLE_FMT_S32, AV_SAMPLE_FMT_S32P: return values(Int32.self) { Float($0) / 0x8000_0000 }
        case AV_SAMPLE_FMT_U8, AV_SAMPLE_FMT_U8P: return values(UInt8.self) { (Float($0) - 128) / 128 }
        default: return []
        }
    }
}

/// The presentation times of a file's first video track.
package enum VideoTimes {
    /// Ascending, in nanoseconds of the file's time line; nothing is decoded, and without video it is empty.
    ///
    /// - Throws: `EpisodeError` when libavformat can't read the file.
    package static func read(_ path: String) throws -> [Int64] {
        LibAV.prepare()
        var context: UnsafeMutablePointer<AVFormatContext>?
        let opened = avformat_open_input(&context, "file:\(path)", nil, nil)
        guard opened >= 0, let input = context else {
            throw EpisodeError(path, "libavformat can't read it: \(LibAV.text(opened))")
        }
        defer { avformat_close_input(&context) }
        let index = av_find_best_stream(input, AVMEDIA_TYPE_VIDEO, -1, -1, nil, 0)
        guard index >= 0, let stream = input.pointee.streams[Int(index)], let packet = av_packet_alloc() else {
            return []
        }
        var owned: UnsafeMutablePointer<AVPacket>? = packet
        defer { av_packet_free(&owned) }
        let unit = AVRational(num: 1, den: 1_000_000_000)
        var times: [Int64] = []
        while av_read_frame(input, packet) >= 0 {
            defer { av_packet_unref(packet) }
            guard packet.pointee.stream_index == index, packet.pointee.pts != cav_AV_NOPTS_VALUE,
                packet.pointee.flags & (AV_PKT_FLAG_CORRUPT | AV_PKT_FLAG_DISCARD) == 0
            else { continue }
            times.append(av_rescale_q(packet.pointee.pts, stream.pointee.time_base, unit))
        }
        return times.sorted()
    }
}
