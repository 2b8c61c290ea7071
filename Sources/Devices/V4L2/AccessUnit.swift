package import Platform
package import Protocol

/// Whether a decoder can begin at a frame.
///
/// Pure.
package enum AccessUnit {
    /// True for what stands alone: all frames but those of H.264 and HEVC without an intra picture that resets.
    package static func isKey(_ bytes: FrameBytes, _ encoding: VideoFormat.Encoding) -> Bool {
        switch encoding {
        case .yuyv, .nv12, .yuv420p, .mjpeg: true
        // Rec. H.264 table 7-1: 5 is a slice of an IDR picture; 7.4.1.2.4: slices come last in the unit.
        case .h264: contains(bytes) { $0 & 0x1F == 5 }
        // Rec. H.265 table 7-1: 16 to 21 are pictures at which decoding may begin.
        case .hevc: contains(bytes) { (16...21).contains($0 >> 1 & 0x3F) }
        }
    }

    /// Looks at the first byte after each start code (00 00 01) up to the first slice that fits.
    private static func contains(_ bytes: FrameBytes, where fits: (UInt8) -> Bool) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var zeros = 0
            var index = 0
            while index < bytes.count {
                let byte = bytes[index]
                if byte == 1, zeros >= 2, index + 1 < bytes.count, fits(bytes[index + 1]) { return true }
                zeros = byte == 0 ? zeros + 1 : 0
                index += 1
            }
            return false
        }
    }
}
