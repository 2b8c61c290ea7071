internal import Glibc
package import Protocol
package import Timing

/// An inertial sensor on a hand that moves in sums of sines: acceleration and angular rate on three axes.
///
/// Rows come in bursts of 10 ms, as from a FIFO with a watermark. Each has the device's own stamp: a counter of
/// microseconds with an offset and a skew, which goes on over stops and starts.
package struct EmulatedIMU: EmulatedSource {
    package struct Options: Sendable, Hashable {
        package var host = HostID(unchecked: "host")
        /// Rows a second by the device's own clock.
        package var rate = 200.0
        /// How much faster than the host the device's clock runs.
        package var skewPPM = 0.0
        /// What the device's counter shows when the device is opened, seconds.
        package var counterStart = 0.0
        /// Standard deviation of the host stamps.
        package var jitterMicroseconds = 200.0
        package var seed: UInt64 = 1

        package init() {}
    }

    package static let channels = ["accel_x", "accel_y", "accel_z", "gyro_x", "gyro_y", "gyro_z"]

    private let options: Options
    private let clock: RoomClock
    private let motion: EmulatedMotion
    private let period: Double
    private var jitter: StampJitter
    private var zero: Timestamp<RoomTime>?

    package init(_ options: Options, clock: RoomClock = .ofThisProcess) {
        self.options = options
        self.clock = clock
        motion = EmulatedMotion(seed: options.seed)
        period = 1e9 / (options.rate * (1 + options.skewPPM * 1e-6))
        jitter = StampJitter(microseconds: options.jitterMicroseconds, period: period, seed: ~options.seed)
    }

    package var batch: Int64 { max(1, Int64(options.rate / 100)) }
    /// A FIFO of a second.
    package var depth: Int64 { Int64(options.rate) }

    package func description(of stream: StreamID) -> StreamDescription {
        let units = ["m/s^2", "m/s^2", "m/s^2", "rad/s", "rad/s", "rad/s"]
        return StreamDescription(
            id: stream, kind: .sensor, deviceKind: EmulatedIMUKind.name,
            deviceIdentity: "emulated:\(options.host):\(stream)", label: "emulated IMU at \(options.rate) rows/s",
            nominalRate: options.rate,
            sensor: SensorFormat(channels: zip(Self.channels, units).map { .init(name: $0, unit: $1) }),
            capabilities: StreamCapabilities(producesFile: false),
            timestampSource: "emulated interrupt, CLOCK_MONOTONIC; device counter in microseconds")
    }

    package mutating func open(stream: StreamID, at now: Timestamp<RoomTime>) throws {
        if zero == nil { zero = now }
    }

    package mutating func begin(at start: Timestamp<RoomTime>) -> Pace {
        Pace(base: start + .seconds(period / 1e9), period: period, latency: .zero)
    }

    package mutating func sample(_ index: Int64, taken: Timestamp<RoomTime>) -> Sample {
        let age = (taken - (zero ?? taken)).seconds * (1 + options.skewPPM * 1e-6)
        let counter = Interval.seconds(options.counterStart + age).nanoseconds / 1000 * 1000
        return Sample(
            payload: .values(motion.values(at: taken)), capture: clock.host(taken) + jitter.next(),
            uncertainty: jitter.uncertainty, arrival: clock.host(taken), device: Timestamp(nanoseconds: counter),
            sequence: index)
    }

    package func loss(_ lost: Range<Int64>, from: Timestamp<HostTime>, before next: Sample) -> DeviceEvent {
        .lost(count: Int64(lost.count), before: next.capture)
    }
}

/// How the hand moves: on each axis three sines of hand-like frequencies, as a function of room time.
package struct EmulatedMotion: Sendable {
    private struct Sine: Sendable {
        let amplitude: Double
        let frequency: Double
        let phase: Double
    }

    /// Standard gravity, which the z axis feels at rest, m/s².
    package static let gravity = 9.80665
    private let axes: [[Sine]]

    package init(seed: UInt64) {
        var noise = SeededNoise(seed: seed)
        axes = (0..<6).map { axis in
            (0..<3).map { order in
                Sine(
                    amplitude: (axis < 3 ? 2.0 : 0.8) / Double(order + 1),
                    frequency: 0.4 + 0.9 * Double(order) + 0.5 * noise.uniform(),
                    phase: 2 * Double.pi * noise.uniform())
            }
        }
    }

    /// Three accelerations in m/s², three angular rates in rad/s.
    package func values(at instant: Timestamp<RoomTime>) -> [Double] {
        let t = Double(instant.nanoseconds) / 1e9
        return axes.enumerated().map { axis, sines in
            sines.reduce(axis == 2 ? Self.gravity : 0) {
                $0 + $1.amplitude * sin(2 * Double.pi * $1.frequency * t + $1.phase)
            }
        }
    }
}

/// `emulated-imu` in the configuration.
package enum EmulatedIMUKind: DeviceKind {
    package static let name = "emulated-imu"

    /// Keys: `rate`, `skew_ppm`, `counter_start_s`, `jitter_us`, `seed`, and the faults.
    package static func device(
        _ stream: StreamID, from reader: inout ConfigReader, in surroundings: Surroundings
    ) throws(ConfigReader.Invalid) -> any CaptureDevice {
        var options = EmulatedIMU.Options()
        options.host = surroundings.host
        options.rate = try reader.number("rate", default: 200, in: 100...1000)
        options.skewPPM = try reader.number("skew_ppm", default: 0, in: -1000...1000)
        options.counterStart = try reader.number("counter_start_s", default: 0, in: 0...1_000_000)
        options.jitterMicroseconds = try reader.number("jitter_us", default: 200, in: 0...5000)
        options.seed = try EmulatedSeed.read(from: &reader, stream: stream, in: surroundings)
        let faults = try EmulatedFaults(from: &reader)
        return EmulatedDevice(stream, source: EmulatedIMU(options), faults: faults)
    }

    package static func attached() -> [DeviceList.Attached] {
        [
            DeviceList.Attached(
                kind: name, identity: "emulated", label: "an inertial sensor on a moving hand",
                abilities: ["accel_x…z in m/s^2, gyro_x…z in rad/s; 100 to 1000 rows/s"])
        ]
    }
}
