package import Platform
package import Timing

/// What a sound device needs of an open PCM: one function for each step of alsa-lib's, in values.
///
/// It is the lowest seam of microphones and speakers: `PCM` makes the calls; a script can answer in its place.
///
/// Concurrency: used by one thread, the device's event loop. Only `wait` waits.
package protocol PCMPort: AnyObject {
    /// Sets the hardware and software parameters; what the card doesn't have is set to the nearest that it has.
    ///
    /// The corresponding C functions are `snd_pcm_hw_params` and `snd_pcm_sw_params`.
    func negotiate(_ wish: PCMWish) throws(Errno) -> PCMShape

    /// The corresponding C function is `snd_pcm_prepare`.
    func prepare() throws(Errno)

    /// The corresponding C function is `snd_pcm_start`.
    func start() throws(Errno)

    /// The corresponding C function is `snd_pcm_drop`.
    func drop()

    /// Waits until a period can be read or written; false when the time is over.
    ///
    /// The corresponding C function is `snd_pcm_wait`.
    func wait(milliseconds: Int32) throws(Errno) -> Bool

    /// The corresponding C function is `snd_pcm_status`.
    func ask() throws(Errno) -> PCMStatus

    /// Reads sample frames; an empty answer when there are none now.
    ///
    /// The corresponding C function is `snd_pcm_readi`.
    func read(frames: Int, _ shape: PCMShape) throws(Errno) -> [UInt8]

    /// Writes whole sample frames; the answer is how many were taken.
    ///
    /// The corresponding C function is `snd_pcm_writei`.
    func write(_ bytes: ArraySlice<UInt8>, _ shape: PCMShape) throws(Errno) -> Int

    /// What a freshly opened card can do, in words.
    func abilities() -> [String]

    func close()
}

extension PCMPort {
    /// What is behind an error: after an unplug the first call may answer EIO or EBADFD, and the state says that the card
    /// is gone.
    func cause(of error: Errno) -> Errno {
        guard error == .inputOutput || error == Errno.badState else { return error }
        do throws(Errno) {
            return try ask().state == .disconnected ? .noDevice : error
        } catch {
            return error
        }
    }
}

extension Errno {
    /// EBADFD: the PCM isn't in a state for the call.
    static let badState = Errno(rawValue: 77)
    /// ESTRPIPE: the machine slept.
    static let suspended = Errno(rawValue: 86)

    /// Whether an answer means that the card was unplugged.
    var isUnplugged: Bool {
        // ENXIO, ENODEV, EBADFD, ESHUTDOWN
        [6, 19, 77, 108].contains(rawValue)
    }
}

/// Which way a PCM goes.
package enum PCMDirection: Sendable, Hashable { case capture, playback }

/// The sound system of a machine: alsa-lib's, or a scripted one.
package struct SoundSystem: Sendable {
    /// Opens a PCM by the name that alsa-lib knows.
    package var open: @Sendable (String, PCMDirection) throws(Errno) -> any PCMPort
    /// The cards that are attached now; may block for some milliseconds.
    package var cards: @Sendable (PCMDirection) -> [SoundCard]
    /// CLOCK_MONOTONIC.
    package var now: @Sendable () -> Timestamp<HostTime>

    package init(
        open: @escaping @Sendable (String, PCMDirection) throws(Errno) -> any PCMPort,
        cards: @escaping @Sendable (PCMDirection) -> [SoundCard], now: @escaping @Sendable () -> Timestamp<HostTime>
    ) {
        self.open = open
        self.cards = cards
        self.now = now
    }

    /// The machine's own.
    package static let alsa = SoundSystem(
        open: { (name, direction) throws(Errno) in try PCM(name: name, direction) }, cards: { SoundCards.all($0) },
        now: { HostClock.now })

    /// The sentence for what a call answered.
    func fault(
        _ error: Errno, _ operation: ALSAFault.Operation, _ name: PCMName, _ direction: PCMDirection
    ) -> ALSAFault {
        ALSAFault(
            error, during: operation, name: name.description,
            cards: { cards(direction).map { "'\($0.id)' (device \($0.device))" } },
            holder: {
                guard case .found(let card) = name.find(in: cards(direction)) else { return "another program" }
                return DeviceHolder.words(for: card.node(direction))
            })
    }
}
