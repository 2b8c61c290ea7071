/// Where the samples of one fragment lie, as its `moof` box says it.
struct FragmentHead {
    /// One track's part of a fragment: samples without a hole between them, one after the other in the file.
    struct Run {
        var track: UInt32
        /// Of the first sample, in the track's ticks.
        var start: Int64
        var sizes: [UInt32] = []
        /// Nil where all last `defaultDuration`.
        var durations: [UInt32] = []
        var defaultDuration: UInt32 = 0
        /// Whether a decoder can begin at a sample; empty when it can at each.
        var keys: [Bool] = []
        /// Of the first sample, from the start of the `moof` box.
        var offset: Int = 0
    }

    /// The room that is kept for a head; the rest of it lies in the `mdat` box before the first sample.
    static let room = 4096
    /// Packets of sound in one fragment: 4 bytes each.
    static let mostSoundPackets = 128
    /// Frames in one fragment: 12 bytes each, and 176 bytes for the boxes around both runs.
    static let mostFrames = (room - 4 * mostSoundPackets - 176) / 12

    private static let isKey: UInt32 = 0x0200_0000
    private static let isDifference: UInt32 = 0x0101_0000

    /// The bytes of the head: `moof`, and the begin of an `mdat` that holds `dataBytes` behind the room.
    static func bytes(sequence: UInt32, runs: [Run], dataBytes: Int64) -> [UInt8] {
        var builder = BoxBuilder()
        builder.box("moof") { moof in
            moof.fullBox("mfhd") { $0.add(sequence) }
            for run in runs { add(run, to: &moof) }
        }
        let left = room - builder.bytes.count
        builder.add(UInt32(clamping: Int64(left) + dataBytes))
        builder.add(bytes: "mdat".utf8)
        builder.add(bytes: repeatElement(0, count: max(0, room - builder.bytes.count)))
        return builder.bytes
    }

    private static func add(_ run: Run, to moof: inout BoxBuilder) {
        let hasDurations = !run.durations.isEmpty
        moof.box("traf") { traf in
            // Offsets are from the start of the moof; a default duration and flags stand for those that aren't listed.
            traf.fullBox("tfhd", flags: 0x02_0000 | 0x20 | (hasDurations ? 0 : 0x08)) { box in
                box.add(run.track)
                if !hasDurations { box.add(run.defaultDuration) }
                box.add(isKey)
            }
            traf.fullBox("tfdt", version: 1) { $0.add(run.start) }
            traf.fullBox("trun", flags: 0x01 | 0x200 | (hasDurations ? 0x100 : 0) | (run.keys.isEmpty ? 0 : 0x400)) {
                box in
                box.add(UInt32(run.sizes.count))
                box.add(Int32(clamping: run.offset))
                for index in run.sizes.indices {
                    if hasDurations { box.add(run.durations[index]) }
                    box.add(run.sizes[index])
                    if !run.keys.isEmpty { box.add(run.keys[index] ? isKey : isDifference) }
                }
            }
        }
    }

    /// Reads the content of a `moof` box; nil when it isn't one of the kind that is written here.
    static func read(_ moof: BoxView) -> [Run]? {
        var runs: [Run] = []
        for traf in moof.children where traf.kind == "traf" {
            guard let tfhd = traf.first("tfhd")?.content, let tfdt = traf.first("tfdt")?.content,
                let trun = traf.first("trun")?.content, tfhd.count >= 12, tfdt.count >= 12, trun.count >= 12
            else { return nil }
            let headFlags = tfhd.big(at: tfhd.startIndex, 4) & 0xFF_FFFF
            let flags = trun.big(at: trun.startIndex, 4) & 0xFF_FFFF
            guard headFlags & ~0x02_0028 == 0, flags & ~0x701 == 0, flags & 0x201 == 0x201 else { return nil }
            var run = Run(
                track: UInt32(truncatingIfNeeded: tfhd.big(at: tfhd.startIndex + 4, 4)),
                start: Int64(clamping: tfdt.big(at: tfdt.startIndex + 4, 8)))
            if headFlags & 0x08 != 0 {
                run.defaultDuration = UInt32(truncatingIfNeeded: tfhd.big(at: tfhd.startIndex + 8, 4))
            }
            let count = Int(trun.big(at: trun.startIndex + 4, 4))
            run.offset = Int(trun.big(at: trun.startIndex + 8, 4))
            let width = 4 + (flags & 0x100 != 0 ? 4 : 0) + (flags & 0x400 != 0 ? 4 : 0)
            guard count <= (trun.count - 12) / width else { return nil }
            var place = trun.startIndex + 12
            for _ in 0..<count {
                if flags & 0x100 != 0 {
                    run.durations.append(UInt32(truncatingIfNeeded: trun.big(at: place, 4)))
                    place += 4
                }
                run.sizes.append(UInt32(truncatingIfNeeded: trun.big(at: place, 4)))
                place += 4
                if flags & 0x400 != 0 {
                    run.keys.append(trun.big(at: place, 4) & 0x1_0000 == 0)
                    place += 4
                }
            }
            runs.append(run)
        }
        return runs
    }
}
