internal import Devices
internal import Platform
internal import Protocol
internal import Synchronization
internal import Testing
internal import Timing

/// What others reported of sound cards, replayed by a scripted card; the numbers are those of the list of field reports.
@Suite(.timeLimit(.minutes(2))) struct ALSAReportTests {
    private let id = StreamID(unchecked: "mic")
    private typealias Content = EmulatedCollector.Content

    private func options(_ change: (inout ALSAMicrophoneOptions) -> Void = { _ in }) -> ALSAMicrophoneOptions {
        var options = ALSAMicrophoneOptions(name: PCMName(card: "Mic", device: 0))
        change(&options)
        return options
    }

    /// Runs a microphone on a scripted card until the script's end.
    private func record(
        _ script: ScriptedCard.Script, options: ALSAMicrophoneOptions? = nil
    ) async throws -> (content: Content, description: StreamDescription) {
        let card = ScriptedCard(script)
        let microphone = ALSAMicrophone(id, options ?? self.options(), system: card.system)
        let description = try await microphone.open()
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        let end = ScriptedCard.begin + .seconds(script.end - 0.1)
        _ = await sink.wait { content in
            content.samples.last.map { $0.capture + .milliseconds(20) >= end } ?? false
                || content.events.contains { if case .failed = $0 { true } else { false } }
        }
        await microphone.close()
        return (sink.content, description)
    }

    private func gaps(_ content: Content) -> [(length: Interval, cause: String)] {
        content.events.compactMap { if case .gap(let from, let to, let cause) = $0 { (to - from, cause) } else { nil } }
    }

    private func notes(_ content: Content) -> [String] {
        content.events.compactMap { if case .note(let text) = $0 { text } else { nil } }
    }

    private func report(_ content: Content) throws -> DeviceClockReport {
        try #require(content.events.compactMap { if case .clock(let report) = $0 { report } else { nil } }.last)
    }

    /// How far the stamps of the blocks are from when the card really captured them, seconds: the largest one from a
    /// second on.
    private func worst(_ content: Content, ppm: Double = 0, after: Double = 1) -> Double {
        var worst = 0.0
        for sample in content.samples where !sample.isFilling {
            guard case .audio(let bytes, _) = sample.payload, bytes.count >= 2 else { continue }
            let elapsed = (sample.capture - ScriptedCard.begin).seconds
            guard elapsed > after else { continue }
            // The low 16 bits of the first frame's number; the rest is where the stamp puts it.
            let rate = 48_000 * (1 + ppm * 1e-6)
            let low = Int64(bytes[0]) | Int64(bytes[1]) << 8
            let near = Int64((elapsed * rate).rounded())
            var off = (near - low) & 0xFFFF
            if off >= 0x8000 { off -= 0x10000 }
            let truth = Double(near - off) / rate
            worst = max(worst, abs(elapsed - truth))
        }
        return worst
    }

    // MARK: Overruns

    /// The buffer holds 2 s: a program that stands still for 2.3 s loses what is over it, and what was in it.
    @Test func `52, 53: an overrun is one gap of measured length, and what follows is placed right`() async throws {
        var script = ScriptedCard.Script()
        script.stalls = [(at: 2, length: 2.3)]
        script.end = 8
        let (content, _) = try await record(script)
        let gaps = gaps(content)
        #expect(gaps.count == 1)
        // 2.3 s and the block that was being waited for.
        let length = try #require(gaps.first).length
        #expect((length - .milliseconds(2_320)).magnitude < .milliseconds(21))
        #expect(gaps.first?.cause.contains("ran over") == true)
        #expect(worst(content) < 0.3e-3)
        // No silence is invented: what is there are the captured blocks alone.
        #expect(!content.samples.contains { $0.isFilling })
        let frames = content.samples.reduce(0) { $0 + $1.frames }
        let heard = Double(frames) / 48_000
        let span = (content.samples[content.samples.count - 1].capture - content.samples[0].capture).seconds + 0.02
        #expect(abs(span - heard - length.seconds) < 1e-3)
        #expect(try report(content).lines == 2)
    }

    @Test func `52: silence stands for a gap when it was asked for, and it is marked`() async throws {
        var script = ScriptedCard.Script()
        script.stalls = [(at: 2, length: 2.3)]
        script.end = 6
        let (content, _) = try await record(script, options: options { $0.fillsGaps = true })
        let filling = content.samples.filter(\.isFilling)
        let gap = try #require(gaps(content).first)
        let missing = filling.reduce(0) { $0 + $1.frames }
        #expect(missing == Int((gap.length.seconds * 48_000).rounded()))
        #expect(gap.cause.hasSuffix("; \(missing) frames of silence stand in its place"))
        #expect(filling.allSatisfy { $0.bytes.allSatisfy { $0 == 0 } && $0.device == nil && $0.sequence == nil })
        // With it the file's length is the time's.
        let frames = content.samples.reduce(0) { $0 + $1.frames }
        let span = (content.samples[content.samples.count - 1].capture - content.samples[0].capture).seconds + 0.02
        #expect(abs(span - Double(frames) / 48_000) < 1e-3)
    }

    @Test func `53: a stream goes on after each of many overruns`() async throws {
        var script = ScriptedCard.Script()
        script.stalls = (1...5).map { (at: Double($0) * 4, length: 2.5) }
        script.end = 26
        let (content, _) = try await record(script)
        #expect(gaps(content).count == 5)
        #expect(worst(content) < 0.3e-3)
        #expect(!content.events.contains { if case .failed = $0 { true } else { false } })
    }

    // MARK: Stamps

    struct Fallback: Sendable, CustomTestStringConvertible {
        let number: String
        let stamps: ScriptedCard.Stamps
        let words: String
        var testDescription: String { "\(number): \(words)" }
    }

    @Test(arguments: [
        Fallback(number: "55", stamps: .zero, words: "the card gives no stamp"),
        Fallback(number: "55", stamps: .frozen, words: "the card's stamp stands still"),
        Fallback(number: "56", stamps: .realtime(after: 0), words: "isn't on CLOCK_MONOTONIC"),
        Fallback(number: "7", stamps: .realtime(after: 3), words: "isn't on CLOCK_MONOTONIC"),
    ])
    func `A stamp that is zero, frozen or of another clock is replaced by the reading, and the manifest says so`(
        _ row: Fallback
    ) async throws {
        var script = ScriptedCard.Script()
        script.stamps = row.stamps
        script.end = 6
        let (content, _) = try await record(script)
        #expect(notes(content).filter { $0.contains("stamped when they are read") }.count == 1)
        #expect(notes(content).contains { $0.contains(row.words) })
        #expect(worst(content, after: 1) < 1e-3)
        // The first stamp of a card whose stamps stand still can't be told from a good one.
        let isMixed = row.number == "7" || row.words.contains("stands still")
        #expect(try report(content).source == (isMixed ? "htstamp, in part reading" : "reading"))
        let last = try #require(content.samples.last)
        #expect(last.device == nil)
        #expect(last.uncertainty >= .milliseconds(20))
        #expect(zip(content.samples, content.samples.dropFirst()).allSatisfy { $0.capture < $1.capture })
    }

    @Test func `65: the true rate of a card is measured and said, and its samples are placed by it`() async throws {
        var script = ScriptedCard.Script()
        script.ppm = 80
        script.end = 600
        let (content, description) = try await record(script)
        let report = try report(content)
        let skew = try #require(report.skewPPM)
        #expect(abs(skew - 80) < 2)
        #expect(abs(skew - 80) <= (report.skewUncertaintyPPM ?? 0))
        #expect((report.skewUncertaintyPPM ?? .infinity) < 2)
        #expect(report.source == "htstamp" && report.lines == 1)
        #expect(worst(content, ppm: 80, after: 30) < 0.1e-3)
        #expect(description.timestampSource.hasPrefix("sound card (htstamp) by a fitted line"))
        // The raw stamps are kept, with the lateness that they came with.
        let late = content.samples.dropFirst(500).compactMap { sample in
            sample.device.map { $0.nanoseconds - sample.capture.nanoseconds }
        }
        #expect(late.contains { $0 > 150_000 } && late.allSatisfy { $0 > -50_000 && $0 < 250_000 })
        #expect(content.samples.dropFirst(500).allSatisfy { $0.uncertainty == .milliseconds(1) })
    }

    @Test func `A card that tells its link's own clock is placed by that`() async throws {
        var script = ScriptedCard.Script()
        script.stamps = .link
        script.ppm = -40
        script.end = 60
        let (content, _) = try await record(script)
        #expect(worst(content, ppm: -40, after: 5) < 0.1e-3)
        #expect(abs(try #require(try report(content).skewPPM) + 40) < 1)
    }

    // MARK: Unplugged

    @Test func `20: an unplug is one sentence and one gap, and the stream goes on with the same card`() async throws {
        var script = ScriptedCard.Script()
        script.unplug = 2
        script.replug = 4.1
        // 58, 59, 61: it comes back under another number and another id, beside a twin.
        script.replugged = [
            SoundCard(number: 0, id: "Mic", device: 0, label: "Twin", port: "1-4:1.0"),
            SoundCard(number: 2, id: "Mic_1", device: 0, label: "Scripted", port: "1-3:1.0"),
        ]
        script.end = 8
        let card = ScriptedCard(script)
        let microphone = ALSAMicrophone(id, options(), system: card.system)
        let description = try await microphone.open()
        #expect(description.deviceIdentity == "hw:CARD=Mic,DEV=0 (port 1-3:1.0)")
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        let content = await sink.wait { content in
            content.samples.last.map { $0.capture >= ScriptedCard.begin + .seconds(7.8) } ?? false
        }
        await microphone.close()
        #expect(card.state.withLock { $0.opened } == ["hw:CARD=Mic,DEV=0", "hw:CARD=Mic_1,DEV=0"])
        let gap = try #require(gaps(content).first)
        #expect(gaps(content).count == 1)
        #expect(gap.cause == "sound card 'hw:CARD=Mic,DEV=0' was unplugged")
        // From 2 s to the look after 4.1 s.
        #expect(gap.length > .milliseconds(2_050) && gap.length < .milliseconds(2_700))
        #expect(notes(content).filter { $0.contains("was unplugged") }.count == 1)
        #expect(notes(content).filter { $0.contains("is plugged in again, after") }.count == 1)
        #expect(!content.events.contains { if case .failed = $0 { true } else { false } })
        #expect(worst(content) < 0.3e-3)
    }

    @Test func `20: an unplug for good ends with the take, as a gap to its end`() async throws {
        var script = ScriptedCard.Script()
        script.unplug = 1
        let card = ScriptedCard(script)
        let microphone = ALSAMicrophone(id, options(), system: card.system)
        _ = try await microphone.open()
        let sink = EmulatedCollector()
        try await microphone.start(sink)
        _ = await sink.wait {
            $0.events.contains { if case .note(let text) = $0 { text.contains("unplugged") } else { false } }
        }
        await microphone.stop()
        let content = sink.content
        #expect(gaps(content).count == 1)
        #expect(content.events.count { if case .note = $0 { true } else { false } } == 1)
        // The next take finds it gone.
        await #expect { try await microphone.start(sink) } throws: { "\($0)".contains("isn't open") }
    }

    @Test func `An error that is no unplug ends the stream with one sentence`() async throws {
        var script = ScriptedCard.Script()
        script.failure = (at: 1, errno: 5)
        let (content, _) = try await record(script)
        let failures = content.events.compactMap { if case .failed(let text) = $0 { text } else { nil } }
        #expect(failures.count == 1)
        #expect(failures.first?.contains("fails at reading") == true)
    }

    // MARK: Identity

    struct Search: Sendable, CustomTestStringConvertible {
        let what: String
        let name: PCMName
        let cards: [SoundCard]
        /// The number of the card that is found.
        let found: Int?
        var testDescription: String { what }
    }

    private static let left = SoundCard(number: 0, id: "Mic", device: 0, label: "", port: "1-3:1.0", serial: "L")
    private static let right = SoundCard(number: 1, id: "Mic_1", device: 0, label: "", port: "1-4:1.0", serial: "R")
    /// After a reboot: numbers and ids have changed places, the ports haven't.
    private static let swappedLeft = SoundCard(
        number: 1, id: "Mic_1", device: 0, label: "", port: "1-3:1.0", serial: "L")
    private static let swappedRight = SoundCard(
        number: 0, id: "Mic", device: 0, label: "", port: "1-4:1.0", serial: "R")

    @Test(arguments: [
        Search(what: "58: by id", name: PCMName(card: "Mic", device: 0), cards: [left, right], found: 0),
        Search(
            what: "59: by id and port", name: PCMName(card: "Mic", port: "1-3:1.0", device: 0),
            cards: [left, right], found: 0),
        Search(
            what: "59: by id and port, when the kernel counts otherwise",
            name: PCMName(card: "Mic", port: "1-3:1.0", device: 0), cards: [swappedRight, swappedLeft], found: 1),
        Search(
            what: "61: by port alone", name: PCMName(card: nil, port: "1-4:1.0", device: 0),
            cards: [swappedRight, swappedLeft], found: 0),
        Search(
            what: "another make in the port", name: PCMName(card: "Headset", port: "1-4:1.0", device: 0),
            cards: [left, right], found: nil),
        Search(what: "another device", name: PCMName(card: "Mic", device: 1), cards: [left, right], found: nil),
        Search(what: "absent", name: PCMName(card: "Mic", device: 0), cards: [], found: nil),
    ])
    func `A card is found by what stays the same of it`(_ row: Search) {
        guard case .found(let card) = row.name.find(in: row.cards) else {
            #expect(row.found == nil)
            return
        }
        #expect(card.number == row.found)
    }

    @Test func `58, 59: a card that comes back is known by its serial, else by its port, else by its id`() {
        #expect(Self.left.again(in: [Self.swappedRight, Self.swappedLeft])?.number == 1)
        // In another port: the serial number says that it is the one.
        var moved = Self.left
        moved.port = "2-1:1.0"
        #expect(Self.left.again(in: [Self.right, moved]) == moved)
        // Units that share a serial number are told apart by their ports.
        var twin = Self.right
        twin.serial = "L"
        #expect(Self.left.again(in: [twin, Self.left]) == Self.left)
        var bare = Self.left
        bare.serial = nil
        #expect(bare.again(in: [Self.swappedRight, Self.swappedLeft])?.number == 1)
        #expect(bare.again(in: [Self.swappedRight]) == nil)
        let loopback = SoundCard(number: 3, id: "Loopback", device: 1, label: "")
        var renumbered = loopback
        renumbered.number = 0
        #expect(loopback.again(in: [Self.left, renumbered]) == renumbered)
    }

    @Test func `64: a card that is held is named with its holder and the cure`() async {
        var script = ScriptedCard.Script()
        script.openError = 16
        let microphone = ALSAMicrophone(id, options(), system: ScriptedCard(script).system)
        await #expect { _ = try await microphone.open() } throws: { error in
            "\(error)".contains("is held by ") && "\(error)".contains("keep the desktop's sound server off this card")
        }
    }

    @Test func `62: the default PCM, which changes by itself, is refused`() throws {
        var reader = try ConfigReader(
            file: "agent.json5", text: [UInt8]("{id: 'm', kind: 'alsa', pcm: 'default'}".utf8))
        #expect {
            _ = try DeviceCatalog.device(from: &reader, in: Surroundings(host: HostID(unchecked: "h")))
        } throws: {
            "\($0)".contains("a PCM that is always the same card")
        }
    }

    // MARK: Channels

    @Test func `Some channels of many are kept, in the order that was asked for`() async throws {
        // Frames of three channels of two bytes: 1, 2, 3 and 4, 5, 6.
        let bytes: [UInt8] = [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]
        #expect(PCMSamples.picked(bytes, [3, 1], channels: 3, width: 2) == [3, 0, 1, 0, 6, 0, 4, 0])
        var script = ScriptedCard.Script()
        script.end = 1
        let (content, description) = try await record(
            script,
            options: options {
                $0.channels = 8
                $0.picked = [7, 2]
            })
        #expect(description.audio == AudioFormat(encoding: .s16, rate: 48_000, channels: 2))
        #expect(description.label.contains("2 channels (7, 2 of 8)"))
        #expect(content.samples.allSatisfy { $0.bytes.count == $0.frames * 4 })
    }
}

extension Sample {
    fileprivate var frames: Int { if case .audio(_, let frames) = payload { frames } else { 0 } }
    fileprivate var bytes: [UInt8] { if case .audio(let bytes, _) = payload { bytes } else { [] } }
}
