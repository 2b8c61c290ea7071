internal import CAV

/// PCM to AAC by libavcodec; used by one thread.
///
/// A sync server looks for sweeps of 17 to 19 kHz in what a decoder makes of this. By its own choice the encoder cuts
/// mono at 64 kb/s off at 15 kHz; and it may put noise in the place of what sounds like noise, and one channel in the place of two. So the band is set
/// to 20 kHz, the rate to 128 kb/s for a channel, and both substitutions are off.
final class AACEncoder {
    static let packetFrames = 1024
    /// What the format allows (ISO/IEC 14496-3, table 1.18).
    static let rates = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]

    private let path: String
    private let context: UnsafeMutablePointer<AVCodecContext>
    private let frame: UnsafeMutablePointer<AVFrame>
    private let packet: UnsafeMutablePointer<AVPacket>
    private var samples: Int64 = 0
    let format: SoundFormat

    /// Opens the encoder; `path` is that of the file, for messages.
    init(path: String, rate: Int, channels: Int, bitsPerChannel: Int = 128_000) throws {
        LibAV.prepare()
        self.path = path
        guard let codec = avcodec_find_encoder_by_name("aac"), let context = avcodec_alloc_context3(codec) else {
            throw EpisodeError(path, "libavcodec has no encoder named aac")
        }
        var (owned, frame, packet) = (Optional(context), av_frame_alloc(), av_packet_alloc())
        // 6144 bits for each channel of a packet is the limit of the format.
        let most = 6 * rate
        context.pointee.bit_rate = Int64(min(bitsPerChannel, most) * channels)
        context.pointee.sample_rate = Int32(rate)
        context.pointee.sample_fmt = AV_SAMPLE_FMT_FLTP
        context.pointee.time_base = AVRational(num: 1, den: Int32(rate))
        context.pointee.cutoff = Int32(min(20_000, rate / 2))
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        context.pointee.thread_count = 1
        av_channel_layout_default(&context.pointee.ch_layout, Int32(channels))
        var options: OpaquePointer?
        av_dict_set(&options, "aac_pns", "0", 0)
        av_dict_set(&options, "aac_is", "0", 0)
        let code = avcodec_open2(context, codec, &options)
        av_dict_free(&options)
        guard code >= 0, let madeFrame = frame, let madePacket = packet else {
            avcodec_free_context(&owned)
            av_frame_free(&frame)
            av_packet_free(&packet)
            throw EpisodeError(path, "the AAC encoder can't be opened: \(LibAV.text(code))")
        }
        self.context = context
        self.frame = madeFrame
        self.packet = madePacket
        madeFrame.pointee.format = AV_SAMPLE_FMT_FLTP.rawValue
        madeFrame.pointee.sample_rate = Int32(rate)
        madeFrame.pointee.nb_samples = Int32(Self.packetFrames)
        av_channel_layout_default(&madeFrame.pointee.ch_layout, Int32(channels))
        av_frame_get_buffer(madeFrame, 0)
        var extradata: [UInt8] = []
        if let bytes = context.pointee.extradata {
            extradata = Array(UnsafeBufferPointer(start: bytes, count: Int(max(0, context.pointee.extradata_size))))
        }
        format = SoundFormat(
            rate: rate, channels: channels, packetFrames: Self.packetFrames,
            priming: Int(max(0, context.pointee.initial_padding)), bitRate: Int(context.pointee.bit_rate),
            extradata: extradata)
    }

    deinit {
        var (context, frame, packet) = (Optional(context), Optional(frame), Optional(packet))
        avcodec_free_context(&context)
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// Encodes the first `packetFrames` samples of each channel, fewer at the very end; `write` gets what is ready.
    func encode(_ channels: [[Float]], write: (UnsafeRawBufferPointer) throws -> Void) throws {
        let count = min(channels.map(\.count).min() ?? 0, Self.packetFrames)
        guard count > 0 else { return }
        guard av_frame_make_writable(frame) >= 0, let planes = frame.pointee.extended_data else {
            throw EpisodeError(path, "libavutil has no memory")
        }
        for (number, samples) in channels.enumerated() {
            guard let plane = planes[number] else { throw EpisodeError(path, "libavutil has no memory") }
            samples.withUnsafeBufferPointer { source in
                guard let base = source.baseAddress else { return }
                UnsafeMutableRawPointer(plane).copyMemory(from: base, byteCount: count * 4)
            }
        }
        frame.pointee.nb_samples = Int32(count)
        frame.pointee.pts = samples
        samples += Int64(count)
        let code = avcodec_send_frame(context, frame)
        frame.pointee.nb_samples = Int32(Self.packetFrames)
        guard code >= 0 else { throw EpisodeError(path, "the AAC encoder refused sound: \(LibAV.text(code))") }
        try drain(write)
    }

    /// Gives out what the encoder still holds.
    func finish(write: (UnsafeRawBufferPointer) throws -> Void) throws {
        let code = avcodec_send_frame(context, nil)
        guard code >= 0 || code == cav_AVERROR_EOF else {
            throw EpisodeError(path, "the AAC encoder couldn't end: \(LibAV.text(code))")
        }
        try drain(write)
    }

    private func drain(_ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        while true {
            let code = avcodec_receive_packet(context, packet)
            if cav_is_again(code) != 0 || code == cav_AVERROR_EOF { return }
            guard code >= 0 else { throw EpisodeError(path, "the AAC encoder failed: \(LibAV.text(code))") }
            defer { av_packet_unref(packet) }
            try write(UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(max(0, packet.pointee.size))))
        }
    }
}
