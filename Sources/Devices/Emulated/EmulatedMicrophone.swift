internal import Platform
package import Protocol
package import Timing

/// A sound card that hears the emulated room: 16-bit PCM in blocks of 20 ms, handed over when a block is complete.
///
/// The samples are taken by the card's own clock, which runs fast by `skewPPM`. The device stamp of a block is that
/// clock's: its sample frames since the start, in nominal nanoseconds. The sequence is the number of its first frame.
package struct EmulatedMicrophone: EmulatedSource {
    package struct Options: Sendable, Hashable {
        package var host = HostID(unchecked: "host")
        package var rate = 48_000
        package var channels = 1
        package var skewPPM = 0.0
        /// Standard deviation of the stamps.
        package var jitterMicroseconds = 20.0
        /// What full scale of a sound at one metre becomes; below 1 so that two sounds at once don't clip.
        package var gain = 0.5
        /// The room; nil: the microphone hears its own noise only.
        package var air: AirPlace?
        package var seed: UInt64 = 1

        package init() {}
    }

    private static let blocksPerSecond = 50
    private let options: Options
    private let clock: RoomClock
    private let blockFrames: Int
    private var listener: AirListener?
    private var noise: SeededNoise
    private var jitter: StampJitter

    package init(_ options: Options, clock: RoomClock = .ofThisProcess) {
        self.options = options
        self.clock = clock
        blockFrames = options.rate / Self.blocksPerSecond
        noise = SeededNoise(seed: options.seed)
        jitter = StampJitter(
            microseconds: options.jitterMicroseconds, period: 1e9 / Double(Self.blocksPerSecond), seed: ~options.seed)
    }

    /// Frames a second of room time.
    private var trueRate: Double { Double(options.rate) * (1 + options.skewPPM * 1e-6) }

    package var batch: Int64 { 1 }
    /// A ring of a second.
    package var depth: Int64 { Int64(Self.blocksPerSecond) }

    package func description(of stream: StreamID) -> StreamDescription {
        let place = options.air.map { "in the room \($0.folder)" } ?? "without a room"
        return StreamDescription(
            id: stream, kind: .audio, deviceKind: EmulatedMicrophoneKind.name,
            deviceIdentity: "emulated:\(options.host):\(stream)", label: "emulated microphone \(place)",
            nominalRate: Double(options.rate),
            audio: AudioFormat(encoding: .s16, rate: options.rate, channels: options.channels),
            capabilities: StreamCapabilities(producesFile: true, providesAudioTrack: true),
            timestampSource: "emulated card, CLOCK_MONOTONIC, first frame of a block")
    }

    package mutating func open(stream: StreamID, at now: Timestamp<RoomTime>) throws {
        // Made at the first sound otherwise, which would cost milliseconds in the middle of a take.
        _ = SincKernel.full
        guard let air = options.air else { return }
        let folder = AirFolder(air.folder)
        do throws(SystemError) { try folder.make() } catch {
            throw DeviceError(
                .accessDenied, stream: stream, cause: "the emulated room can't be entered: \(error)",
                cure: "name a folder in 'air' that this user may write to")
        }
        listener = AirListener(folder: folder, position: air.position, rate: options.rate)
    }

    package mutating func begin(at start: Timestamp<RoomTime>) -> Pace {
        let period = Double(blockFrames) / trueRate * 1e9
        return Pace(base: start, period: period, latency: .seconds(period / 1e9))
    }

    package mutating func sample(_ index: Int64, taken: Timestamp<RoomTime>) -> Sample {
        var mono = [Float](repeating: 0, count: blockFrames)
        listener?.refresh(now: clock.now)
        listener?.mix(into: &mono, from: taken, rate: trueRate)
        let frame = index * Int64(blockFrames)
        return Sample(
            payload: .audio(pcm(mono), frames: blockFrames), capture: clock.host(taken) + jitter.next(),
            uncertainty: jitter.uncertainty, arrival: clock.host(taken),
            device: Timestamp(nanoseconds: Int64(Double(frame) / Double(options.rate) * 1e9)), sequence: frame)
    }

    package func loss(_ lost: Range<Int64>, from: Timestamp<HostTime>, before next: Sample) -> DeviceEvent {
        .gap(from: from, to: next.capture, cause: "overrun of \(lost.count * blockFrames) frames")
    }

    /// All channels hear the same; each has noise of its own.
    private mutating func pcm(_ mono: [Float]) -> [UInt8] {
        let deviation = Float(options.air?.noise ?? 0.001)
        let channels = options.channels
        var values = [Int16](repeating: 0, count: mono.count * channels)
        for channel in 0..<channels {
            var signal = mono
            let gain = Float(options.gain)
            if gain != 1 { for i in signal.indices { signal[i] *= gain } }
            noise.add(to: &signal, deviation: deviation)
            for i in signal.indices {
                values[i * channels + channel] = Int16((max(-1, min(1, signal[i])) * 32_767).rounded())
            }
        }
        return values.withUnsafeBytes { Array($0) }
    }
}

/// `emulated-microphone` in the configuration.
package enum EmulatedMicrophoneKind: DeviceKind {
    package static let name = "emulated-microphone"

    /// Keys: `rate`, `channels`, `skew_ppm`, `jitter_us`, `gain`, `noise`, `position`, `seed`, and the faults.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        var options = EmulatedMicrophone.Options()
        options.host = surroundings.host
        options.rate = Int(try reader.integer("rate", default: 48_000, in: 8_000...192_000))
        options.channels = Int(try reader.integer("channels", default: 1, in: 1...8))
        options.skewPPM = try reader.number("skew_ppm", default: 0, in: -1000...1000)
        options.jitterMicroseconds = try reader.number("jitter_us", default: 20, in: 0...2000)
        options.gain = try reader.number("gain", default: 0.5, in: 0...10)
        options.air = try AirPlace.read(from: &reader, in: surroundings)
        let noise = try reader.number("noise", default: options.air?.noise ?? 0.001, in: 0...1)
        options.air?.noise = noise
        options.seed = try EmulatedSeed.read(from: &reader, stream: stream, in: surroundings)
        let faults = try EmulatedFaults(from: &reader)
        return EmulatedDevice(stream, source: EmulatedMicrophone(options), faults: faults)
    }

    package static func attached() -> [DeviceList.Attached] {
        [
            DeviceList.Attached(
                kind: name, identity: "emulated", label: "a microphone in an emulated room",
                abilities: ["s16le, 1 to 8 channels, 8000 to 192000 Hz"])
        ]
    }
}
