internal import CAV
internal import Protocol

/// Turns the bytes of a raw picture into the planes that the encoder takes; used by one thread.
final class PictureSource {
    private let path: String
    private let format: VideoFormat
    private let stride: Int
    private let isRepacked: Bool
    private let frame: UnsafeMutablePointer<AVFrame>
    private var scaler: OpaquePointer?
    /// Of the encoded picture: even numbers; an odd last column or row of the source is cut off.
    let width: Int
    let height: Int
    let pixelFormat: AVPixelFormat

    /// `onlyNV12`: what graphics processors take.
    init(path: String, format: VideoFormat, onlyNV12: Bool = false) throws {
        guard (2...16_384).contains(format.width), (2...16_384).contains(format.height) else {
            throw EpisodeError(path, "a picture of \(format.width)×\(format.height) can't be encoded")
        }
        self.path = path
        self.format = format
        let rowBytes = format.encoding == .yuyv ? 2 * ((format.width + 1) & ~1) : format.width
        stride = format.bytesPerLine == 0 ? rowBytes : format.bytesPerLine
        guard stride >= rowBytes, stride <= 1 << 20 else {
            throw EpisodeError(path, "a row of \(format.bytesPerLine) bytes can't hold \(format.width) pixels")
        }
        width = format.width & ~1
        height = format.height & ~1
        switch format.encoding {
        case .yuyv, .yuv420p: pixelFormat = onlyNV12 ? AV_PIX_FMT_NV12 : AV_PIX_FMT_YUV420P
        case .nv12: pixelFormat = AV_PIX_FMT_NV12
        case .mjpeg, .h264, .hevc:
            throw EpisodeError(path, "\(format.encoding.rawValue) isn't a raw picture")
        }
        isRepacked = format.encoding == .yuyv || (onlyNV12 && format.encoding == .yuv420p)
        guard let frame = av_frame_alloc() else { throw EpisodeError(path, "libavutil has no memory") }
        self.frame = frame
        frame.pointee.width = Int32(width)
        frame.pointee.height = Int32(height)
        frame.pointee.format = pixelFormat.rawValue
        frame.pointee.color_range = AVCOL_RANGE_MPEG
        let code = av_frame_get_buffer(frame, 0)
        guard code >= 0 else { throw EpisodeError(path, "libavutil has no memory: \(LibAV.text(code))") }
        guard isRepacked else { return }
        // Equal sizes: swscale then has a direct routine, and the filter is not used.
        scaler = sws_getContext(
            Int32(width), Int32(height), format.encoding == .yuyv ? AV_PIX_FMT_YUYV422 : AV_PIX_FMT_YUV420P,
            Int32(width), Int32(height), pixelFormat, SWS_FAST_BILINEAR, nil, nil, nil)
        guard scaler != nil else { throw EpisodeError(path, "swscale can't convert \(format.encoding.rawValue)") }
    }

    deinit {
        sws_freeContext(scaler)
        var frame: UnsafeMutablePointer<AVFrame>? = frame
        av_frame_free(&frame)
    }

    /// The bytes that a picture must have at least; the last row needs no padding.
    private var neededBytes: Int {
        switch format.encoding {
        case .yuyv: stride * (height - 1) + 2 * width
        case .nv12: stride * format.height + stride * (height / 2 - 1) + width
        default: stride * format.height + 2 * chromaStride * ((format.height + 1) / 2) - chromaStride + width / 2
        }
    }

    private var chromaStride: Int { (stride + 1) / 2 }

    func objection(toBytes count: Int) -> String? {
        guard count < neededBytes else { return nil }
        return "a picture of \(count) bytes came, \(format.width)×\(format.height) \(format.encoding.rawValue) has "
            + "\(neededBytes)"
    }

    /// The frame with the picture in it; valid until the next call.
    func fill(_ buffer: UnsafeRawBufferPointer) throws -> UnsafeMutablePointer<AVFrame> {
        if let objection = objection(toBytes: buffer.count) { throw EpisodeError(path, objection) }
        let code = av_frame_make_writable(frame)
        guard code >= 0 else { throw EpisodeError(path, "libavutil has no memory: \(LibAV.text(code))") }
        guard let source = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return frame }
        let planes = frame.pointee.data
        let strides = frame.pointee.linesize
        let chroma = source + stride * format.height
        switch format.encoding {
        case .yuyv:
            cav_scale_packed(scaler, source, Int32(stride), Int32(height), frame)
        case .nv12:
            av_image_copy_plane(planes.0, strides.0, source, Int32(stride), Int32(width), Int32(height))
            av_image_copy_plane(planes.1, strides.1, chroma, Int32(stride), Int32(width), Int32(height / 2))
        case .yuv420p where isRepacked:
            let second = chroma + chromaStride * ((format.height + 1) / 2)
            cav_scale_planes(
                scaler, source, chroma, second, Int32(stride), Int32(chromaStride), Int32(height), frame)
        default:
            let second = chroma + chromaStride * ((format.height + 1) / 2)
            let (width, height) = (Int32(width / 2), Int32(height / 2))
            av_image_copy_plane(planes.0, strides.0, source, Int32(stride), width * 2, height * 2)
            av_image_copy_plane(planes.1, strides.1, chroma, Int32(chromaStride), width, height)
            av_image_copy_plane(planes.2, strides.2, second, Int32(chromaStride), width, height)
        }
        return frame
    }
}
