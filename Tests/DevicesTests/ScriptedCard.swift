internal import Devices
internal import Glibc
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// A machine with one sound card that captures in a time of its own, by a script, in place of the kernel.
///
/// Sample frame `i` of a run is captured at `start + i / (rate × (1 + ppm))`, and the first one of a block holds its number
/// since the begin, so what a test reads tells when it was captured. Time goes on only where a program would wait.
final class ScriptedCard: Sendable {
    enum Stamps: Sendable {
        /// Of the position's reading, up to so much late.
        case good(late: Interval)
        case zero
        /// Of the start, for ever.
        case frozen
        /// Since 1970, from so many seconds after the begin on.
        case realtime(after: Double)
        /// Good, with the card's own clock beside it.
        case link
    }

    struct Script: Sendable {
        var ppm = 0.0
        var stamps = Stamps.good(late: .microseconds(200))
        /// Seconds after the begin, and for how long the program isn't run.
        var stalls: [(at: Double, length: Double)] = []
        /// Seconds after the begin.
        var unplug: Double?
        var replug: Double?
        /// What is attached after the replug.
        var replugged: [SoundCard] = []
        /// What `readi` answers once, at so many seconds.
        var failure: (at: Double, errno: Int32)?
        /// What opening answers.
        var openError: Int32?
        var isBatch = false
        /// The script ends: nothing is captured any more.
        var end = 10.0
    }

    static let begin = Timestamp<HostTime>(nanoseconds: 100_000_000_000)
    static let rate = 48_000
    static let buffer = 96_000

    struct State {
        var now = ScriptedCard.begin
        var cards: [SoundCard]
        var opened: [String] = []
        var stallsDone = 0
        var hasFailed = false
        var isReplugged = false
        var frames: Int64 = 0
        var random: UInt64 = 1
    }

    let script: Script
    let state: Mutex<State>

    init(
        _ script: Script = Script(),
        cards: [SoundCard] = [SoundCard(number: 1, id: "Mic", device: 0, label: "Scripted", port: "1-3:1.0")]
    ) {
        self.script = script
        state = Mutex(State(cards: cards))
    }

    var system: SoundSystem {
        SoundSystem(
            open: { (name, _) throws(Errno) in try self.open(name) },
            cards: { _ in self.look() }, now: { self.state.withLock { $0.now } })
    }

    private func open(_ name: String) throws(Errno) -> any PCMPort {
        if let error = script.openError { throw Errno(rawValue: error) }
        let isThere = state.withLock { state in
            state.opened.append(name)
            return state.cards.contains { name == "hw:CARD=\($0.id),DEV=\($0.device)" }
        }
        guard isThere else { throw Errno(rawValue: ENOENT) }
        return ScriptedPCM(self)
    }

    /// The cards now; a program that looks for one that is gone waits in between.
    private func look() -> [SoundCard] {
        state.withLock { state in
            guard let unplug = script.unplug, state.now >= Self.begin + .seconds(unplug) else { return state.cards }
            if !state.isReplugged {
                state.now += .milliseconds(500)
                guard let replug = script.replug, state.now >= Self.begin + .seconds(replug) else { return [] }
                state.isReplugged = true
                state.cards = script.replugged
            }
            return state.cards
        }
    }

    /// A block of silence but for its first frame, whose values are its number; a test of ten minutes has 29 million.
    static func bytes(from first: Int64, frames: Int, channels: Int) -> [UInt8] {
        let value = UInt16(truncatingIfNeeded: first)
        var bytes = [UInt8](repeating: 0, count: frames * channels * 2)
        for channel in 0..<channels where frames > 0 {
            bytes[2 * channel] = UInt8(truncatingIfNeeded: value)
            bytes[2 * channel + 1] = UInt8(truncatingIfNeeded: value >> 8)
        }
        return bytes
    }
}

private final class ScriptedPCM: PCMPort {
    private let card: ScriptedCard
    private let script: ScriptedCard.Script
    private var shape: PCMShape?
    private var started: Timestamp<HostTime>?
    private var read = 0
    private var isOverrun = false

    init(_ card: ScriptedCard) {
        self.card = card
        script = card.script
    }

