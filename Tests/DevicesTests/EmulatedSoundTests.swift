internal import Acoustics
internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// Sound from an emulated speaker to an emulated microphone, in real time.
@Suite(.timeLimit(.minutes(1))) struct EmulatedSoundTests {
    static let spec = ChirpSpec(fromHz: 17_000, toHz: 19_000)
    static let childFolder = ProcessInfo.processInfo.environment["DOWNBEAT_TEST_AIR"]
    static let childPosition = [3.0, 4, 0]

    static func microphone(
        in folder: String, rate: Int = 48_000, skewPPM: Double = 0, jitter: Double = 0
    ) -> EmulatedDevice<EmulatedMicrophone> {
        var options = EmulatedMicrophone.Options()
        options.rate = rate
        options.skewPPM = skewPPM
        options.jitterMicroseconds = jitter
        options.air = AirPlace(folder: folder, position: [0, 0, 0], noise: 0.002)
        return EmulatedDevice(StreamID(unchecked: "mic"), source: EmulatedMicrophone(options))
    }

    /// Waits until the microphone has heard the whole chirp, and gives back when its first sample came, in host time.
    static func arrival(
        at microphone: EmulatedCollector, expected: Timestamp<HostTime>, rate: Int, skewPPM: Double = 0
    ) async throws -> (nanoseconds: Double, confidence: Double) {
        let content = await microphone.wait { content in
            content.samples.last.map { $0.capture > expected + .milliseconds(600) } ?? false
        }
        let trueRate = Double(rate) * (1 + skewPPM * 1e-6)
        let estimator = ArrivalEstimator(spec: spec, rate: trueRate)
        let first = try #require(content.samples.first)
        let guess = Int((expected - first.capture).seconds * trueRate)
        let reach = rate / 20
        let found = try #require(
            estimator.estimate(content.recording, near: Double(guess), reach: reach).arrival)
        let host = try #require(content.hostTime(ofFrame: found.position, rate: trueRate))
        return (host, found.confidence)
    }

    struct Case: Sendable {
        let speakerRate: Int
        let rate: Int
        let skewPPM: Double
        let latency: Interval
    }

    @Test(
        "a chirp is heard distance/343 m/s after it was emitted, within one sample",
        arguments: [
            Case(speakerRate: 48_000, rate: 48_000, skewPPM: 0, latency: .zero),
            Case(speakerRate: 48_000, rate: 48_000, skewPPM: -300, latency: .milliseconds(37)),
            Case(speakerRate: 44_100, rate: 48_000, skewPPM: 50, latency: .zero),
        ])
    func travel(_ test: Case) async throws {
        let folder = try TemporaryFolder()
        let position = [3.0, 4, 12]
        let speaker = EmulatedSpeaker(
            host: HostID(unchecked: "a"), place: AirPlace(folder: folder.path, position: position, noise: 0),
            rate: test.speakerRate, latency: test.latency)
        let microphone = Self.microphone(in: folder.path, rate: test.rate, skewPPM: test.skewPPM)
        let collector = EmulatedCollector()
        _ = try await microphone.open()
        await microphone.start(collector)
        #expect(try await speaker.open() == test.speakerRate)
        let asked = HostClock.now + .milliseconds(150)
        let emission = try await speaker.play(Chirp.samples(Self.spec, rate: test.speakerRate), at: asked)
        #expect(emission.source == .hardware)
        #expect(emission.instant == asked + test.latency)
        // √(3² + 4² + 12²) = 13 m.
        let expected = emission.instant + .seconds(13.0 / 343)
        let arrival = try await Self.arrival(at: collector, expected: expected, rate: test.rate, skewPPM: test.skewPPM)
        await microphone.stop()
        #expect(abs(arrival.nanoseconds - Double(expected.nanoseconds)) < 1e9 / Double(test.rate))
        #expect(arrival.confidence > 0.8)
        // 0.8 × 0.5 / 13 is an amplitude of 0.031: −30 dB in the chirp's band, and the noise alone is below −60 dB there.
        let recording = collector.content.recording
        let start = Int((expected - collector.content.samples[0].capture).seconds * Double(test.rate))
        let band = BandEnergy(rate: test.rate)
        #expect(band.level(of: recording, at: start - test.rate / 20).decibels < -55)
        #expect(abs(band.level(of: recording, at: start + test.rate / 4).decibels + 30.2) < 1.5)
    }

    @Test("a sound that is asked for too late leaves as soon as possible, and its true time is told")
    func late() async throws {
        let folder = try TemporaryFolder()
        let speaker = EmulatedSpeaker(
            host: HostID(unchecked: "a"), place: AirPlace(folder: folder.path, position: [0, 0, 0], noise: 0))
        let microphone = Self.microphone(in: folder.path)
        let collector = EmulatedCollector()
        _ = try await microphone.open()
        await microphone.start(collector)
        _ = await collector.wait(forSamples: 5)
        let called = HostClock.now
        let emission = try await speaker.play(
            Chirp.samples(Self.spec, rate: 48_000), at: called - .milliseconds(500))
        #expect(emission.instant > called)
        #expect(emission.instant < called + .milliseconds(1000))
        let arrival = try await Self.arrival(at: collector, expected: emission.instant, rate: 48_000)
        await microphone.close()
        #expect(abs(arrival.nanoseconds - Double(emission.instant.nanoseconds)) < 1e9 / 48_000)
    }

    @Test("a task that is cancelled before its sound takes the sound back")
    func cancelled() async throws {
        let folder = try TemporaryFolder()
        let speaker = EmulatedSpeaker(
            host: HostID(unchecked: "a"), place: AirPlace(folder: folder.path, position: [0, 0, 0], noise: 0))
        _ = try await speaker.open()
        let play = Task { try await speaker.play([0.1, 0.2], at: HostClock.now + .seconds(3600)) }
        play.cancel()
        await #expect(throws: CancellationError.self) { try await play.value }
        #expect(try AirFolder(folder.path).names().isEmpty)
        await #expect(throws: DeviceError.self) { try await speaker.play([.nan], at: HostClock.now) }
    }

    @Test("a room that can't be entered is an error at open, with cause and cure")
    func closedRoom() async throws {
        let microphone = Self.microphone(in: "/proc/nowhere/air")
        let error = await #expect(throws: DeviceError.self) { try await microphone.open() }
        #expect(error?.description.contains("/proc/nowhere") == true)
        #expect(error?.cure.isEmpty == false)
    }

    // MARK: Time namespaces

    /// Only runs in the process that the next test starts.
    @Test("child of another time namespace", .enabled(if: childFolder != nil))
    func child() async throws {
        let folder = try #require(Self.childFolder)
        let speaker = EmulatedSpeaker(
            host: HostID(unchecked: "b"),
            place: AirPlace(folder: "\(folder)/air", position: Self.childPosition, noise: 0))
        let rate = try await speaker.open()
        let emission = try await speaker.play(
            Chirp.samples(Self.spec, rate: rate), at: HostClock.now + .milliseconds(200))
        try AtomicFile.write("\(emission.instant.nanoseconds)", to: "\(folder)/emission")
    }

    static let canUnshareTime = geteuid() == 0 && Files.exists("/proc/self/timens_offsets")

    @Test(
        "a chirp crosses to a process whose CLOCK_MONOTONIC is hours away", .enabled(if: canUnshareTime),
        arguments: [3600, -300] as [Int64])
    func namespaces(_ seconds: Int64) async throws {
        // A clock can't be set before its own start; a machine that was just booted can't do the negative one.
        guard HostClock.now.nanoseconds > (-seconds + 10) * 1_000_000_000 else { return }
        let folder = try TemporaryFolder()
        let microphone = Self.microphone(in: "\(folder.path)/air")
        let collector = EmulatedCollector()
        _ = try await microphone.open()
        await microphone.start(collector)
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let status = try await ChildProcess.run(
            "/usr/bin/unshare",
            [
                "--time", "--monotonic", "\(seconds)", "--fork", program, "--testing-library", "swift-testing",
                "--filter", "EmulatedSoundTests/child",
            ], environment: ["DOWNBEAT_TEST_AIR": folder.path])
        try #require(status == 0)
        let text = String(decoding: try Files.read("\(folder.path)/emission"), as: UTF8.self)
        // The child's clock is ours plus `seconds`, as unshare was told; 5 m to (3, 4, 0).
        let emission = try #require(Int64(text)) - seconds * 1_000_000_000
        let expected = Timestamp<HostTime>(nanoseconds: emission) + .seconds(5.0 / 343)
        let arrival = try await Self.arrival(at: collector, expected: expected, rate: 48_000)
        await microphone.close()
        #expect(abs(arrival.nanoseconds - Double(expected.nanoseconds)) < 1e9 / 48_000)
        #expect(arrival.confidence > 0.8)
    }
}
