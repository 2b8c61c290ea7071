/// An emulated glove at a USB port, as bytes in and bytes out: its commands, its heartbeats, its tagged frames.
///
/// Pure; the way from and to a pseudo-terminal is its owner's.
package struct USBGloveModel: Sendable {
    private static let heartbeat = 1.0
    private let script: GloveScript
    private let glove: EmulatedGlove
    private var isStreaming = false
    private var input: [UInt8] = []
    private var next: [GloveModality: Int64] = [:]
    private var nextHeartbeat = 0.0

    package init(_ script: GloveScript) {
        self.script = script
        glove = EmulatedGlove(script)
    }

    /// Rows a second of a kind, by the glove's clock.
    package func rate(_ modality: GloveModality) -> Double {
        switch modality {
        case .tactile: script.rate
        case .imu: script.rate * 2
        case .mag: script.rate / 2
        }
    }

    /// What is sent up to an age in seconds; what was taken while nobody asked for it is gone.
    package mutating func due(at age: Double) -> [(modality: GloveModality, number: Int64, taken: Double, bytes: [UInt8])] {
        var frames: [(modality: GloveModality, number: Int64, taken: Double, bytes: [UInt8])] = []
        for modality in GloveModality.allCases {
            let rate = rate(modality) * (1 + script.skewPPM * 1e-6)
            var number = next[modality] ?? 0
            while Double(number) / rate <= age {
                if isStreaming {
                    let micros = Int64((Double(number) / rate(modality) * 1e6).rounded(.down))
                    let counter = script.counterStart &+ UInt32(truncatingIfNeeded: micros)
                    frames.append(
                        (
                            modality, number, Double(number) / rate,
                            glove.frame(modality, number: number, counter: counter)
                        ))
                }
                number += 1
            }
            next[modality] = number
        }
        return frames.sorted { $0.taken < $1.taken }
    }

    /// The text that comes by itself.
    package mutating func heartbeats(at age: Double) -> [UInt8] {
        guard age >= nextHeartbeat else { return [] }
        nextHeartbeat = age + Self.heartbeat
        return Array("#HB t_us=\(UInt32(truncatingIfNeeded: Int64(age * 1e6))) imu_ok=1\r\n".utf8)
    }

    /// Commands end with a line feed.
    package mutating func received(_ bytes: [UInt8]) -> [UInt8] {
        input += bytes
        var answer: [UInt8] = []
        while let end = input.firstIndex(of: 0x0A) {
            let line = String(decoding: input[..<end].filter { $0 != 0x0D }, as: UTF8.self)
            input.removeFirst(end + 1)
            answer += self.answer(line)
        }
        if input.count > 256 { input = [] }
        return answer
    }

    private mutating func answer(_ line: String) -> [UInt8] {
        switch line {
        case "STREAM TAG ON":
            isStreaming = true
            return Array("#STREAM TAG on\r\n".utf8)
        case "STREAM TAG OFF":
            isStreaming = false
            return Array("#STREAM TAG off\r\n".utf8)
        case "GET CONFIG": return Array("#CONFIG ".utf8) + script.configurationText + [0x0D, 0x0A]
        case "GET STATUS": return Array("#STATUS ok\r\n".utf8)
        default: return []
        }
    }
}