    private var now: Timestamp<HostTime> { card.state.withLock { $0.now } }
    private var trueRate: Double { Double(ScriptedCard.rate) * (1 + script.ppm * 1e-6) }
    private var isGone: Bool {
        guard let unplug = script.unplug else { return false }
        return card.state.withLock { $0.now >= ScriptedCard.begin + .seconds(unplug) && !$0.isReplugged }
    }

    func negotiate(_ wish: PCMWish) throws(Errno) -> PCMShape {
        let shape = PCMShape(
            format: AudioFormat(encoding: .s16, rate: ScriptedCard.rate, channels: wish.channels), isPadded: false,
            periodFrames: 960, bufferFrames: ScriptedCard.buffer, isBatch: script.isBatch, isMonotonic: true)
        self.shape = shape
        return shape
    }

    func prepare() throws(Errno) {
        if isGone { throw .noDevice }
        (read, isOverrun, started) = (0, false, nil)
    }
    func start() throws(Errno) { started = now }
    func drop() { started = nil }
    func close() { started = nil }
    func abilities() -> [String] { ["s16le; 1 to 8 channels; 48000 Hz"] }

    private func captured(at instant: Timestamp<HostTime>) -> Int {
        guard let start = started else { return 0 }
        let end = min(instant, ScriptedCard.begin + .seconds(script.end))
        return max(0, Int((end - start).seconds * trueRate))
    }

    func wait(milliseconds: Int32) throws(Errno) -> Bool {
        if isGone { throw .noDevice }
        guard let start = started else { throw Errno(rawValue: 77) }
        let ready = start + .seconds(Double(read + 960) / trueRate) + .microseconds(30)
        if ready > ScriptedCard.begin + .seconds(script.end) {
            usleep(1000)
            return false
        }
        card.state.withLock { state in
            state.now = max(state.now, ready)
            guard state.stallsDone < script.stalls.count else { return }
            let stall = script.stalls[state.stallsDone]
            if state.now >= ScriptedCard.begin + .seconds(stall.at) {
                state.now += .seconds(stall.length)
                state.stallsDone += 1
            }
        }
        if isGone { throw .noDevice }
        return true
    }

    func ask() throws(Errno) -> PCMStatus {
        if isGone { throw .noDevice }
        let (now, random) = card.state.withLock { state in
            state.random = state.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state.now, Double(state.random >> 11) / 0x1p53)
        }
        let available = captured(at: now) - read
        if available > ScriptedCard.buffer { isOverrun = true }
        var stamp = now
        var link: Interval?
        switch script.stamps {
        case .good(let late): stamp = now + .seconds(late.seconds * random)
        case .zero: stamp = Timestamp(nanoseconds: 0)
        case .frozen: stamp = started ?? now
        case .realtime(let after):
            if now >= ScriptedCard.begin + .seconds(after) { stamp = now + .seconds(1_700_000_000) }
        case .link:
            // The position in memory lags by up to 8 ms; the link's clock doesn't.
            link = .seconds(Double(captured(at: now)) / Double(ScriptedCard.rate))
        }
        let lag: Int
        if case .link = script.stamps { lag = Int(384 * random) } else { lag = 0 }
        let shown = max(0, available - lag)
        return PCMStatus(
            state: isOverrun ? .overrun : .running, stamp: stamp, now: max(now, ScriptedCard.begin), available: shown,
            delay: shown, link: link)
    }

    func read(frames: Int, _ shape: PCMShape) throws(Errno) -> [UInt8] {
        if isGone { throw Errno(rawValue: 5) }
        if isOverrun { throw .brokenPipe }
        if let failure = script.failure, now >= ScriptedCard.begin + .seconds(failure.at) {
            let isFirst = card.state.withLock { state in
                defer { state.hasFailed = true }
                return !state.hasFailed
            }
            if isFirst { throw Errno(rawValue: failure.errno) }
        }
        guard captured(at: now) - read >= frames else { return [] }
        // Frames are numbered by when they are captured.
        let first = Int64(((started ?? now) - ScriptedCard.begin).seconds * trueRate) + Int64(read)
        read += frames
        return ScriptedCard.bytes(from: first, frames: frames, channels: shape.format.channels)
    }

    func write(_ bytes: ArraySlice<UInt8>, _ shape: PCMShape) throws(Errno) -> Int { 0 }
}
