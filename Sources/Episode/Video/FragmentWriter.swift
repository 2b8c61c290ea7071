internal import Platform
internal import Timing

/// A fragmented MP4 with one video track and perhaps one of sound, as it is while a take runs; used by one thread.
///
/// A frame goes to the file at once, behind a room that is kept for its fragment's head; the head is written when the
/// fragment ends, and the fragment is on the disk before the next one begins. So a frame is copied by the system only,
/// and no fragment waits in memory. Each fragment says its own time, so a stall falsifies nothing.
///
/// The file begins with `ftyp`, then a `free` box that has room for the index of the whole (see `MovieIndex`), then a
/// `moov` without samples.
final class FragmentWriter {
    /// The length of a fragment.
    ///
    /// A killed program loses the fragment that isn't ended: this and the frame that would have ended it stay below a
    /// second.
    static let fragmentTicks: Int64 = Ticks.perSecond * 95 / 100
    /// A fragment that no frame ends is ended by `endStale`.
    private static let patience = Interval.seconds(1)
    /// Far below what 32 bits count.
    private static let mostBytes: Int64 = 1 << 30

    private let file: FragmentFile
    private let nominalStep: Int64
    private let sound: SoundFormat?
    private let beforeFragment: () throws -> Void

    private var sequence: UInt32 = 0
    /// The place that is kept for the head of the fragment that is open.
    private var headOffset: Int64?
    private var opened = Timestamp<HostTime>(nanoseconds: 0)
    private var video = FragmentHead.Run(track: MovieHead.videoTrack, start: 0)
    private var stamps: [Int64] = []
    private var soundRun = FragmentHead.Run(track: MovieHead.soundTrack, start: 0)
    private var soundBytes: [UInt8] = []
    private var soundPackets: Int64 = 0

    /// Frames that were given.
    private(set) var packets: Int64 = 0
    /// Frames of whole fragments on the disk.
    private(set) var durablePackets: Int64 = 0

    /// Writes the head of the file and brings it to the disk.
    ///
    /// `room` is what is kept for the index, in bytes.
    init(
        file: FragmentFile, track: VideoTrack, sound: SoundFormat?, nominalStep: Int64, room: Int64,
        beforeFragment: @escaping () throws -> Void
    ) throws {
        self.file = file
        self.sound = sound
        self.nominalStep = nominalStep
        self.beforeFragment = beforeFragment
        soundRun.defaultDuration = UInt32(sound?.packetFrames ?? 0)
        let head = try MovieHead(path: file.path, video: track, sound: sound)
        try file.append(head.fileType)
        var free = BoxBuilder()
        free.add(UInt32(clamping: room))
        free.add(bytes: "free".utf8)
        try file.append(free.bytes)
        file.skip(room - Int64(free.bytes.count))
        try file.append(head.movie)
        try file.seal()
    }

    /// Adds a frame; the stamp is in ticks and later than all before it.
    func append(_ bytes: UnsafeRawBufferPointer, stamp: Int64, isKey: Bool) throws {
        guard let size = UInt32(exactly: bytes.count) else {
            throw EpisodeError(file.path, "a frame of \(bytes.count) bytes can't be written")
        }
        if let first = stamps.first, mustEnd(first, before: stamp) { try endFragment(next: stamp) }
        try begin()
        try file.append(bytes)
        stamps.append(stamp)
        video.sizes.append(size)
        video.keys.append(isKey)
        packets += 1
    }

    /// Adds a packet of sound; it is on the disk when its fragment ends.
    func append(sound bytes: UnsafeRawBufferPointer) throws {
        // After a stall of the camera much of it may come at once.
        if soundRun.sizes.count >= FragmentHead.mostSoundPackets {
            try begin()
            try endFragment(next: nil)
        }
        soundBytes.append(contentsOf: bytes)
        soundRun.sizes.append(UInt32(clamping: bytes.count))
        soundPackets += 1
    }

    /// Ends a fragment that has been open for a second without a frame that would have ended it: the camera stalls.
    func endStale(now: Timestamp<HostTime> = HostClock.now) throws {
        guard headOffset != nil, now - opened >= Self.patience else { return }
        try endFragment(next: nil)
    }

    /// Ends the last fragment, and brings all to the disk.
    func finish() throws {
        if headOffset == nil && !soundRun.sizes.isEmpty { try begin() }
        if headOffset != nil { try endFragment(next: nil) }
        try beforeFragment()
        try file.seal()
    }

    private func mustEnd(_ first: Int64, before stamp: Int64) -> Bool {
        // One tick early: the nominal step is rounded.
        stamp - first >= Self.fragmentTicks - 1 || file.end - (headOffset ?? 0) >= Self.mostBytes
            || stamps.count >= FragmentHead.mostFrames
    }

    private func begin() throws {
        guard headOffset == nil else { return }
        headOffset = file.end
        opened = HostClock.now
        file.skip(Int64(FragmentHead.room))
    }

    private func endFragment(next: Int64?) throws {
        guard let head = headOffset else { return }
        try beforeFragment()
        let soundOffset = file.end - head
        try file.append(soundBytes)
        var runs: [FragmentHead.Run] = []
        if let first = stamps.first {
            video.start = first
            video.durations = stamps.indices.map { index in
                let end = index + 1 < stamps.count ? stamps[index + 1] : next ?? stamps[index] + nominalStep
                return UInt32(clamping: end - stamps[index])
            }
            video.offset = FragmentHead.room
            runs.append(video)
        }
        if !soundRun.sizes.isEmpty {
            soundRun.start = (soundPackets - Int64(soundRun.sizes.count)) * Int64(soundRun.defaultDuration)
            soundRun.offset = Int(soundOffset)
            runs.append(soundRun)
        }
        sequence += 1
        let dataBytes = file.end - head - Int64(FragmentHead.room)
        try file.write(FragmentHead.bytes(sequence: sequence, runs: runs, dataBytes: dataBytes), at: head)
        try file.seal()
        durablePackets = packets
        headOffset = nil
        stamps.removeAll(keepingCapacity: true)
        for keep in [\FragmentHead.Run.sizes, \.durations] {
            video[keyPath: keep].removeAll(keepingCapacity: true)
            soundRun[keyPath: keep].removeAll(keepingCapacity: true)
        }
        video.keys.removeAll(keepingCapacity: true)
        soundBytes.removeAll(keepingCapacity: true)
    }
}
