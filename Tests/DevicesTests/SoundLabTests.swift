internal import Acoustics
internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

/// Sound devices against the kernel's own drivers, inside the guest of `Tests/Lab/run drivers sound chirps` and nowhere else.
///
/// The guest has one snd-aloop card, and vhci-hcd, to which a USB microphone in user space can be plugged: its samples are
/// their own numbers, and it says when the first one was captured.
@Suite(
    .enabled(if: ProcessInfo.processInfo.environment["DOWNBEAT_SOUND_LAB"] != nil), .serialized,
    .timeLimit(.minutes(5)))
struct SoundLabTests {
    /// The folder of the lab's programs.
    private let programs = ProcessInfo.processInfo.environment["DOWNBEAT_SOUND_LAB"] ?? ""
    private let id = StreamID(unchecked: "lab")

    /// For the lab's table: "figure usb_skew_error_ppm 0.4".
    private func figure(_ name: String, _ value: Any) { print("figure \(name) \(value)") }

    // MARK: snd-aloop

    @Test(arguments: ALSAMicrophoneOptions.Format.allCases.filter { $0 != .auto })
    func `What a card plays is what it hears, bit by bit, in each format`(
        format: ALSAMicrophoneOptions.Format
    ) async throws {
        var options = ALSAMicrophoneOptions(name: PCMName(card: "Loopback", device: 1))
        (options.channels, options.format) = (2, format)
        let microphone = ALSAMicrophone(id, options)
        let encoding = try #require(try await microphone.open().audio?.encoding)
        // The side that opens first sets the format for both.
        let speaker = ALSASpeaker(name: PCMName(card: "Loopback", device: 0))
        let rate = try await speaker.open()
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        // Never zero, so that its ends can be seen; 240,000 frames but for 32-bit integers, where Float ends at 24 bits.
        let sound = (0..<rate * 5).map { 0.25 + 0.5 * Float($0 % 1000) / 1000 }
        _ = try await speaker.play(sound, at: HostClock.now + .milliseconds(1500))
        let now = sink.content.samples.count
        let content = await sink.wait(forSamples: now + 15)
        await speaker.close()
        await microphone.close()
        let heard = content.samples.flatMap { sample -> [UInt8] in
            if case .audio(let bytes, _) = sample.payload { bytes } else { [] }
        }
        let expected = PCMSamples.bytes(sound, encoding, channels: 2, isPadded: false)
        let size = encoding.bytes * 2
        let first = stride(from: 0, to: heard.count - size + 1, by: size).first { start in
            heard[start..<start + size].contains { $0 != 0 }
        }
        let begin = try #require(first)
        let same = stride(from: 0, to: expected.count, by: size).count { offset in
            begin + offset + size <= heard.count
                && heard[begin + offset..<begin + offset + size] == expected[offset..<offset + size]
        }
        figure("aloop_identical_of_240000_\(encoding.rawValue)", same)
        #expect(same == 240_000)
    }

    // MARK: USB microphone

    /// A running `usb_microphone.py`: its end is an unplug.
    private final class USBMicrophone {
        let process = Process()
        let log: String

        init(programs: String, port: Int, ppm: Double, log: String) throws {
            self.log = log
            process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            process.arguments = [
                "\(programs)/usb_microphone.py", "--port", "\(port)", "--ppm", "\(ppm)", "--log", log,
            ]
            try process.run()
        }

        func unplug() {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }

        /// CLOCK_MONOTONIC of sample 0 of the stream that was begun last, ns.
        var begin: Int64? {
            let text = (try? Files.read(log)).map { String(decoding: $0, as: UTF8.self) } ?? ""
            return text.split(separator: "\n").last?.split(separator: " ").last.flatMap { Int64($0) }
        }
    }

    private func plug(_ ppm: Double, port: Int = 0, log: String) async throws -> USBMicrophone {
        let usb = try USBMicrophone(programs: programs, port: port, ppm: ppm, log: log)
        for _ in 0..<300 where !SoundSystem.alsa.cards(.capture).contains(where: { $0.id == "Labmic" }) {
            try await Task.sleep(for: .milliseconds(100))
        }
        return usb
    }

    private func microphone() -> ALSAMicrophone {
        ALSAMicrophone(id, ALSAMicrophoneOptions(name: PCMName(card: "Labmic", device: 0)))
    }

