internal import Glibc
internal import Platform
internal import Protocol

/// What the sound of a file is like.
package struct SoundFileFormat: Sendable, Hashable {
    /// Nominal sample frames a second.
    package var rate: Int
    package var channels: Int
    /// `pcm_s16le`, `aac`.
    package var codec: String
}

/// Reads the sound of a WAV file or of a container's audio track, block by block: memory stays bounded for any length.
///
/// What is handed over is one channel, full scale 1: the first, unless it is silent in the first block and another one
/// isn't. Channels are never mixed, since two microphones a hand apart would cancel each other at 18 kHz.
package enum SoundReader {
    /// A longer hole in the time stamps of a track than this begins a new run, seconds; a shorter one is filled up with
    /// silence.
    static let longestHole = 10

    /// Calls `begin` once with the format, then `body` with each block and its place.
    ///
    /// The place is in sample frames since the file's time zero, which for a container is that of its presentation
    /// times; a block that doesn't begin where the last one ended begins a new run. Nil when the file has no sound.
    ///
    /// - Throws: `SystemError`, `EpisodeError`, and what the bodies throw.
    @discardableResult
    package static func read(
        _ path: String, begin: (SoundFileFormat) throws -> Void = { _ in }, _ body: (Int64, [Float]) throws -> Void
    ) throws -> SoundFileFormat? {
        let head: [UInt8]
        do {
            let file = try FileDescriptor(path: path, flags: O_RDONLY)
            do throws(Errno) { head = try file.read(upTo: 12) } catch { throw SystemError(error, "reading \(path)") }
        }
        let form = head.count == 12 ? String(decoding: head[8...], as: UTF8.self) : ""
        guard form == "WAVE" else { return try SoundDecoder.open(path: path)?.read(begin, body) }
        return try wav(path, begin, body)
    }

    private static func wav(
        _ path: String, _ begin: (SoundFileFormat) throws -> Void, _ body: (Int64, [Float]) throws -> Void
    ) throws -> SoundFileFormat? {
        let head = try WAVFile(path: path)
        guard let format = head.format, format.channels > 0, format.rate > 0 else {
            // 8 bits, A-law and the like: libavcodec knows them.
            return try SoundDecoder.open(path: path)?.read(begin, body)
        }
        let sound = SoundFileFormat(
            rate: format.rate, channels: format.channels, codec: "pcm_\(format.encoding.rawValue.prefix(5))")
        try begin(sound)
        let file = try FileDescriptor(path: path, flags: O_RDONLY)
        guard lseek(file.rawValue, off_t(head.dataOffset), SEEK_SET) >= 0 else {
            throw SystemError(.current, "reading \(path)")
        }
        // A program that died left a head that says 0 bytes.
        var left = head.declaredBytes > 0 ? min(head.declaredBytes, head.presentBytes) : head.presentBytes
        let frame = head.bytesPerFrame
        var channel: Int?
        var place: Int64 = 0
        var rest: [UInt8] = []
        while left > 0 {
            let part: [UInt8]
            do throws(Errno) { part = try file.read(upTo: Int(min(left, 256 << 10))) } catch {
                throw SystemError(error, "reading \(path)")
            }
            if part.isEmpty { break }
            left -= Int64(part.count)
            rest += part
            let frames = rest.count / frame
            let chosen =
                channel
                ?? ChannelChoice.loudest(of: format.channels) { samples(rest, format, frame, channel: $0, frames) }
            channel = chosen
            let block = samples(rest, format, frame, channel: chosen, frames)
            rest.removeFirst(frames * frame)
            if !block.isEmpty { try body(place, block) }
            place += Int64(frames)
        }
        return sound
    }

    private static func samples(
        _ bytes: [UInt8], _ format: AudioFormat, _ stride: Int, channel: Int, _ frames: Int
    ) -> [Float] {
        let width = format.encoding.bytes
        guard (channel + 1) * width <= stride else { return [] }
        return bytes.withUnsafeBytes { raw in
            (0..<frames).map { frame in
                let at = frame * stride + channel * width
                switch format.encoding {
                case .s16:
                    return Float(Int16(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: Int16.self))) / 0x8000
                case .s24:
                    let low = UInt32(raw[at]) | UInt32(raw[at + 1]) << 8 | UInt32(raw[at + 2]) << 16
                    return Float(Int32(bitPattern: low << 8) >> 8) / 0x80_0000
                case .s32:
                    return Float(Int32(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: Int32.self)))
                        / 0x8000_0000
                case .f32:
                    let bits = UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: UInt32.self))
                    let value = Float(bitPattern: bits)
                    return value.isFinite ? value : 0
                }
            }
        }
    }
}

/// Which channel of several is listened to.
enum ChannelChoice {
    /// The first one, unless another is more than 40 dB louder: the first is a socket with nothing in it then.
    static func loudest(of channels: Int, _ samples: (Int) -> [Float]) -> Int {
        guard channels > 1 else { return 0 }
        let powers = (0..<min(channels, 64)).map { channel in
            samples(channel).reduce(0.0) { $0 + Double($1) * Double($1) }
        }
        guard let first = powers.first, let best = powers.max(), best > first * 10_000 else { return 0 }
        return powers.firstIndex(of: best) ?? 0
    }
}
