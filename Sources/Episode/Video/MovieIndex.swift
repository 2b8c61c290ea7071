/// The `moov` box of a plain MP4 file: every sample of a recording, with its real time, in 64 bits where it matters.
struct MovieIndex {
    private let index: FragmentIndex
    /// Sample descriptions with the letters that say whether parameter sets are among the samples.
    private let keepsParametersInside: Bool
    private let largeOffsets: Bool

    /// - Parameters:
    ///   - index: the samples.
    ///   - keepsParametersInside: false when the sets in the head are the only ones that the samples have, so that the
    ///     description can be the one that every player knows (`avc1`, `hvc1`).
    init(_ index: FragmentIndex, keepsParametersInside: Bool) {
        self.index = index
        self.keepsParametersInside = keepsParametersInside
        // A shift to the front or the back by an index is less than the difference.
        largeOffsets = index.end > Int64(UInt32.max) - (1 << 30)
    }

    /// Whether there is a track with samples in it.
    func has(_ track: UInt32) -> Bool { index.tracks[track]?.sizes.isEmpty == false }

    /// `place` gives the new offset of a chunk; the length of the answer doesn't depend on it.
    func bytes(place: (Int64) -> Int64) -> [UInt8] {
        var builder = BoxBuilder()
        guard let movie = BoxView.list(index.movie[...]).first else { return [] }
        let lengths = movie.children.filter { $0.kind == "trak" }.map { presented($0) }
        builder.box("moov") { moov in
            for box in movie.children {
                switch box.kind {
                case "mvhd": add(movieHeader: box, length: lengths.max() ?? 0, to: &moov)
                case "trak": add(track: box, to: &moov, place)
                case "mvex": break
                default: moov.add(bytes: box.whole)
                }
            }
        }
        return builder.bytes
    }

    // MARK: Lengths

    private func ticksPerSecond(_ trak: BoxView) -> Int64 {
        guard let content = trak.descendant("mdia", "mdhd")?.content, let version = content.first else { return 1 }
        return max(1, Int64(content.big(at: content.startIndex + (version == 1 ? 20 : 12), 4)))
    }

    /// What an edit list leaves out in front, in the track's ticks.
    private func skipped(_ trak: BoxView) -> Int64 {
        guard let list = trak.descendant("edts", "elst")?.content, list.first == 1, list.count >= 28 else { return 0 }
        return Int64(bitPattern: list.big(at: list.startIndex + 16, 8))
    }

    /// In the movie's ticks, rounded up.
    private func presented(_ trak: BoxView) -> Int64 {
        guard let track = index.tracks[MovieHead.trackID(trak)] else { return 0 }
        let ticks = ticksPerSecond(trak)
        let length = max(0, track.end - skipped(trak))
        return length / ticks * Ticks.perSecond + (length % ticks * Ticks.perSecond + ticks - 1) / ticks
    }

    // MARK: Boxes

    private func add(movieHeader box: BoxView, length: Int64, to moov: inout BoxBuilder) {
        let isLong = box.content.first == 1
        moov.fullBox("mvhd", version: 1) { header in
            // Times of making that nobody asked for, ticks, length; the rest is as it was.
            header.add(UInt64(0))
            header.add(UInt64(0))
            header.add(UInt32(Ticks.perSecond))
            header.add(length)
            header.add(bytes: box.content.dropFirst(isLong ? 32 : 20))
        }
    }

    private func add(track trak: BoxView, to moov: inout BoxBuilder, _ place: (Int64) -> Int64) {
        let id = MovieHead.trackID(trak)
        guard let track = index.tracks[id], !track.sizes.isEmpty else { return }
        let (length, skipped) = (presented(trak), skipped(trak))
        moov.box("trak") { builder in
            for box in trak.children {
                switch box.kind {
                case "tkhd":
                    let isLong = box.content.first == 1
                    builder.fullBox("tkhd", version: 1, flags: 3) { header in
                        header.add(UInt64(0))
                        header.add(UInt64(0))
                        header.add(id)
                        header.add(UInt32(0))
                        header.add(length)
                        header.add(bytes: box.content.dropFirst(isLong ? 36 : 24))
                    }
                    if skipped > 0 { builder.addEdits(length: length, from: skipped) }
                case "edts": break
                case "mdia": add(media: box, track, to: &builder, place)
                default: builder.add(bytes: box.whole)
                }
            }
        }
    }