    /// The number of a block's first sample, and whether its samples count on by one.
    private func numbers(_ sample: Sample) -> (first: UInt16, isWhole: Bool)? {
        guard case .audio(let bytes, let frames) = sample.payload, frames > 0, bytes.count == 2 * frames else {
            return nil
        }
        let values = (0..<frames).map { UInt16(bytes[2 * $0]) | UInt16(bytes[2 * $0 + 1]) << 8 }
        return (values[0], zip(values, values.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
    }

    @Test(arguments: [0, 500, -300] as [Double])
    func `A USB microphone that drifts is measured, and its samples are placed by it`(ppm: Double) async throws {
        let name = ppm == 0 ? "0" : ppm > 0 ? "plus\(Int(ppm))" : "minus\(Int(-ppm))"
        let usb = try await plug(ppm, log: "/tmp/usb-\(name)")
        defer { usb.unplug() }
        let microphone = microphone()
        let description = try await microphone.open()
        figure("usb_label", description.label)
        figure("usb_identity", description.deviceIdentity)
        #expect(description.deviceIdentity.contains("serial MIC-A"))
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        // 30 s of blocks of 20 ms.
        _ = await sink.wait(forSamples: 1500)
        await microphone.close()
        let content = sink.content
        let report = try #require(
            content.events.compactMap { if case .clock(let report) = $0 { report } else { nil } }.last)
        let skew = try #require(report.skewPPM)
        let uncertainty = try #require(report.skewUncertaintyPPM)
        var breaks = 0
        var next: UInt16?
        var errors: [Double] = []
        let begin = try #require(usb.begin)
        for sample in content.samples {
            guard let (first, isWhole) = numbers(sample) else { continue }
            if !isWhole || (next.map { $0 != first } ?? false) { breaks += 1 }
            if case .audio(_, let frames) = sample.payload { next = first &+ UInt16(truncatingIfNeeded: frames) }
            let rate = 48_000 * (1 + ppm * 1e-6)
            let near = Int64((Double(sample.capture.nanoseconds - begin) / 1e9 * rate).rounded())
            var off = (near - Int64(first)) & 0xFFFF
            if off >= 0x8000 { off -= 0x10000 }
            let truth = Double(begin) + Double(near - off) / rate * 1e9
            errors.append((Double(sample.capture.nanoseconds) - truth) / 1e6)
        }
        let settled = errors.dropFirst(250).sorted()
        figure("usb_skew_\(name)_ppm", skew)
        figure("usb_skew_\(name)_uncertainty_ppm", uncertainty)
        figure("usb_skew_\(name)_error_ppm", abs(skew - ppm))
        figure("usb_source", report.source)
        figure("usb_residual_us", (report.residual?.seconds ?? -1) * 1e6)
        figure("usb_\(name)_breaks", breaks)
        figure("usb_\(name)_frames", content.samples.count * 960)
        figure("usb_\(name)_stamp_error_ms_median", settled[settled.count / 2])
        figure("usb_\(name)_stamp_error_ms_spread", (settled.last ?? 0) - (settled.first ?? 0))
        figure("usb_notes", content.events.compactMap { if case .note(let text) = $0 { text } else { nil } })
        #expect(breaks == 0)
        #expect(abs(skew - ppm) <= max(uncertainty, 5))
        // What the kernel hands over late is told by the uncertainty.
        let stated = content.samples.dropFirst(250).map(\.uncertainty.milliseconds).min() ?? 0
        #expect(settled.allSatisfy { abs($0) < max(stated, 2) * 5 })
    }

    @Test func `A USB microphone that is unplugged and plugged in elsewhere goes on in the same stream`() async throws {
        let usb = try await plug(0, log: "/tmp/usb-replug")
        let microphone = microphone()
        _ = try await microphone.open()
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        _ = await sink.wait(forSamples: 100)
        usb.unplug()
        _ = await sink.wait { content in
            content.events.contains { if case .note(let text) = $0 { text.contains("was unplugged") } else { false } }
        }
        let before = sink.content.samples.count
        // The same unit, by its serial number, in another port.
        let again = try await plug(0, port: 1, log: "/tmp/usb-replug")
        defer { again.unplug() }
        _ = await sink.wait(forSamples: before + 150)
        await microphone.close()
        let content = sink.content
        let gaps = content.events.compactMap { event -> Interval? in
            if case .gap(let from, let to, _) = event { to - from } else { nil }
        }
        let notes = content.events.compactMap { if case .note(let text) = $0 { text } else { nil } }
        figure("usb_replug_gaps", gaps.count)
        figure("usb_replug_gap_s", gaps.map(\.seconds))
        figure("usb_replug_unplug_sentences", notes.count { $0.contains("was unplugged") })
        for note in notes { figure("usb_replug_note", note) }
        #expect(gaps.count == 1)
        #expect(notes.count { $0.contains("was unplugged") } == 1)
        #expect(!content.events.contains { if case .failed = $0 { true } else { false } })
        let spans = zip(content.samples, content.samples.dropFirst()).map { ($1.capture - $0.capture).milliseconds }
        #expect(spans.allSatisfy { $0 > 0 })
        #expect(spans.count { $0 > 100 } == 1)
    }

    @Test func `An overrun of a USB microphone is a gap of measured length`() async throws {
        let usb = try await plug(0, log: "/tmp/usb-overrun")
        defer { usb.unplug() }
        let microphone = microphone()
        _ = try await microphone.open()
        let sink = StallingSink(after: 150, milliseconds: 2600)
        try await microphone.start(sink)
        let content = await sink.inner.wait { content in
            content.samples.count >= 400 && content.events.contains { if case .gap = $0 { true } else { false } }
        }
        await microphone.close()
        let gaps = content.events.compactMap { event -> Interval? in
            if case .gap(let from, let to, _) = event { to - from } else { nil }
        }
        figure("usb_overrun_gap_ms", gaps.map(\.milliseconds))
        #expect(gaps.count == 1)
        #expect(gaps.allSatisfy { $0 > .milliseconds(2500) && $0 < .milliseconds(3300) })
        let first = try #require(content.samples.first)
        let last = try #require(content.samples.last)
        let heard = Double(content.samples.count - 1) * 0.02
        let total = (last.capture - first.capture).seconds
        let unexplained = (total - heard - gaps.reduce(0) { $0 + $1.seconds }) * 1000
        figure("usb_overrun_unexplained_ms", abs(unexplained))
        #expect(abs(unexplained) < 10)
    }

    // MARK: Chirps

    @Test func `Chirps are heard as long after their emission each time`() async throws {
        guard ProcessInfo.processInfo.environment["DOWNBEAT_SOUND_CHIRPS"] != nil else { return }
        var options = ALSAMicrophoneOptions(name: PCMName(card: "Loopback", device: 1))
        options.channels = 2
        let microphone = ALSAMicrophone(id, options)
        _ = try await microphone.open()
        let speaker = ALSASpeaker(name: PCMName(card: "Loopback", device: 0))
        let rate = try await speaker.open()
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        _ = await sink.wait(forSamples: 250)
        let start = try #require(ChirpPreset.ultrasonic.startSpec)
        let specs = [start, start.reversed]
        let count = 32
        var emissions: [Emission] = []
        for index in 0..<count {
            emissions.append(
                try await speaker.play(
                    Chirp.samples(specs[index % 2], rate: rate), at: HostClock.now + .milliseconds(900)))
        }
        let now = sink.content.samples.count
        let content = await sink.wait(forSamples: now + 25)
        await speaker.close()
        await microphone.close()
        // The line of the whole recording: where each block's first frame was captured.
        let listener = try #require(ChirpListener(specs: specs, rate: 48_000))
        var heard: [ChirpListener.Heard] = []
        var starts: [(frame: Int, capture: Timestamp<HostTime>)] = []
        var frames = 0
        for sample in content.samples {
            guard case .audio(let bytes, let length) = sample.payload else { continue }
            starts.append((frames, sample.capture))
            frames += length
            heard += listener.push(PCMSamples.channel(1, of: bytes, .s16, channels: 2))
        }
        heard += listener.finish()
        var delays: [Double] = []
        for (index, emission) in emissions.enumerated() {
            let near = heard.compactMap { found -> Double? in
                guard found.template == index % 2,
                    let block = starts.last(where: { Double($0.frame) <= found.arrival.position })
                else { return nil }
                let offset = (found.arrival.position - Double(block.frame)) / 48_000
                let delay = (block.capture + .seconds(offset) - emission.instant).seconds * 1e3
                return abs(delay) < 100 ? delay : nil
            }
            if let delay = near.first { delays.append(delay) }
        }
        let sorted = delays.sorted()
        let constant = sorted.isEmpty ? .nan : sorted[sorted.count / 2]
        let spread = delays.map { abs($0 - constant) }.sorted()
        let squares = spread.reduce(0) { $0 + $1 * $1 }
        figure("chirps_emitted", emissions.count)
        figure("chirps_heard", delays.count)
        figure("chirps_by_hardware", emissions.count { $0.source == .hardware })
        figure("chirps_constant_ms", constant)
        figure("chirps_jitter_rms_us", (squares / Double(max(spread.count, 1))).squareRoot() * 1e3)
        figure("chirps_jitter_p95_us", spread.isEmpty ? .nan : spread[spread.count * 95 / 100] * 1e3)
        figure("chirps_jitter_max_us", (spread.last ?? .nan) * 1e3)
        figure("chirps_stated_uncertainty_ms_max", emissions.map(\.uncertainty.milliseconds).max() ?? -1)
        #expect(delays.count == count)
        // Each is within what the card's statement allows for.
        #expect(zip(delays, emissions).allSatisfy { abs($0 - constant) <= $1.uncertainty.milliseconds + 1 })
    }
}
