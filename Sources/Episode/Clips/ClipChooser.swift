package import Timing

/// Which files on a camera's card are the clips of which takes.
///
/// Pure. A file that the camera named at the stop is taken by its name. Else the time in the name decides: a clip begins
/// within 30 s of the start's acknowledgement, and all its segments before 30 s after the stop. The camera's clock may
/// show UTC or local time; its offset is learnt from the clips that were named, else UTC is tried, then the host's zone.
/// No file is given twice, and what isn't sure isn't guessed.
package struct ClipChooser: Sendable {
    /// A file on the card.
    package struct File: Sendable, Hashable {
        package var path: String
        package var size: Int64

        package init(path: String, size: Int64) {
            self.path = path
            self.size = size
        }
    }

    /// A clip that is looked for.
    package struct Wanted: Sendable, Hashable {
        /// Which one, for the answer.
        package var id: String
        package var path: String?
        package var start: Timestamp<WallTime>?
        package var stop: Timestamp<WallTime>?
        package var segments: Int

        package init(
            id: String, path: String? = nil, start: Timestamp<WallTime>? = nil, stop: Timestamp<WallTime>? = nil,
            segments: Int = 1
        ) {
            (self.id, self.path, self.start, self.stop, self.segments) = (id, path, start, stop, segments)
        }

        /// From what waits in an episode's folder.
        package init(_ clip: PendingClip, id: String) {
            self.init(
                id: id, path: clip.cameraPath, start: clip.acknowledgedWall, stop: clip.stoppedWall,
                segments: ClipChooser.segments(clip))
        }
    }

    package enum Choice: Sendable, Hashable {
        /// In order; a note when something about it should be known.
        case files([File], note: String?)
        case none(why: String)
    }

    package static let tolerance = Interval.seconds(30)
    /// The camera begins a new file after this long.
    package static let segmentLength = Interval.seconds(18 * 60)

    /// What of the card was given away already, by path.
    package var taken: Set<String>
    /// How far the zone of the host is ahead of UTC.
    package var zone: Interval

    package init(taken: Set<String> = [], zone: Interval = .zero) {
        self.taken = taken
        self.zone = zone
    }

    /// How many files a clip will have been cut into.
    package static func segments(_ clip: PendingClip) -> Int {
        if let expected = clip.expectedSegments { return expected }
        guard let start = clip.acknowledgedWall, let stop = clip.stoppedWall, stop > start else { return 1 }
        return segments(of: stop - start)
    }

    package static func segments(of length: Interval) -> Int {
        let whole = length.nanoseconds / segmentLength.nanoseconds
        let rest = length.nanoseconds % segmentLength.nanoseconds
        return max(1, Int(clamping: whole + (rest > 0 ? 1 : 0)))
    }

    package mutating func choose(_ wanted: [Wanted], among files: [File]) -> [String: Choice] {
        var choices: [String: Choice] = [:]
        let clips = files.compactMap { file in ClipName(file.path).map { (file: file, name: $0) } }
            .sorted { ($0.name.begin, $0.name.index, $0.name.name) < ($1.name.begin, $1.name.index, $1.name.name) }
        var offsets: [Interval] = []
        for clip in wanted where clip.path != nil {
            let choice = named(clip, clips)
            choices[clip.id] = choice
            if let start = clip.start, case .files(let files, _) = choice,
                let name = files.first.flatMap({ ClipName($0.path) })
            {
                offsets.append(Self.quarter(name.begin - start))
            }
        }
        let rest = wanted.filter { $0.path == nil }
        let learnt = Set(offsets).count == 1 ? offsets.first : nil
        let timed = rest.filter { $0.start != nil }
        if !timed.isEmpty { choose(timed, clips, learnt, &choices) }
        for clip in rest where clip.start == nil { choices[clip.id] = newest(clip, rest.count, clips) }
        return choices
    }

    /// An offset of clocks to the quarter of an hour: all zones of the earth are at one.
    private static func quarter(_ offset: Interval) -> Interval {
        let step: Int64 = 900_000_000_000
        let half = Interval.nanoseconds(offset.nanoseconds < 0 ? -step / 2 : step / 2)
        return .nanoseconds((offset + half).nanoseconds / step * step)
    }

    private typealias Clip = (file: File, name: ClipName)

    // MARK: By name

    private mutating func named(_ clip: Wanted, _ clips: [Clip]) -> Choice {
        guard let path = clip.path else { return .none(why: "no name") }
        let name = Self.bare(path)
        guard let place = clips.firstIndex(where: { Self.bare($0.file.path) == name }) else {
            return .none(why: "the camera named its file \(name), and there is none of that name")
        }
        guard !taken.contains(Self.bare(clips[place].file.path)) else {
            return .none(why: "the camera named its file \(name), which another take has already")
        }
        guard clip.segments > 1 else { return take([clips[place]], of: clip) }
        // The name is that of the first segment or of the last one.
        let free = clips.filter { !taken.contains(Self.bare($0.file.path)) }
        guard let anchor = free.firstIndex(where: { Self.bare($0.file.path) == name }) else {
            return .none(why: "\(name) is given away")
        }
        let after = run(free, from: anchor, forwards: true, count: clip.segments)
        if after.count == clip.segments { return take(after, of: clip) }
        let before = run(free, from: anchor, forwards: false, count: clip.segments)
        return take(before.count > after.count ? before : after, of: clip)
    }

    /// Files that follow each other without a hole, at most so many.
    private func run(_ clips: [Clip], from anchor: Int, forwards: Bool, count: Int) -> [Clip] {
        var found = [clips[anchor]]
        var place = anchor
        while found.count < count {
            let next = forwards ? place + 1 : place - 1
            guard clips.indices.contains(next) else { break }
            let gap = (clips[next].name.begin - clips[place].name.begin).magnitude
            guard gap <= Self.segmentLength + Self.tolerance else { break }
            if forwards { found.append(clips[next]) } else { found.insert(clips[next], at: 0) }
            place = next
        }
        return found
    }

    private mutating func take(_ clips: [Clip], of clip: Wanted) -> Choice {
        for found in clips { taken.insert(Self.bare(found.file.path)) }
        let note =
            clips.count < clip.segments
            ? "\(clips.count) of \(clip.segments) segments were found on the camera" : nil
        return .files(clips.map(\.file), note: note)
    }

    private static func bare(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    // MARK: By time

    private mutating func choose(
        _ wanted: [Wanted], _ clips: [Clip], _ learnt: Interval?, _ choices: inout [String: Choice]
    ) {
        let offset: Interval
        if let learnt {
            offset = learnt
        } else {
            let candidates = zone == .zero ? [.zero] : [.zero, zone]
            let counts = candidates.map { offset in
                wanted.filter { clip in clips.contains { isFree($0) && fits($0, clip, offset) } }.count
            }
            guard let most = counts.max(), most > 0 else {
                let span = clips.isEmpty ? "it has no clip at all" : "none begins within 30 s of the take"
                for clip in wanted { choices[clip.id] = .none(why: "\(span); see whether the camera's clock is set") }
                return
            }
            // Both clocks fit as well: which clip is meant can't be known.
            if counts.filter({ $0 == most }).count > 1 {
                for clip in wanted {
                    choices[clip.id] = .none(
                        why: "clips fit the take by UTC and by local time; copy the right one to a folder and ingest "
                            + "with --from")
                }
                return
            }
            offset = candidates[counts.firstIndex(of: most) ?? 0]
        }
        assign(wanted, clips, offset, &choices)
    }

    /// The nearest pairs first, so that two takes that follow each other don't get one clip.
    private mutating func assign(
        _ wanted: [Wanted], _ clips: [Clip], _ offset: Interval, _ choices: inout [String: Choice]
    ) {
        var pairs: [(distance: Interval, clip: Int, wanted: Int)] = []
        for (place, clip) in wanted.enumerated() {
            guard let start = clip.start else { continue }
            for (other, file) in clips.enumerated() where fits(file, clip, offset) {
                pairs.append(((file.name.begin - offset - start).magnitude, other, place))
            }
        }
        pairs.sort { ($0.distance, $0.wanted, $0.clip) < ($1.distance, $1.wanted, $1.clip) }
        for pair in pairs where choices[wanted[pair.wanted].id] == nil && isFree(clips[pair.clip]) {
            let clip = wanted[pair.wanted]
            var found = [clips[pair.clip]]
            if clip.segments > 1 {
                let free = clips.filter { isFree($0) && isBeforeStop($0, clip, offset) }
                if let anchor = free.firstIndex(where: { $0.file == clips[pair.clip].file }) {
                    found = run(free, from: anchor, forwards: true, count: clip.segments)
                }
            }
            choices[clip.id] = take(found, of: clip)
        }
        for clip in wanted where choices[clip.id] == nil {
            choices[clip.id] = .none(why: "no clip that isn't another take's begins within 30 s of the take")
        }
    }

    private func isFree(_ clip: Clip) -> Bool { !taken.contains(Self.bare(clip.file.path)) }

    private func fits(_ clip: Clip, _ wanted: Wanted, _ offset: Interval) -> Bool {
        guard let start = wanted.start else { return false }
        return (clip.name.begin - offset - start).magnitude <= Self.tolerance && isBeforeStop(clip, wanted, offset)
    }

    private func isBeforeStop(_ clip: Clip, _ wanted: Wanted, _ offset: Interval) -> Bool {
        wanted.stop.map { clip.name.begin - offset <= $0 + Self.tolerance } ?? true
    }

    // MARK: Without anything

    private mutating func newest(_ clip: Wanted, _ count: Int, _ clips: [Clip]) -> Choice {
        guard count == 1 else { return .none(why: "its times are unknown, and it isn't the only such clip") }
        guard let last = clips.last(where: { isFree($0) }) else { return .none(why: "the camera has no clip left") }
        guard case .files(let files, _) = take([last], of: clip) else { return .none(why: "no clip") }
        return .files(files, note: "its times are unknown: the newest clip of the camera was taken")
    }
}
