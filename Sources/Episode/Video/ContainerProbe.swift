internal import CAV
package import Timing

/// What a media file has in it, as libavformat reads it.
package struct ContainerProbe: Sendable, Hashable {
    /// Packets of the first video track that are whole.
    package var videoPackets: Int64 = 0
    /// Packets that are torn: the end of a file whose writer was killed.
    package var tornPackets: Int64 = 0
    package var hasVideo = false
    package var hasAudio = false
    package var width = 0
    package var height = 0
    package var codec = ""
    /// From the first to the last video frame.
    package var span = Interval.zero

    /// Reads the whole file; nothing is decoded.
    ///
    /// - Throws: `EpisodeError` when libavformat can't read it.
    package init(path: String) throws {
        LibAV.prepare()
        var context: UnsafeMutablePointer<AVFormatContext>?
        // The scheme keeps a colon in a name from being taken for one.
        let opened = avformat_open_input(&context, "file:\(path)", nil, nil)
        guard opened >= 0, let input = context else {
            throw EpisodeError(path, "libavformat can't read it: \(LibAV.text(opened))")
        }
        defer { avformat_close_input(&context) }
        let video = Self.note(input, &self)
        guard let video, let packet = av_packet_alloc() else { return }
        var owned: UnsafeMutablePointer<AVPacket>? = packet
        defer { av_packet_free(&owned) }
        var first: Int64?
        var last: Int64 = 0
        while av_read_frame(input, packet) >= 0 {
            defer { av_packet_unref(packet) }
            guard packet.pointee.stream_index == video.index else { continue }
            if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 {
                tornPackets += 1
                continue
            }
            videoPackets += 1
            guard packet.pointee.pts != cav_AV_NOPTS_VALUE else { continue }
            first = min(first ?? packet.pointee.pts, packet.pointee.pts)
            last = max(last, packet.pointee.pts)
        }
        if let first {
            let nanoseconds = AVRational(num: 1, den: 1_000_000_000)
            span =
                .nanoseconds(av_rescale_q(last, video.base, nanoseconds))
                - .nanoseconds(av_rescale_q(first, video.base, nanoseconds))
        }
    }

    private static func note(
        _ input: UnsafeMutablePointer<AVFormatContext>, _ probe: inout ContainerProbe
    ) -> (index: Int32, base: AVRational)? {
        var video: (index: Int32, base: AVRational)?
        for index in 0..<Int(input.pointee.nb_streams) {
            guard let stream = input.pointee.streams[index], let parameters = stream.pointee.codecpar else { continue }
            if parameters.pointee.codec_type == AVMEDIA_TYPE_AUDIO { probe.hasAudio = true }
            guard parameters.pointee.codec_type == AVMEDIA_TYPE_VIDEO, video == nil else { continue }
            video = (Int32(index), stream.pointee.time_base)
            probe.hasVideo = true
            probe.width = Int(parameters.pointee.width)
            probe.height = Int(parameters.pointee.height)
            if let name = avcodec_get_name(parameters.pointee.codec_id) { probe.codec = String(cString: name) }
        }
        return video
    }
}
