internal import Glibc
internal import Platform

/// All samples of a fragmented recording, gathered from the heads of its fragments; the samples themselves aren't read.
struct FragmentIndex {
    /// The samples of one track, in order.
    struct Track {
        /// In the track's ticks.
        var starts: [Int64] = []
        var sizes: [UInt32] = []
        var keys: [Bool] = []
        /// Where the last sample ends, in ticks.
        var end: Int64 = 0
        /// Runs of samples that lie behind each other.
        var chunks: [(offset: Int64, count: Int)] = []

        var bytes: Int64 { sizes.reduce(0) { $0 + Int64($1) } }
    }

    /// What a fragment's samples take in the file.
    struct Stretch {
        let offset: Int64
        let count: Int64
    }

    private static let mostHead: Int64 = 64 << 20

    let fileType: [UInt8]
    /// The box that is kept for an index, with its head.
    let roomOffset: Int64
    let room: Int64
    /// The `moov` box without samples.
    let movie: [UInt8]
    private(set) var tracks: [UInt32: Track] = [:]
    private(set) var stretches: [Stretch] = []
    /// Where the last whole fragment ends.
    private(set) var end: Int64

    var dataBytes: Int64 { stretches.reduce(0) { $0 + $1.count } }

    /// Nil when the file isn't a recording with room for an index: another program's, or one that has its index.
    init?(file: borrowing FileDescriptor) throws(Errno) {
        let size = try file.size()
        var boxes = BoxScan(size: size)
        guard let first = try boxes.next(file), first.kind == "ftyp", first.size <= 1024,
            let free = try boxes.next(file), free.kind == "free",
            let head = try boxes.next(file), head.kind == "moov", head.size <= Self.mostHead
        else { return nil }
        fileType = try file.read(at: first.offset, count: Int(first.size))
        (roomOffset, room) = (free.offset, free.size)
        movie = try file.read(at: head.offset, count: Int(head.size))
        guard let view = BoxView.list(movie[...]).first, view.kind == "moov", view.first("mvex") != nil else {
            return nil
        }
        end = head.offset + head.size
        while let moof = try boxes.next(file), moof.kind == "moof", moof.size <= Self.mostHead,
            let data = try boxes.next(file), data.kind == "mdat"
        {
            let bytes = try file.read(at: moof.offset, count: Int(moof.size))
            guard let box = BoxView.list(bytes[...]).first, let runs = FragmentHead.read(box) else { return nil }
            var begin = data.offset + data.size
            for run in runs {
                let offset = moof.offset + Int64(run.offset)
                guard offset >= data.offset, add(run, at: offset, limit: data.offset + data.size) else { return nil }
                begin = min(begin, offset)
            }
            end = data.offset + data.size
            stretches.append(Stretch(offset: begin, count: end - begin))
        }
    }

    /// False when the samples would reach beyond their fragment.
    private mutating func add(_ run: FragmentHead.Run, at offset: Int64, limit: Int64) -> Bool {
        var track = tracks[run.track] ?? Track()
        var (time, place) = (run.start, offset)
        for index in run.sizes.indices {
            track.starts.append(time)
            track.sizes.append(run.sizes[index])
            track.keys.append(run.keys.isEmpty || run.keys[index])
            time += Int64(run.durations.isEmpty ? run.defaultDuration : run.durations[index])
            place += Int64(run.sizes[index])
        }
        guard place <= limit else { return false }
        track.end = time
        track.chunks.append((offset, run.sizes.count))
        tracks[run.track] = track
        return true
    }
}

/// Goes from box to box through a file, reading the heads only.
struct BoxScan {
    struct Found {
        let kind: String
        let offset: Int64
        /// With the head.
        let size: Int64
    }

    private let size: Int64
    private var offset: Int64 = 0

    init(size: Int64) { self.size = size }

    /// Nil at the end, and where no whole box follows.
    mutating func next(_ file: borrowing FileDescriptor) throws(Errno) -> Found? {
        guard offset + 8 <= size else { return nil }
        let head = try file.read(at: offset, count: 16)
        guard head.count >= 8 else { return nil }
        var length = Int64(head.big(at: 0, 4))
        var least: Int64 = 8
        if length == 1, head.count == 16 {
            length = Int64(clamping: head.big(at: 8, 8))
            least = 16
        }
        guard length >= least, length <= size - offset else { return nil }
        defer { offset += length }
        return Found(kind: String(decoding: head[4..<8], as: UTF8.self), offset: offset, size: length)
    }
}
