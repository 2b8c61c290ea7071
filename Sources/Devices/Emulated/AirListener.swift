internal import Glibc
internal import Platform
package import Timing

/// The ears of one emulated microphone: it keeps the sounds that can be heard now, and mixes them as they arrive.
///
/// Concurrency: a value that one thread owns.
package struct AirListener: Sendable {
    package static let speedOfSound = 343.0
    /// Of all sounds that are held at a time; 64 MiB of samples.
    private static let mostSamples = 16 << 20
    private static let log = Log("air")

    /// One sound on its way, for this listener.
    private struct Heard: Sendable {
        /// With zeros at both ends for the kernel.
        let padded: [Float]
        let count: Int
        let rate: Double
        let arrival: Timestamp<RoomTime>
        let end: Timestamp<RoomTime>
        let gain: Float
        let kernel: SincKernel
    }

    private let folder: AirFolder
    private let position: [Double]
    private let rate: Int
    private var sounds: [String: Heard] = [:]
    /// Names that need no second look: held, over, corrupt.
    private var judged: Set<String> = []
    private var folderChange: Int64?
    private var scanUntil = Timestamp<RoomTime>(nanoseconds: .min)
    private var nextScan = Timestamp<RoomTime>(nanoseconds: .min)
    private var folderIsBroken = false

    package init(folder: AirFolder, position: [Double], rate: Int) {
        self.folder = folder
        self.position = position
        self.rate = rate
    }

    /// Looks for new sounds, and lets go of those that have passed.
    ///
    /// The folder is read when its time stamp changed and for a second after (the stamp's grain is some milliseconds),
    /// and once a second in any case.
    package mutating func refresh(now: Timestamp<RoomTime>) {
        let change = Files.modificationTime(folder.path)
        if change != folderChange {
            folderChange = change
            scanUntil = now + .milliseconds(1000)
        }
        guard now <= scanUntil || now >= nextScan else { return }
        nextScan = now + .milliseconds(1000)
        sounds = sounds.filter { now < $0.value.end }
        let names: [String]
        do throws(SystemError) { names = try folder.names() } catch {
            if !folderIsBroken { Self.log.error("the emulated room can't be heard: \(error)") }
            folderIsBroken = true
            return
        }
        folderIsBroken = false
        judged.formIntersection(names)
        for name in names where !judged.contains(name) {
            judged.insert(name)
            if let sound = read(name, now: now) { sounds[name] = sound }
        }
    }

    /// Adds what arrives in a stretch of time to the samples.
    ///
    /// - Parameters:
    ///   - block: one value for each sample; is added to.
    ///   - start: when the block's first sample is taken.
    ///   - rate: the microphone's true samples a second of room time.
    package func mix(into block: inout [Float], from start: Timestamp<RoomTime>, rate: Double) {
        for sound in sounds.values {
            let step = sound.rate / rate
            let position = (start - sound.arrival).seconds * sound.rate
            // The kernel rings for half its length on both sides of the sound.
            let reach = Double(sound.kernel.taps / 2)
            let first = ((-reach - position) / step).rounded(.up)
            let last = ((Double(sound.count) + reach - position) / step).rounded(.down)
            guard first < Double(block.count), last >= 0 else { continue }
            let range = Int(max(first, 0))..<Int(min(last + 1, Double(block.count)))
            guard !range.isEmpty else { continue }
            sound.kernel.add(
                sound.padded, from: position + Double(range.lowerBound) * step, step: step, gain: sound.gain,
                to: &block, range)
        }
    }

    private func read(_ name: String, now: Timestamp<RoomTime>) -> Heard? {
        let path = "\(folder.path)/\(name)"
        guard let entry = AirFolder.Entry(name: name) else {
            Self.log.warning("\(path) is skipped: its name isn't one that an emulated speaker gives")
            return nil
        }
        guard entry.isOfThisBoot, now - entry.end < AirFolder.keep else { return nil }
        do {
            let sound = try AirSound(parsing: try Files.read(path, limit: AirSound.mostBytes))
            guard sound.bootID == RoomClock.bootID else { return nil }
            let held = sounds.values.reduce(0) { $0 + $1.count }
            guard held + sound.samples.count <= Self.mostSamples else {
                Self.log.warning("\(path) is skipped: more sounds are in the air than one microphone can hold")
                return nil
            }
            return heard(sound)
        } catch {
            // Someone swept it between the listing and now; that is no fault.
            if !Files.exists(path) { return nil }
            Self.log.warning("\(path) is skipped: \(error)")
            return nil
        }
    }

    private func heard(_ sound: AirSound) -> Heard {
        let distance = zip(sound.position, position).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }.squareRoot()
        let delay = Interval.seconds(distance / Self.speedOfSound)
        let kernel = sound.rate <= rate ? SincKernel.full : SincKernel(cutoff: 0.98 * Double(rate) / Double(sound.rate))
        let zeros = [Float](repeating: 0, count: kernel.taps)
        return Heard(
            padded: zeros + sound.samples + zeros, count: sound.samples.count, rate: Double(sound.rate),
            arrival: sound.start + delay, end: sound.end + delay + .milliseconds(1000),
            gain: Float(1 / max(distance, 1)), kernel: kernel)
    }
}
