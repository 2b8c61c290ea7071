internal import Glibc
internal import Platform

/// Makes a plain MP4 with its index in front out of a fragmented recording; no sample is changed.
///
/// A long recording isn't copied. The index is written into the room that was kept for it, and then eight bytes, the
/// head of the `free` box, are overwritten with the head of the index: what came after it becomes the content of one
/// large `mdat` box. A short recording, or one that has outgrown the room, is copied beside and renamed. In both ways
/// libavformat reads the result and must see each sample in its place and at its time before the recording is touched;
/// a program that dies in between leaves the fragmented file as it was, and this can be done again.
package enum MovieFinisher {
    package enum Way: Sendable, Hashable {
        /// The index went into the room that was kept for it.
        case inPlace
        case copied
        /// There was nothing to do: it has an index, or isn't a recording of ours.
        case untouched
    }

    /// Below so many times the room it isn't worth to carry the room along.
    private static let worth: Int64 = 16
    private static let piece = 1 << 20

    /// Finishes a file; call it again after a crash.
    ///
    /// - Parameters:
    ///   - path: the recording, which nobody writes.
    ///   - keepsParametersInside: see `MovieIndex`; true when it isn't known.
    /// - Returns: what was done.
    /// - Throws: `SystemError`, or `EpisodeError` when the result isn't what it has to be; the recording is as it was.
    @discardableResult
    package static func finish(_ path: String, keepsParametersInside: Bool = true) throws -> Way {
        let file = try FileDescriptor(path: path, flags: O_RDWR)
        let index: FragmentIndex
        do throws(Errno) {
            guard let found = try FragmentIndex(file: file) else { return .untouched }
            index = found
        } catch {
            throw SystemError(error, "reading \(path)")
        }
        guard index.tracks[MovieHead.videoTrack]?.sizes.isEmpty == false else { return .untouched }
        let movie = MovieIndex(index, keepsParametersInside: keepsParametersInside)
        let size = Int64(movie.bytes { $0 }.count)
        // Behind the index: the rest of the room as a `free` box, and the head of the `mdat` box.
        let rest = index.room - size - 16
        if rest >= 8 && index.room * worth <= index.dataBytes {
            try finishInPlace(path, file, index, movie.bytes { $0 }, rest: rest)
            return .inPlace
        }
        try finishCopy(path, file, index, movie, indexSize: size)
        return .copied
    }

    // MARK: In place

    private static func finishInPlace(
        _ path: String, _ file: borrowing FileDescriptor, _ index: FragmentIndex, _ movie: [UInt8], rest: Int64
    ) throws {
        var room = BoxBuilder()
        room.add(bytes: movie)
        room.add(UInt32(clamping: rest))
        room.add(bytes: "free".utf8)
        var head = BoxBuilder()
        let data = index.roomOffset + index.room - 16
        head.add(UInt32(1))
        head.add(bytes: "mdat".utf8)
        head.add(index.end - data)
        let change = Array(movie.prefix(8))
        do throws(Errno) {
            let size = try file.size()
            if size > index.end { try file.resize(to: index.end) }
            try file.writeAll(Array(room.bytes.dropFirst(8)), at: index.roomOffset + 8)
            try file.writeAll(head.bytes, at: data)
            try file.synchronizeData()
        } catch {
            throw SystemError(error, "writing the index of \(path)")
        }
        try MovieCheck.check(path, overlay: (index.roomOffset, change), against: index) { $0 }
        do throws(Errno) {
            try file.writeAll(change, at: index.roomOffset)
            try file.synchronize()
        } catch {
            throw SystemError(error, "writing the index of \(path)")
        }
    }

    // MARK: A copy

    private static func finishCopy(
        _ path: String, _ file: borrowing FileDescriptor, _ index: FragmentIndex, _ movie: MovieIndex, indexSize: Int64
    ) throws {
        var begin = Int64(index.fileType.count) + indexSize + 16
        // From the place of each stretch to its new one.
        var shifts: [(old: Int64, new: Int64)] = []
        for stretch in index.stretches {
            shifts.append((stretch.offset, begin))
            begin += stretch.count
        }
        func place(_ offset: Int64) -> Int64 {
            var (low, high) = (0, shifts.count)
            while low < high {
                let middle = (low + high) / 2
                if shifts[middle].old <= offset { low = middle + 1 } else { high = middle }
            }
            guard low > 0 else { return offset }
            return offset - shifts[low - 1].old + shifts[low - 1].new
        }
        let side = path + ".part"
        try Files.remove(side)
        do {
            let copy = try FileDescriptor(path: side, flags: O_RDWR | O_CREAT | O_EXCL)
            do throws(Errno) {
                try copy.writeAll(index.fileType)
                try copy.writeAll(movie.bytes(place: place))
                var head = BoxBuilder()
                head.add(UInt32(1))
                head.add(bytes: "mdat".utf8)
                head.add(index.dataBytes + 16)
                try copy.writeAll(head.bytes)
                for stretch in index.stretches {
                    var done: Int64 = 0
                    while done < stretch.count {
                        let part = try file.read(
                            at: stretch.offset + done, count: Int(min(Int64(piece), stretch.count - done)))
                        guard !part.isEmpty else { throw Errno(rawValue: EIO) }
                        try copy.writeAll(part)
                        done += Int64(part.count)
                    }
                }
                try copy.synchronize()
            } catch {
                throw SystemError(error, "writing \(side)")
            }
            try MovieCheck.check(side, overlay: nil, against: index, place: place)
            try compare(path, file, side, copy, index, place)
            try Files.rename(side, to: path)
            try AtomicFile.synchronizeFolder(of: path)
        } catch {
            try? Files.remove(side)
            throw error
        }
    }

    /// Every byte of every sample is what it was.
    private static func compare(
        _ path: String, _ file: borrowing FileDescriptor, _ side: String, _ copy: borrowing FileDescriptor,
        _ index: FragmentIndex, _ place: (Int64) -> Int64
    ) throws {
        for stretch in index.stretches {
            var done: Int64 = 0
            while done < stretch.count {
                let count = Int(min(Int64(piece), stretch.count - done))
                let (old, new): ([UInt8], [UInt8])
                do throws(Errno) {
                    old = try file.read(at: stretch.offset + done, count: count)
                    new = try copy.read(at: place(stretch.offset) + done, count: count)
                } catch {
                    throw SystemError(error, "reading \(side)")
                }
                guard old == new, !old.isEmpty else {
                    throw EpisodeError(side, "it isn't what \(path) is at \(stretch.offset + done)")
                }
                done += Int64(old.count)
            }
        }
    }
}
