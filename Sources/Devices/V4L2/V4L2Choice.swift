internal import Protocol

/// Chooses the pixel format for what was asked.
///
/// Pure.
package enum V4L2Choice {
    /// What a configuration asks for.
    package enum Format: String, Sendable, CaseIterable {
        case auto, yuyv, nv12, yuv420p, mjpeg, h264, hevc
        /// Put into an order that the encoder takes: see `RawArrangement`.
        case uyvy, yvyu, grey, nv21, yv12, rgb24, bgr24
    }

    package struct Wish: Sendable, Hashable {
        package var format = Format.auto
        /// Pixels.
        package var width = 1280
        /// Pixels.
        package var height = 720
        /// Frames a second.
        package var rate = 30.0
        package var controls: [ControlWish] = []

        package init() {}
    }

    /// Best first: what the camera has compressed already costs no time here; H.264 of a camera comes last, since its
    /// key frames come when it likes.
    private static let preference: [VideoFormat.Encoding] = [.mjpeg, .nv12, .yuyv, .yuv420p, .h264, .hevc]

    /// The format to set; nil when the node offers none that can be recorded, or not the one that was asked for.
    package static func fourCC(for wish: Wish, among offers: [V4L2Offer]) -> FourCC? {
        let legal = offers.filter { offer in
            guard let word = offer.fourCC.word else { return false }
            return wish.format == .auto || word == wish.format.rawValue
        }
        // A node may list one encoding twice (MJPG and JPEG): the first one counts.
        let ranked = legal.enumerated().sorted { a, b in
            let (left, right) = (score(a.element, wish), score(b.element, wish))
            return left == right ? a.offset < b.offset : left.lexicographicallyPrecedes(right)
        }
        return ranked.first?.element.fourCC
    }

    /// Smaller is better: whether the size can be had, then whether the rate can, then the preference.
    private static func score(_ offer: V4L2Offer, _ wish: Wish) -> [Double] {
        let fitting = offer.sizes.filter { $0.width.contains(wish.width) && $0.height.contains(wish.height) }
        let fastest = fitting.flatMap(\.rates).max() ?? wish.rate
        // What has to be arranged anew costs more than what needn't be.
        let place =
            RawArrangement(offer.fourCC) == nil
            ? offer.fourCC.encoding.flatMap(preference.firstIndex) ?? preference.count : preference.count
        // A driver that lists no sizes may take any.
        let hasSize = !fitting.isEmpty || offer.sizes.isEmpty
        return [hasSize ? 0 : 1, fastest >= wish.rate * 0.99 ? 0 : 1 + wish.rate - fastest, Double(place)]
    }

    /// "mjpeg 640x480 30; 1280x720 15, 30 frames/s", one line for each format, for a person.
    package static func abilities(_ offers: [V4L2Offer]) -> [String] {
        offers.compactMap { offer in
            guard let word = offer.fourCC.word else { return nil }
            let sizes = offer.sizes.map { size in
                let text =
                    size.width.count == 1 && size.height.count == 1
                    ? "\(size.width.lowerBound)x\(size.height.lowerBound)"
                    : "\(size.width.lowerBound)x\(size.height.lowerBound) to "
                        + "\(size.width.upperBound)x\(size.height.upperBound)"
                let rates = size.rates.map(Self.rate).joined(separator: ", ")
                return rates.isEmpty ? text : "\(text) at \(rates)"
            }
            return sizes.isEmpty ? word : "\(word): \(sizes.joined(separator: "; "))"
        }
    }

    /// 30 as "30", 29.97003 as "29.97".
    package static func rate(_ rate: Double) -> String {
        let hundredths = (rate * 100).rounded()
        guard hundredths.isFinite, abs(hundredths) < 1e12 else { return "\(rate)" }
        return hundredths.truncatingRemainder(dividingBy: 100) == 0
            ? String(Int64(hundredths / 100)) : "\(hundredths / 100)"
    }
}
