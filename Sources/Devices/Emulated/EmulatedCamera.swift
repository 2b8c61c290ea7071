internal import Platform
package import Protocol
package import Timing

/// A camera that sees a moving pattern with a code of each frame's number and time.
///
/// It runs freely, as a USB camera does: its frames begin at room times of `phase` plus whole periods, whenever it was
/// started. Stamps are of the start of the frame, with jitter; a frame can be had when it has been read out.
package struct EmulatedCamera: EmulatedSource {
    /// What the picture's bytes are.
    package enum Format: String, CaseIterable, Sendable {
        case yuyv, nv12, yuv420p

        var encoding: VideoFormat.Encoding {
            switch self {
            case .yuyv: .yuyv
            case .nv12: .nv12
            case .yuv420p: .yuv420p
            }
        }
    }

    package struct Options: Sendable, Hashable {
        package var host = HostID(unchecked: "host")
        package var format = Format.yuyv
        /// Pixels, even.
        package var width = 640
        /// Pixels, even.
        package var height = 480
        /// Frames a second.
        package var rate = 30.0
        package var skewPPM = 0.0
        /// From whole periods of room time to the starts of frames, ms; nil: by the seed.
        package var phaseMilliseconds: Double?
        /// Standard deviation of the stamps.
        package var jitterMicroseconds = 50.0
        /// From the start of a frame until it can be had.
        package var latencyMilliseconds = 10.0
        package var seed: UInt64 = 1

        package init() {}
    }

    private let options: Options
    private let clock: RoomClock
    private let period: Double
    private let phase: Double
    private var jitter: StampJitter
    private var picture: PatternPicture?

    package init(_ options: Options, clock: RoomClock = .ofThisProcess) {
        self.options = options
        self.clock = clock
        period = 1e9 / (options.rate * (1 + options.skewPPM * 1e-6))
        var noise = SeededNoise(seed: options.seed)
        phase = options.phaseMilliseconds.map { $0 * 1e6 } ?? noise.uniform() * period
        jitter = StampJitter(microseconds: options.jitterMicroseconds, period: period, seed: ~options.seed)
    }

    package var batch: Int64 { 1 }
    /// Buffers for a second: a busy machine that only emulates shouldn't look like a lossy camera.
    package var depth: Int64 { max(8, Int64(options.rate)) }

    package func description(of stream: StreamID) -> StreamDescription {
        let (width, height) = (options.width, options.height)
        let bytesPerLine = options.format == .yuyv ? width * 2 : width
        return StreamDescription(
            id: stream, kind: .video, deviceKind: EmulatedCameraKind.name,
            deviceIdentity: "emulated:\(options.host):\(stream)",
            label: "pattern camera, \(options.format.rawValue) \(width)x\(height) at \(options.rate) frames/s",
            nominalRate: options.rate,
            video: VideoFormat(
                encoding: options.format.encoding, width: width, height: height, bytesPerLine: bytesPerLine),
            capabilities: StreamCapabilities(producesFile: true),
            timestampSource: "emulated driver, CLOCK_MONOTONIC, start of frame")
    }

    package mutating func open(stream: StreamID, at now: Timestamp<RoomTime>) throws {
        if picture == nil {
            picture = PatternPicture(
                encoding: options.format.encoding, width: options.width, height: options.height, rate: options.rate)
        }
    }

    package mutating func begin(at start: Timestamp<RoomTime>) -> Pace {
        // Double keeps whole nanoseconds for 104 days of uptime.
        let index = ((Double(start.nanoseconds) - phase) / period).rounded(.up)
        let base = Timestamp<RoomTime>(nanoseconds: 0) + .seconds((phase + index * period) / 1e9)
        return Pace(base: max(base, start), period: period, latency: .seconds(options.latencyMilliseconds / 1000))
    }

    package mutating func sample(_ index: Int64, taken: Timestamp<RoomTime>) -> Sample {
        let instant = clock.host(taken)
        let frame = picture?.draw(PatternCode(number: index, instant: instant.nanoseconds)) ?? []
        return Sample(
            payload: .frame(FrameBytes(frame), isKey: true), capture: instant + jitter.next(),
            uncertainty: jitter.uncertainty,
            arrival: instant, sequence: index)
    }

    package func loss(_ lost: Range<Int64>, from: Timestamp<HostTime>, before next: Sample) -> DeviceEvent {
        .lost(count: Int64(lost.count), before: next.capture)
    }
}

/// `emulated-camera` in the configuration.
package enum EmulatedCameraKind: DeviceKind {
    package static let name = "emulated-camera"

    /// Keys: `format`, `width`, `height`, `rate`, `skew_ppm`, `phase_ms`, `jitter_us`, `latency_ms`, `seed`, the faults.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        var options = EmulatedCamera.Options()
        options.host = surroundings.host
        options.format = try reader.word("format", default: .yuyv)
        options.width = try even("width", default: 640, in: 160...3840, from: &reader)
        options.height = try even("height", default: 480, in: 120...2160, from: &reader)
        options.rate = try reader.number("rate", default: 30, in: 1...240)
        options.skewPPM = try reader.number("skew_ppm", default: 0, in: -1000...1000)
        // A phase beyond a period would be legal and mean nothing; NaN stands for "absent".
        let phase = try reader.number("phase_ms", default: .nan, in: 0...1000 / options.rate)
        options.phaseMilliseconds = phase.isNaN ? nil : phase
        options.jitterMicroseconds = try reader.number("jitter_us", default: 50, in: 0...5000)
        options.latencyMilliseconds = try reader.number("latency_ms", default: 10, in: 0...1000)
        options.seed = try EmulatedSeed.read(from: &reader, stream: stream, in: surroundings)
        let faults = try EmulatedFaults(from: &reader)
        return EmulatedDevice(stream, source: EmulatedCamera(options), faults: faults)
    }

    private static func even(
        _ key: String, default fallback: Int64, in range: ClosedRange<Int64>, from reader: inout ConfigReader
    ) throws(ConfigReader.Invalid) -> Int {
        let value = try reader.integer(key, default: fallback, in: range)
        guard value % 2 == 0 else {
            throw reader.invalid(
                key, .integer(value), legal: "an even number from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(value)
    }

    package static func attached() -> [DeviceList.Attached] {
        [
            DeviceList.Attached(
                kind: name, identity: "emulated", label: "a camera that sees a pattern",
                abilities: ["yuyv, nv12, yuv420p; 160x120 to 3840x2160; 1 to 240 frames/s"])
        ]
    }
}
