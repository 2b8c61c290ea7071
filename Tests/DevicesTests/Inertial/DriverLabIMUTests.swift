internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

/// Our IIO sensor against the kernel's HID and IIO drivers, inside the guest of `Tests/Lab/run drivers imu` and nowhere
/// else; the environment names the emulator's file of what was really taken.
@Suite(
    .enabled(if: ProcessInfo.processInfo.environment["DOWNBEAT_IMU_LAB"] != nil), .serialized, .timeLimit(.minutes(3)))
struct DriverLabIMUTests {
    private let id = StreamID(unchecked: "imu")

    private func figure(_ name: String, _ value: Any) { print("figure \(name) \(value)") }

    /// Instants at which the emulator took its samples, by host time; the motion's clock is the time since the first.
    private func truth() throws -> [Int64] {
        let path = ProcessInfo.processInfo.environment["DOWNBEAT_IMU_LAB"] ?? ""
        let lines = String(decoding: try Files.read(path), as: UTF8.self).split(separator: "\n")
        return lines.compactMap { line in
            let words = line.split(separator: " ")
            return words.count == 3 && words[2] == "1" ? Int64(words[1]) : nil
        }
    }

    private func collect(_ device: String, seconds: Double) async throws -> (
        StreamDescription, EmulatedCollector.Content
    ) {
        var options = IIOIMU.Options(device: device)
        options.rate = 100
        let sensor = IIOIMU(id, options)
        let description = try await sensor.open()
        let sink = EmulatedCollector()
        try await sensor.start(sink)
        let content = await sink.wait { content in
            guard let first = content.samples.first, let last = content.samples.last else { return false }
            return last.arrival - first.arrival >= .seconds(seconds)
        }
        await sensor.close()
        return (description, content)
    }

    @Test func `Both sensors are listed by the serial number, with what they measure`() {
        let found = IIOIMUKind.attached()
        #expect(found.map(\.identity).sorted() == ["serial:lab-wrist/accel_3d", "serial:lab-wrist/gyro_3d"])
        #expect(found.contains { $0.abilities.first == "accel_x in m/s^2, accel_y in m/s^2, accel_z in m/s^2" })
        #expect(found.contains { $0.abilities.first == "gyro_x in rad/s, gyro_y in rad/s, gyro_z in rad/s" })
        for device in found { figure("imu_found", "\(device.identity) | \(device.label)") }
    }

    @Test(arguments: ["accel", "gyro"]) func `Rate, units and stamps are right`(_ kind: String) async throws {
        let (description, content) = try await collect("lab-wrist/\(kind)_3d", seconds: 8)
        #expect(description.deviceIdentity == "serial:lab-wrist/\(kind)_3d")
        #expect(description.timestampSource == "driver at its trigger, CLOCK_MONOTONIC")
        #expect(
            description.sensor?.channels.map(\.unit)
                == [String](repeating: kind == "accel" ? "m/s^2" : "rad/s", count: 3))
        let samples = content.samples
        let (first, last) = (try #require(samples.first), try #require(samples.last))
        let rate = Double(samples.count - 1) / (last.capture - first.capture).seconds
        #expect(zip(samples, samples.dropFirst()).allSatisfy { $0.capture < $1.capture })
        #expect(samples.allSatisfy { $0.device?.nanoseconds == $0.capture.nanoseconds })
        // The motion is a function of time; the sample that a row is, is the one whose values it has.
        let truth = try truth()
        let start = try #require(truth.first)
        let motion = EmulatedMotion(seed: 1)
        let axes = kind == "accel" ? 0..<3 : 3..<6
        var (errors, worst, missing, next) = ([Double](), 0.0, 0, 0)
        for sample in samples {
            guard case .values(let row) = sample.payload else { continue }
            let near = truth[next...].prefix { $0 <= sample.capture.nanoseconds + 100_000_000 }
            let best = near.indices.min {
                distance(truth[$0] - start, motion, axes, row) < distance(truth[$1] - start, motion, axes, row)
            }
            guard let best else { continue }
            if next > 0 { missing += best - next }
            next = best + 1
            worst = max(worst, distance(truth[best] - start, motion, axes, row))
            errors.append(abs(Double(sample.capture.nanoseconds - truth[best]) / 1e6))
        }
        errors.sort()
        let p95 = errors.isEmpty ? -1 : errors[errors.count * 95 / 100]
        if kind == "accel" {
            figure("imu_rate_error_percent", abs(rate - 100))
            figure("imu_stamp_error_p95_ms", p95)
            figure("imu_value_error_max", worst)
            figure("imu_missing_samples", missing)
        }
        figure(
            "imu_\(kind)",
            "\(samples.count) rows at \(rate)/s, stamp error p95 \(p95) ms, values off by \(worst), \(missing) missing")
        figure("imu_\(kind)_events", content.events)
        #expect(abs(rate - 100) < 1)
        // Half a count: 0.005 m/s², 0.0001 rad/s.
        #expect(worst < 0.02)
    }

    private func distance(_ age: Int64, _ motion: EmulatedMotion, _ axes: Range<Int>, _ row: [Double]) -> Double {
        let values = motion.values(at: Timestamp(nanoseconds: age))[axes]
        return zip(values, row).reduce(0) { max($0, abs($1.0 - $1.1)) }
    }

    @Test func `A sensor that another program holds is named with that program`() async throws {
        let folder = try #require(IIOFolder.all().first { $0.name == "accel_3d" })
        // `Process` would keep the node open in this process too.
        #expect(system("sleep 60 <'\(folder.node)' & echo $! >/tmp/imu-holder") == 0)
        let text = String(decoding: try Files.read("/tmp/imu-holder"), as: UTF8.self)
        let holder = try #require(Int32(text.filter(\.isNumber)))
        defer { kill(holder, SIGKILL) }
        let sensor = IIOIMU(id, IIOIMU.Options(device: "lab-wrist/accel_3d"))
        let error = await #expect(throws: DeviceError.self) { _ = try await sensor.open() }
        #expect(error?.code == .busy)
        #expect(
            error?.cause.contains("process \(holder) (sleep)") == true, "\(String(describing: error))"
        )
        figure("imu_busy", String(describing: error))
    }
}
