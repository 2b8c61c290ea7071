internal import Glibc
package import Protocol

/// The picture of the pattern camera: a still background, a box that moves below the code, and the code itself.
///
/// The background is made once. A frame puts the background back where the box was, and copies prepared rows where the
/// box and the code are: some hundred short memory copies, whatever the build's optimization.
package struct PatternPicture: Sendable {
    package let format: VideoFormat
    /// The last frame.
    private var bytes: [UInt8]
    private let background: [UInt8]
    /// Bytes from one luma value to the next.
    private let step: Int
    private let place: PatternCode.Place
    private let blackBlock: [UInt8]
    private let whiteBlock: [UInt8]
    private let boxRows: [[UInt8]]
    private let boxWidth: Int
    private let boxHeight: Int
    private let framesPerCycle: Double
    private var box: (x: Int, y: Int)

    /// Width and height are even; the encoding is one of yuyv, nv12 and yuv420p.
    package init(encoding: VideoFormat.Encoding, width: Int, height: Int, rate: Double) {
        let step = encoding == .yuyv ? 2 : 1
        format = VideoFormat(encoding: encoding, width: width, height: height, bytesPerLine: width * step)
        self.step = step
        place = PatternCode.Place(width: width, height: height)
        background = Self.makeBackground(encoding, width: width, height: height)
        bytes = background
        blackBlock = Self.row(place.block, step: step) { _ in PatternCode.black }
        whiteBlock = Self.row(place.block, step: step) { _ in PatternCode.white }
        let boxWidth = max(width / 8 & ~1, 16)
        self.boxWidth = boxWidth
        boxHeight = max(height / 8 & ~1, 16)
        let cell = max(boxWidth / 8, 2)
        boxRows = [0, 1].map { parity in
            Self.row(boxWidth, step: step) { ($0 / cell + parity) & 1 == 0 ? 200 : 60 }
        }
        framesPerCycle = max(rate * 4, 2)
        box = (0, place.origin + place.height + 8)
    }

    /// Draws one frame and gives it back.
    package mutating func draw(_ code: PatternCode) -> [UInt8] {
        let (old, new) = (box, position(at: code.number))
        // Taken out of self, so that the closure may use the rest of self without a copy of the picture.
        var canvas = bytes
        bytes = []
        canvas.withUnsafeMutableBytes { picture in
            background.withUnsafeBytes { background in
                for y in old.y..<old.y + boxHeight {
                    let offset = y * format.bytesPerLine + old.x * step
                    copy(background, from: offset, to: picture, at: offset, count: boxWidth * step)
                }
            }
            let cell = max(boxHeight / 8, 2)
            for y in 0..<boxHeight {
                let offset = (new.y + y) * format.bytesPerLine + new.x * step
                boxRows[(y / cell) & 1].withUnsafeBytes {
                    copy($0, from: 0, to: picture, at: offset, count: boxWidth * step)
                }
            }
            draw(code, into: picture)
        }
        box = new
        bytes = canvas
        return canvas
    }

    private func draw(_ code: PatternCode, into picture: UnsafeMutableRawBufferPointer) {
        var line: [UInt8] = []
        line.reserveCapacity(place.width * step)
        for (row, word) in code.words.enumerated() {
            line.removeAll(keepingCapacity: true)
            for column in 0..<PatternCode.columns {
                let isOne = word >> UInt32(PatternCode.columns - 1 - column) & 1 == 1
                line.append(contentsOf: isOne ? whiteBlock : blackBlock)
            }
            line.withUnsafeBytes { line in
                for y in 0..<place.block {
                    let top = place.origin + row * place.block + y
                    copy(
                        line, from: 0, to: picture, at: top * format.bytesPerLine + place.origin * step,
                        count: line.count)
                }
            }
        }
    }

    private func copy(
        _ source: UnsafeRawBufferPointer, from: Int, to target: UnsafeMutableRawBufferPointer, at: Int, count: Int
    ) {
        guard let source = source.baseAddress, let base = target.baseAddress else { return }
        precondition(at >= 0 && at + count <= target.count, "the pattern leaves its picture")
        memcpy(base + at, source + from, count)
    }

    /// The box goes to and fro below the code in four seconds, and up and down in three.
    private func position(at number: Int64) -> (x: Int, y: Int) {
        let turn = 2 * Double.pi * Double(number) / framesPerCycle
        let top = place.origin + place.height + 8
        let across = Double(format.width - boxWidth) * (0.5 - 0.5 * cos(turn))
        let down = Double(max(format.height - boxHeight - top, 0)) * (0.5 - 0.5 * cos(turn * 4 / 3))
        let y = min(top + Int(down), format.height - boxHeight)
        return (Int(across) & ~1, y)
    }

    /// A run of pixels with neutral chroma.
    private static func row(_ count: Int, step: Int, _ luma: (Int) -> UInt8) -> [UInt8] {
        (0..<count).flatMap { step == 2 ? [luma($0), 128] : [luma($0)] }
    }

    /// Eight bands of a gradient, each with another tint; neutral where the code lies, as far as planes are concerned.
    private static func makeBackground(_ encoding: VideoFormat.Encoding, width: Int, height: Int) -> [UInt8] {
        let luma = { (x: Int, band: Int) in UInt8(48 + x * 120 / width + band * 6) }
        let blue = { (x: Int, band: Int) in UInt8(104 + x * 48 / width + band) }
        let red = { (x: Int, band: Int) in UInt8(152 - x * 48 / width - band) }
        var packed: [[UInt8]] = []
        var (plane, both, blues, reds): ([[UInt8]], [[UInt8]], [[UInt8]], [[UInt8]]) = ([], [], [], [])
        for band in 0..<8 {
            plane.append((0..<width).map { luma($0, band) })
            blues.append(stride(from: 0, to: width, by: 2).map { blue($0, band) })
            reds.append(stride(from: 0, to: width, by: 2).map { red($0, band) })
            both.append(stride(from: 0, to: width, by: 2).flatMap { [blue($0, band), red($0, band)] })
            packed.append(
                stride(from: 0, to: width, by: 2).flatMap {
                    [luma($0, band), blue($0, band), luma($0 + 1, band), red($0, band)]
                })
        }
        let rows = (0..<height).map { $0 * 8 / height }
        let halfRows = (0..<height / 2).map { $0 * 16 / height }
        switch encoding {
        case .yuyv: return rows.flatMap { packed[$0] }
        case .nv12: return rows.flatMap { plane[$0] } + halfRows.flatMap { both[min($0, 7)] }
        default:
            return rows.flatMap { plane[$0] } + halfRows.flatMap { blues[min($0, 7)] }
                + halfRows.flatMap { reds[min($0, 7)] }
        }
    }
}