    private func add(
        media: BoxView, _ track: FragmentIndex.Track, to trak: inout BoxBuilder, _ place: (Int64) -> Int64
    ) {
        trak.box("mdia") { builder in
            for box in media.children {
                switch box.kind {
                case "mdhd":
                    let isLong = box.content.first == 1
                    let ticks = UInt32(box.content.big(at: box.content.startIndex + (isLong ? 20 : 12), 4))
                    builder.fullBox("mdhd", version: 1) { header in
                        header.add(UInt64(0))
                        header.add(UInt64(0))
                        header.add(ticks)
                        header.add(track.end)
                        header.add(bytes: box.content.dropFirst(isLong ? 32 : 20))
                    }
                case "minf":
                    builder.box("minf") { information in
                        for part in box.children {
                            if part.kind == "stbl" {
                                add(samples: part, track, to: &information, place)
                            } else {
                                information.add(bytes: part.whole)
                            }
                        }
                    }
                default: builder.add(bytes: box.whole)
                }
            }
        }
    }

    private func add(
        samples table: BoxView, _ track: FragmentIndex.Track, to information: inout BoxBuilder,
        _ place: (Int64) -> Int64
    ) {
        information.box("stbl") { builder in
            if let description = table.first("stsd") { builder.add(bytes: named(description)) }
            addDurations(track, to: &builder)
            if track.keys.contains(false) {
                builder.fullBox("stss") { keys in
                    let numbers = track.keys.indices.filter { track.keys[$0] }
                    keys.add(UInt32(clamping: numbers.count))
                    for number in numbers { keys.add(UInt32(clamping: number + 1)) }
                }
            }
            addChunks(track, to: &builder, place)
        }
    }

    /// How long each sample lasts, equal ones in a row together.
    private func addDurations(_ track: FragmentIndex.Track, to builder: inout BoxBuilder) {
        var runs: [(count: UInt32, duration: UInt32)] = []
        for index in track.starts.indices {
            let next = index + 1 < track.starts.count ? track.starts[index + 1] : track.end
            let duration = UInt32(clamping: next - track.starts[index])
            if let last = runs.last, last.duration == duration {
                runs[runs.count - 1].count += 1
            } else {
                runs.append((1, duration))
            }
        }
        builder.fullBox("stts") { times in
            times.add(UInt32(clamping: runs.count))
            for run in runs {
                times.add(run.count)
                times.add(run.duration)
            }
        }
    }

    private func addChunks(
        _ track: FragmentIndex.Track, to builder: inout BoxBuilder, _ place: (Int64) -> Int64
    ) {
        builder.fullBox("stsc") { box in
            var runs: [(first: Int, count: Int)] = []
            for (number, chunk) in track.chunks.enumerated() where runs.last?.count != chunk.count {
                runs.append((number + 1, chunk.count))
            }
            box.add(UInt32(clamping: runs.count))
            for run in runs {
                box.add(UInt32(clamping: run.first))
                box.add(UInt32(clamping: run.count))
                box.add(UInt32(1))
            }
        }
        builder.fullBox("stsz") { box in
            box.add(UInt32(0))
            box.add(UInt32(clamping: track.sizes.count))
            for size in track.sizes { box.add(size) }
        }
        builder.fullBox(largeOffsets ? "co64" : "stco") { box in
            box.add(UInt32(clamping: track.chunks.count))
            for chunk in track.chunks {
                let offset = place(chunk.offset)
                if largeOffsets { box.add(offset) } else { box.add(UInt32(clamping: offset)) }
            }
        }
    }

    private func named(_ description: BoxView) -> [UInt8] {
        var bytes = Array(description.whole)
        // Box head, version and flags, count, then the first entry's size and letters.
        guard !keepsParametersInside, bytes.count >= 24 else { return bytes }
        let letters = String(decoding: bytes[20..<24], as: UTF8.self)
        let plain = letters == "avc3" ? "avc1" : letters == "hev1" ? "hvc1" : letters
        bytes.replaceSubrange(20..<24, with: plain.utf8)
        return bytes
    }
}
