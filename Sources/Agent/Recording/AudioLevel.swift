package import Protocol

/// How loud a stretch of PCM is: root mean square and peak over all channels, of full scale 1.
package struct AudioLevel: Sendable, Hashable {
    private var sum = 0.0
    private var count = 0
    package private(set) var peak = 0.0

    package init() {}

    package var rms: Double { count == 0 ? 0 : (sum / Double(count)).squareRoot() }

    package mutating func add(_ bytes: [UInt8], _ encoding: AudioFormat.Encoding) {
        let width = encoding.bytes
        bytes.withUnsafeBytes { raw in
            for offset in stride(from: 0, through: raw.count - width, by: width) {
                let value: Double
                switch encoding {
                case .s16:
                    value =
                        Double(Int16(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Int16.self))) / 32_768
                case .s24:
                    let bits = UInt32(raw[offset]) << 8 | UInt32(raw[offset + 1]) << 16 | UInt32(raw[offset + 2]) << 24
                    value = Double(Int32(bitPattern: bits)) / 2_147_483_648
                case .s32:
                    value =
                        Double(Int32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Int32.self)))
                        / 2_147_483_648
                case .f32:
                    let bits = UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                    let float = Double(Float(bitPattern: bits))
                    value = float.isFinite ? float : 0
                }
                sum += value * value
                count += 1
                peak = max(peak, abs(value))
            }
        }
    }
}
