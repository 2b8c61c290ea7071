internal import CAV
internal import Glibc
internal import Platform

/// Lets libavformat read an index and compares what it sees with what was recorded.
enum MovieCheck {
    /// Checks number, place, size, time and kind of each sample.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - overlay: bytes that are read instead of the file's at a place.
    ///   - index: what was recorded.
    ///   - place: the new offset of what lay at an offset.
    /// - Throws: `EpisodeError` at the first difference, `SystemError` when the file can't be read.
    static func check(
        _ path: String, overlay: (offset: Int64, bytes: [UInt8])?, against index: FragmentIndex,
        place: (Int64) -> Int64
    ) throws {
        LibAV.prepare()
        let reader = try OverlayReader(path: path, overlay: overlay)
        guard let io = reader.open() else { throw EpisodeError(path, "libavformat has no memory") }
        defer { OverlayReader.free(io) }
        guard let fresh = avformat_alloc_context() else { throw EpisodeError(path, "libavformat has no memory") }
        fresh.pointee.pb = io
        var context: UnsafeMutablePointer<AVFormatContext>? = fresh
        // A failure frees the context.
        let opened = avformat_open_input(&context, "index", av_find_input_format("mp4"), nil)
        guard opened >= 0, let input = context else {
            throw EpisodeError(path, "libavformat can't read the new index: \(LibAV.text(opened))")
        }
        defer { avformat_close_input(&context) }
        let expected = index.tracks.filter { !$0.value.sizes.isEmpty }
        guard Int(input.pointee.nb_streams) == expected.count else {
            throw EpisodeError(path, "the new index has \(input.pointee.nb_streams) tracks, not \(expected.count)")
        }
        for number in 0..<Int(input.pointee.nb_streams) {
            guard let stream = input.pointee.streams[number], let id = UInt32(exactly: stream.pointee.id),
                let track = expected[id]
            else { throw EpisodeError(path, "the new index has a track that was not recorded") }
            try check(stream, track, path, place)
        }
        withExtendedLifetime(reader) {}
    }

    private static func check(
        _ stream: UnsafeMutablePointer<AVStream>, _ track: FragmentIndex.Track, _ path: String,
        _ place: (Int64) -> Int64
    ) throws {
        let count = Int(avformat_index_get_entries_count(stream))
        guard count == track.sizes.count else {
            throw EpisodeError(path, "the new index has \(count) samples of \(track.sizes.count)")
        }
        let shift = avformat_index_get_entry(stream, 0)?.pointee.timestamp ?? 0
        var number = 0
        for chunk in track.chunks {
            var offset = place(chunk.offset)
            for _ in 0..<chunk.count {
                guard let entry = avformat_index_get_entry(stream, Int32(number))?.pointee, entry.pos == offset,
                    Int64(entry.size) == Int64(track.sizes[number]),
                    entry.timestamp - shift == track.starts[number] - track.starts[0],
                    (entry.flags & Int32(AVINDEX_KEYFRAME) != 0) == track.keys[number]
                else { throw EpisodeError(path, "the new index is wrong at sample \(number)") }
                offset += Int64(track.sizes[number])
                number += 1
            }
        }
    }
}

/// A file for libavformat, with a few bytes other than they are.
private final class OverlayReader {
    private let path: String
    private let file: FileDescriptor
    private let overlay: (offset: Int64, bytes: [UInt8])?
    private let size: Int64
    private var position: Int64 = 0

    init(path: String, overlay: (offset: Int64, bytes: [UInt8])?) throws(SystemError) {
        self.path = path
        self.overlay = overlay
        file = try FileDescriptor(path: path, flags: O_RDONLY)
        do throws(Errno) { size = try file.size() } catch { throw SystemError(error, "reading \(path)") }
    }

    func open() -> UnsafeMutablePointer<AVIOContext>? {
        let size: Int32 = 1 << 15
        guard let buffer = av_malloc(Int(size))?.assumingMemoryBound(to: UInt8.self) else { return nil }
        let this = Unmanaged.passUnretained(self).toOpaque()
        guard let io = avio_alloc_context(buffer, size, 0, this, readOverlaid, nil, seekOverlaid) else {
            av_free(buffer)
            return nil
        }
        return io
    }

    static func free(_ io: UnsafeMutablePointer<AVIOContext>) {
        av_free(io.pointee.buffer)
        var io: UnsafeMutablePointer<AVIOContext>? = io
        avio_context_free(&io)
    }

    func read(into buffer: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int32 {
        let got = pread(file.rawValue, buffer, count, off_t(position))
        guard got >= 0 else { return cav_AVERROR(errno) }
        guard got > 0 else { return Int32(cav_AVERROR_EOF) }
        if let overlay {
            for (index, byte) in overlay.bytes.enumerated() {
                let place = overlay.offset + Int64(index) - position
                if place >= 0 && place < Int64(got) { buffer[Int(place)] = byte }
            }
        }
        position += Int64(got)
        return Int32(got)
    }

    func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        switch whence & ~AVSEEK_FORCE {
        case AVSEEK_SIZE: return size
        case SEEK_SET: position = max(0, offset)
        case SEEK_CUR: position = max(0, position &+ offset)
        case SEEK_END: position = max(0, size &+ offset)
        default: return Int64(cav_AVERROR(EINVAL))
        }
        return position
    }
}

/// Called by libavformat with the pointer that `open` gave it.
private func readOverlaid(this: UnsafeMutableRawPointer?, buffer: UnsafeMutablePointer<UInt8>?, count: Int32) -> Int32 {
    guard let this, let buffer, count > 0 else { return cav_AVERROR(EINVAL) }
    return Unmanaged<OverlayReader>.fromOpaque(this).takeUnretainedValue().read(into: buffer, Int(count))
}

/// Called by libavformat with the pointer that `open` gave it.
private func seekOverlaid(this: UnsafeMutableRawPointer?, offset: Int64, whence: Int32) -> Int64 {
    guard let this else { return Int64(cav_AVERROR(EINVAL)) }
    return Unmanaged<OverlayReader>.fromOpaque(this).takeUnretainedValue().seek(offset, whence)
}
