internal import Glibc
internal import Platform
package import Protocol

/// The head of a WAV file of anyone's, and what the file really holds.
package struct WAVFile: Sendable, Hashable {
    /// Nil when the samples aren't of a kind that we write.
    package let format: AudioFormat?
    package let bytesPerFrame: Int
    package let rate: Int
    /// Of the first sample.
    package let dataOffset: Int64
    /// What the head says.
    package let declaredBytes: Int64
    /// What there is, in whole sample frames.
    package let presentBytes: Int64

    /// Sample frames that are both declared and there.
    package var frames: Int64 { bytesPerFrame > 0 ? min(declaredBytes, presentBytes) / Int64(bytesPerFrame) : 0 }

    /// Reads the head.
    ///
    /// - Throws: `SystemError` when the file can't be read, `EpisodeError` when it is no WAV file.
    package init(path: String) throws {
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        let head: [UInt8]
        let size: Int64
        do throws(Errno) {
            head = try file.read(upTo: 64 << 10)
            size = try file.size()
        } catch {
            throw SystemError(error, "reading \(path)")
        }
        guard head.count >= 12, Self.text(head, 8) == "WAVE", ["RIFF", "RF64"].contains(Self.text(head, 0)) else {
            throw EpisodeError(path, "it is no WAV file")
        }
        var offset = 12
        var format: [UInt8]?
        var largeData: Int64?
        while offset + 8 <= head.count {
            let name = Self.text(head, offset)
            let length = Int(Self.little(head, offset + 4, 4))
            let body = offset + 8
            if name == "fmt ", body + 16 <= head.count { format = Array(head[body..<min(head.count, body + length)]) }
            if name == "ds64", body + 16 <= head.count {
                largeData = Int64(exactly: Self.little(head, body + 8, 8))
            }
            if name == "data", let format, format.count >= 16 {
                let bytesPerFrame = Int(Self.little(format, 12, 2))
                guard bytesPerFrame > 0 else { break }
                self.bytesPerFrame = bytesPerFrame
                rate = Int(Self.little(format, 4, 4))
                self.format = Self.format(format)
                dataOffset = Int64(body)
                declaredBytes = length == 0xFFFF_FFFF ? largeData ?? 0 : Int64(length)
                let present = max(0, size - Int64(body))
                presentBytes = present - present % Int64(bytesPerFrame)
                return
            }
            offset = body + length + length % 2
        }
        throw EpisodeError(path, "its head has no format or no samples")
    }

    private static func format(_ chunk: [UInt8]) -> AudioFormat? {
        var tag = little(chunk, 0, 2)
        if tag == 0xFFFE, chunk.count >= 26 { tag = little(chunk, 24, 2) }
        let encoding: AudioFormat.Encoding
        switch (tag, little(chunk, 14, 2)) {
        case (1, 16): encoding = .s16
        case (1, 24): encoding = .s24
        case (1, 32): encoding = .s32
        case (3, 32): encoding = .f32
        default: return nil
        }
        return AudioFormat(encoding: encoding, rate: Int(little(chunk, 4, 4)), channels: Int(little(chunk, 2, 2)))
    }

    private static func text(_ bytes: [UInt8], _ offset: Int) -> String {
        String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
    }

    private static func little(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> UInt64 {
        guard offset + count <= bytes.count else { return 0 }
        return bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
