internal import CV4L
package import Platform
package import Protocol

/// Raw pictures that no encoder takes as they are, put into an order that it takes.
///
/// Pure. Layouts by Linux's "Image Formats" (userspace-api/media/v4l). Capture cards give UYVY, tracking cameras grey.
package enum RawArrangement: String, Sendable, CaseIterable {
    case uyvy, yvyu, grey, nv21, yv12
    case rgb24, bgr24

    package init?(_ fourCC: FourCC) {
        guard let found = Self.allCases.first(where: { $0.fourCC == fourCC }) else { return nil }
        self = found
    }

    package var fourCC: FourCC {
        let code =
            switch self {
            case .uyvy: cv4l_PIX_FMT_UYVY
            case .yvyu: cv4l_PIX_FMT_YVYU
            case .grey: cv4l_PIX_FMT_GREY
            case .nv21: cv4l_PIX_FMT_NV21
            case .yv12: cv4l_PIX_FMT_YVU420
            case .rgb24: cv4l_PIX_FMT_RGB24
            case .bgr24: cv4l_PIX_FMT_BGR24
            }
        return FourCC(rawValue: code)
    }

    /// What comes of it.
    package var encoding: VideoFormat.Encoding {
        switch self {
        case .uyvy, .yvyu: .yuyv
        case .grey, .nv21: .nv12
        case .yv12, .rgb24, .bgr24: .yuv420p
        }
    }

    /// Bytes of the driver's picture; nil for one that can't be.
    package func sourceSize(_ picture: V4L2Picture) -> Int? {
        let lines = picture.bytesPerLine.multipliedReportingOverflow(by: picture.height)
        guard !lines.overflow, picture.bytesPerLine >= rowBytes(picture.width) else { return nil }
        return switch self {
        case .uyvy, .yvyu, .grey, .rgb24, .bgr24: lines.partialValue
        case .nv21, .yv12: lines.partialValue / 2 * 3
        }
    }

    private func rowBytes(_ width: Int) -> Int {
        switch self {
        case .uyvy, .yvyu: 2 * width
        case .grey, .nv21, .yv12: width
        case .rgb24, .bgr24: 3 * width
        }
    }

    /// Of the first plane of what comes of it.
    package func bytesPerLine(_ picture: V4L2Picture) -> Int {
        switch self {
        case .uyvy, .yvyu, .nv21, .yv12: picture.bytesPerLine
        case .grey, .rgb24, .bgr24: picture.width
        }
    }

    /// A picture of at least `sourceSize` bytes in the new order.
    package func arrange(_ bytes: FrameBytes, _ picture: V4L2Picture) -> FrameBytes {
        FrameBytes(bytes.withUnsafeBytes { arrange($0, picture) })
    }

    private func arrange(_ source: UnsafeRawBufferPointer, _ picture: V4L2Picture) -> [UInt8] {
        guard let size = sourceSize(picture), source.count >= size else { return [] }
        switch self {
        case .uyvy: return swap(source, size, pairs: (1, 0, 3, 2))
        case .yvyu: return swap(source, size, pairs: (0, 3, 2, 1))
        case .grey: return grey(source, picture)
        case .nv21: return nv21(source, size, picture)
        case .yv12: return yv12(source, size, picture)
        case .rgb24: return colours(source, picture, red: 0, blue: 2)
        case .bgr24: return colours(source, picture, red: 2, blue: 0)
        }
    }

    /// Two pixels in four bytes, in another order.
    private func swap(_ source: UnsafeRawBufferPointer, _ size: Int, pairs: (Int, Int, Int, Int)) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: size) { target, count in
            var index = 0
            while index + 3 < size {
                target[index] = source[index + pairs.0]
                target[index + 1] = source[index + pairs.1]
                target[index + 2] = source[index + pairs.2]
                target[index + 3] = source[index + pairs.3]
                index += 4
            }
            while index < size {
                target[index] = 128
                index += 1
            }
            count = size
        }
    }

    /// No colour: both chroma values are 128.
    private func grey(_ source: UnsafeRawBufferPointer, _ picture: V4L2Picture) -> [UInt8] {
        let (width, height, stride) = (picture.width, picture.height, picture.bytesPerLine)
        var target = [UInt8](repeating: 128, count: width * height + width * ((height + 1) / 2))
        for row in 0..<height {
            target.withUnsafeMutableBytes {
                $0[(row * width)...].copyBytes(from: source[(row * stride)..<(row * stride + width)])
            }
        }
        return target
    }

    private func nv21(_ source: UnsafeRawBufferPointer, _ size: Int, _ picture: V4L2Picture) -> [UInt8] {
        var target = [UInt8](source.prefix(size))
        var index = picture.bytesPerLine * picture.height
        while index + 1 < size {
            target.swapAt(index, index + 1)
            index += 2
        }
        return target
    }

    private func yv12(_ source: UnsafeRawBufferPointer, _ size: Int, _ picture: V4L2Picture) -> [UInt8] {
        let luma = picture.bytesPerLine * picture.height
        let chroma = (size - luma) / 2
        return [UInt8](source[..<luma]) + source[(luma + chroma)..<(luma + 2 * chroma)] + source[luma..<(luma + chroma)]
    }

    /// ITU-R BT.601 with 8 bits, 16 to 235, in units of 1/256; chroma from the first pixel of each four.
    private func colours(
        _ source: UnsafeRawBufferPointer, _ picture: V4L2Picture, red: Int, blue: Int
    ) -> [UInt8] {
        let (width, height, stride) = (picture.width, picture.height, picture.bytesPerLine)
        let half = (width + 1) / 2
        let chroma = half * ((height + 1) / 2)
        return [UInt8](unsafeUninitializedCapacity: width * height + 2 * chroma) { target, count in
            for row in 0..<height {
                for column in 0..<width {
                    let place = row * stride + 3 * column
                    let (r, g, b) = (Int(source[place + red]), Int(source[place + 1]), Int(source[place + blue]))
                    target[row * width + column] = UInt8(clamping: (66 * r + 129 * g + 25 * b + 128) >> 8 + 16)
                    guard row % 2 == 0, column % 2 == 0 else { continue }
                    let cell = width * height + row / 2 * half + column / 2
                    target[cell] = UInt8(clamping: (-38 * r - 74 * g + 112 * b + 128) >> 8 + 128)
                    target[cell + chroma] = UInt8(clamping: (112 * r - 94 * g - 18 * b + 128) >> 8 + 128)
                }
            }
            count = width * height + 2 * chroma
        }
    }
}
