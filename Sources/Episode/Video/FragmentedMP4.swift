internal import CAV
internal import Platform
internal import Protocol

/// A fragmented MP4 with one video track; each fragment is on the disk before the next one grows large.
///
/// Used by one thread. Only a frame ends a fragment: libav takes the length of a fragment's last frame from the frame
/// after it, and where a fragment is ended without one, all later times are wrong by the length of a stall.
final class FragmentedMP4 {
    /// The length of a fragment.
    ///
    /// A killed program loses the fragment in memory and the frame that would have closed it: together they stay below
    /// a second.
    static let fragmentTicks: Int64 = Ticks.perSecond * 95 / 100

    private let file: FragmentFile
    private let io: UnsafeMutablePointer<AVIOContext>
    private let context: UnsafeMutablePointer<AVFormatContext>
    private let beforeFragment: () throws -> Void
    private var position: Int64 = 0
    private var fragmentStart: Int64?
    /// Packets that were given.
    private(set) var packets: Int64 = 0
    /// Packets of whole fragments on the disk.
    private(set) var durablePackets: Int64 = 0

    /// Writes the head of the file and brings it to the disk.
    init(file: FragmentFile, track: VideoTrack, beforeFragment: @escaping () throws -> Void) throws {
        LibAV.prepare()
        self.file = file
        self.beforeFragment = beforeFragment
        guard let io = file.open() else { throw EpisodeError(file.path, "libavformat has no memory") }
        var context: UnsafeMutablePointer<AVFormatContext>?
        let made = avformat_alloc_output_context2(&context, nil, "mp4", nil)
        guard made >= 0, let context else {
            FragmentFile.free(io)
            throw EpisodeError(file.path, "libavformat has no MP4 muxer: \(LibAV.text(made))")
        }
        self.io = io
        self.context = context
        context.pointee.pb = io
        try addTrack(track)
        try writeHead()
    }

    deinit {
        avformat_free_context(context)
        FragmentFile.free(io)
    }

    var bytesWritten: Int64 { file.written }

    /// Writes one packet, whose stamps are in ticks, and whose reference stays with the caller.
    func write(_ packet: UnsafeMutablePointer<AVPacket>) throws {
        try file.check()
        let stamp = packet.pointee.dts
        // One tick early: libav compares rounded microseconds.
        let endsFragment = stamp - (fragmentStart ?? stamp) >= Self.fragmentTicks - 1
        if endsFragment { try beforeFragment() }
        packet.pointee.stream_index = 0
        let code = av_write_frame(context, packet)
        try file.check()
        guard code >= 0 else { throw EpisodeError(file.path, "libavformat refused a frame: \(LibAV.text(code))") }
        if fragmentStart == nil { fragmentStart = stamp }
        if avio_tell(io) > position {
            try sealFragments()
            durablePackets = packets
            fragmentStart = stamp
        }
        packets += 1
    }

    /// Writes the last fragment and the index, and brings all to the disk.
    func finish() throws {
        try file.check()
        try beforeFragment()
        let code = av_write_trailer(context)
        avio_flush(io)
        try file.check()
        guard code >= 0 else {
            throw EpisodeError(file.path, "libavformat couldn't end the file: \(LibAV.text(code))")
        }
        try file.seal()
        durablePackets = packets
    }

    private func sealFragments() throws(SystemError) {
        avio_flush(io)
        try file.seal()
        position = avio_tell(io)
    }

    private func addTrack(_ track: VideoTrack) throws {
        guard let stream = avformat_new_stream(context, nil), let parameters = stream.pointee.codecpar else {
            throw EpisodeError(file.path, "libavformat has no memory")
        }
        stream.pointee.time_base = AVRational(num: 1, den: Int32(Ticks.perSecond))
        stream.pointee.avg_frame_rate = av_d2q(track.nominalRate, 100_000)
        parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters.pointee.width = Int32(track.width)
        parameters.pointee.height = Int32(track.height)
        switch track.codec {
        case .h264: parameters.pointee.codec_id = AV_CODEC_ID_H264
        case .hevc: parameters.pointee.codec_id = AV_CODEC_ID_HEVC
        case .mjpeg:
            parameters.pointee.codec_id = AV_CODEC_ID_MJPEG
            parameters.pointee.format = AV_PIX_FMT_YUVJ422P.rawValue
        }
        guard !track.extradata.isEmpty else { return }
        let padded = track.extradata.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
        guard let extradata = av_mallocz(padded) else { throw EpisodeError(file.path, "libavformat has no memory") }
        extradata.copyMemory(from: track.extradata, byteCount: track.extradata.count)
        parameters.pointee.extradata = extradata.assumingMemoryBound(to: UInt8.self)
        parameters.pointee.extradata_size = Int32(track.extradata.count)
    }

    private func writeHead() throws {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "movflags", "empty_moov+default_base_moof", 0)
        let microseconds = Self.fragmentTicks * 1_000_000 / Ticks.perSecond
        av_dict_set(&options, "frag_duration", String(microseconds), 0)
        av_dict_set(&options, "video_track_timescale", String(Ticks.perSecond), 0)
        let code = avformat_write_header(context, &options)
        try file.check()
        guard code >= 0 else {
            throw EpisodeError(file.path, "libavformat couldn't begin the file: \(LibAV.text(code))")
        }
        try sealFragments()
    }
}
