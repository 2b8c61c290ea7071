internal import Platform
package import Protocol
package import Timing

/// A loudspeaker in the emulated room.
///
/// Its sounds leave at the asked instant to the nanosecond, plus the constant latency that it may be given; what it
/// reports is when they really leave, and so the source is `hardware`.
package actor EmulatedSpeaker: ChirpSpeaker {
    package static let name = "emulated-speaker"
    private static let log = Log("air")
    /// For errors: a speaker isn't a stream.
    private static let id = StreamID(unchecked: "speaker")

    package nonisolated let label: String
    private let host: HostID
    private let folder: AirFolder
    private let position: [Double]
    private let rate: Int
    private let latency: Interval
    private let clock: RoomClock
    private let loop = EventLoop(name: "emu-speaker")

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(
        host: HostID, place: AirPlace, rate: Int = 48_000, latency: Interval = .zero,
        clock: RoomClock = .ofThisProcess
    ) {
        self.host = host
        folder = AirFolder(place.folder)
        position = place.position
        self.rate = rate
        self.latency = latency
        self.clock = clock
        label = "emulated speaker of \(host) in the room \(place.folder)"
    }

    /// Keys: `rate`, `latency_ms`, `position`.
    package init(from reader: inout ConfigReader, in surroundings: Surroundings) throws(ConfigReader.Invalid) {
        let rate = try reader.integer("rate", default: 48_000, in: 8_000...192_000)
        let latency = try reader.number("latency_ms", default: 0, in: 0...1000)
        guard let place = try AirPlace.read(from: &reader, in: surroundings) else {
            throw ConfigReader.Invalid(
                description:
                    "\(reader.file): '\(reader.name("kind"))' is '\(Self.name)', which plays into an emulated room, and "
                    + "this host stands in none; give the host an 'air' with a folder and a position")
        }
        self.init(host: surroundings.host, place: place, rate: Int(rate), latency: .seconds(latency / 1000))
    }

    /// Enters the room and clears it of old sounds.
    package func open() throws -> Int {
        do throws(SystemError) { try folder.make() } catch {
            throw DeviceError(
                .accessDenied, stream: Self.id, cause: "the emulated room can't be entered: \(error)",
                cure: "name a folder in 'air' that this user may write to")
        }
        folder.sweep(now: clock.now)
        return rate
    }

    /// Plays; returns when the last sample has left.
    ///
    /// An instant that is past, or too near for the sound to be written in time, is played as soon as possible: the log
    /// and the returned emission say so. A task that is cancelled before the first sample has left takes the sound back
    /// and throws `CancellationError`.
    package func play(_ samples: [Float], at instant: Timestamp<HostTime>) async throws -> Emission {
        guard samples.count <= AirSound.mostSamples, samples.allSatisfy({ $0.isFinite }) else {
            throw DeviceError(
                .unsupported, stream: Self.id,
                cause: "a sound of \(samples.count) samples, or with values that are no numbers, can't be played",
                cure: "play at most \(AirSound.mostSamples) finite samples at a time")
        }
        folder.sweep(now: clock.now)
        let (sound, draft) = try put(samples, at: clock.room(instant) + latency)
        let late = clock.host(sound.start) - instant - latency
        if late > .zero {
            Self.log.warning(
                "the sound due at \(instant) leaves \(late.milliseconds) ms late: it was asked for too late")
        }
        do { try await loop.sleep(until: clock.host(sound.start)) } catch {
            folder.discard(draft)
            throw error
        }
        // From here on the sound is in the air, whatever becomes of the task.
        try? await loop.sleep(until: clock.host(sound.end))
        return Emission(instant: clock.host(sound.start), uncertainty: .microseconds(1), source: .hardware)
    }

    package func close() { folder.sweep(now: clock.now) }

    /// Puts the sound into the room before it begins, so that no microphone can have passed that instant.
    private func put(_ samples: [Float], at wanted: Timestamp<RoomTime>) throws -> (AirSound, AirFolder.Draft) {
        var margin = Interval.milliseconds(10)
        do throws(SystemError) {
            for _ in 0..<6 {
                let start = max(wanted, clock.now + margin)
                let sound = AirSound(start: start, rate: rate, position: position, host: host, samples: samples)
                let draft = try folder.write(sound)
                if clock.now + .milliseconds(2) < start {
                    try folder.publish(draft)
                    return (sound, draft)
                }
                folder.discard(draft)
                margin = margin * 3
            }
        } catch {
            throw DeviceError(
                .inputOutput, stream: Self.id, cause: "the emulated room takes no sound: \(error)",
                cure: "see that the folder of 'air' exists and has space")
        }
        throw DeviceError(
            .timedOut, stream: Self.id, cause: "writing a sound into \(folder.path) takes longer than a second",
            cure: "put the folder of 'air' on a local disk or in memory")
    }
}
