internal import CV4L
package import Protocol

/// A pixel format's code of four letters.
package struct FourCC: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The code that a driver uses for an encoding; the first one of those that mean the same.
    package init(_ encoding: VideoFormat.Encoding) {
        rawValue =
            switch encoding {
            case .yuyv: cv4l_PIX_FMT_YUYV
            case .nv12: cv4l_PIX_FMT_NV12
            case .yuv420p: cv4l_PIX_FMT_YUV420
            case .mjpeg: cv4l_PIX_FMT_MJPEG
            case .h264: cv4l_PIX_FMT_H264
            case .hevc: cv4l_PIX_FMT_HEVC
            }
    }

    /// The word for `format` in a configuration; nil for what can't be recorded.
    package var word: String? { RawArrangement(self)?.rawValue ?? encoding?.rawValue }

    /// What is made of it for the files; nil for what can't be recorded.
    package var encoding: VideoFormat.Encoding? {
        switch rawValue {
        case cv4l_PIX_FMT_YUYV: .yuyv
        case cv4l_PIX_FMT_NV12: .nv12
        case cv4l_PIX_FMT_YUV420: .yuv420p
        case cv4l_PIX_FMT_MJPEG, cv4l_PIX_FMT_JPEG: .mjpeg
        case cv4l_PIX_FMT_H264: .h264
        case cv4l_PIX_FMT_HEVC: .hevc
        default: RawArrangement(self)?.encoding
        }
    }

    package var description: String {
        let letters = (0..<4).map { UInt8(truncatingIfNeeded: rawValue >> (8 * $0)) }
        return String(decoding: letters.map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}
