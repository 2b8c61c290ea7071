internal import Devices
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// The devices with alsa-lib's own `null` and `file`, on a machine without a sound card.
@Suite(.timeLimit(.minutes(1))) struct ALSADeviceTests {
    private let id = StreamID(unchecked: "mic")

    @Test func `A microphone delivers whole blocks at no more than its rate`() async throws {
        var options = ALSAMicrophoneOptions(name: PCMName(pcm: "null"))
        options.channels = 2
        options.format = .s24
        let microphone = ALSAMicrophone(id, options)
        let description = try await microphone.open()
        #expect(description.audio == AudioFormat(encoding: .s24, rate: 48_000, channels: 2))
        let sink = EmulatedCollector()
        let start = HostClock.now
        try await microphone.start(sink)
        let content = await sink.wait(forSamples: 150)
        await microphone.stop()
        let after = sink.content.samples.count
        // 150 blocks of 20 ms are 3 s; the buffer's 2 s of them may come at once, and one block early.
        #expect(HostClock.now - start > .milliseconds(950))
        var frames: Int64 = 0
        for sample in content.samples {
            guard case .audio(let bytes, let count) = sample.payload else { continue }
            #expect(bytes.count == count * 6)
            #expect(sample.sequence == frames)
            frames += Int64(count)
        }
        await microphone.close()
        #expect(sink.content.samples.count == after)
    }

    @Test func `A speaker writes silence, the sound and silence`() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/played.raw"
        let speaker = ALSASpeaker(name: PCMName(pcm: "file:FILE=\(path),FORMAT=raw"))
        let rate = try await speaker.open()
        #expect(rate == 48_000)
        let sound = (1...4800).map { Float($0) / 4800 }
        _ = try await speaker.play(sound, at: HostClock.now + .milliseconds(400))
        await speaker.close()
        let bytes = try Files.read(path)
        let left = stride(from: 0, to: bytes.count - 3, by: 4).map {
            Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
        }
        let first = try #require(left.firstIndex { $0 != 0 })
        // Sample i is i / 4800 of 32767.
        #expect(
            left[first..<first + 4800].elementsEqual((1...4800).map { Int16((Double($0) / 4800 * 32_767).rounded()) }))
        let tail = left[(first + 4800)...]
        #expect(tail.count >= 4800, "100 ms of silence")
        #expect(tail.allSatisfy { $0 == 0 })
    }

    @Test func `A card that isn't there is named, with those that are`() async {
        let microphone = ALSAMicrophone(id, ALSAMicrophoneOptions(name: PCMName(card: "Absent", device: 0)))
        await #expect {
            _ = try await microphone.open()
        } throws: { error in
            "\(error)".hasPrefix("mic: sound card 'hw:CARD=Absent,DEV=0' isn't attached; plug it in")
        }
    }

    @Test(
        arguments: [
            ("{id: 'm', kind: 'alsa', card: 'Loopback', device: 1, rate: 44100, channels: 2, format: 's32'}", nil),
            ("{id: 'm', kind: 'alsa', pcm: 'null'}", nil),
            ("{id: 'm', kind: 'alsa'}", "'card' is missing"),
            ("{id: 'm', kind: 'alsa', card: '0'}", "'card' is '0'"),
            (
                "{id: 'm', kind: 'alsa', card: 'Mic', pcm: 'null'}",
                "'card' is 'Mic'; legal is 'card' or 'pcm', not both"
            ),
            ("{id: 'm', kind: 'alsa', card: 'Mic', format: 'mp3'}", "'format' is 'mp3'"),
            ("{id: 'm', kind: 'alsa', card: 'Mic', rat: 1}", "'rat' is not a key here"),
            ("{id: 'c', kind: 'v4l2', device: 'A1', format: 'nv12', width: 640, height: 480, rate: 29.97}", nil),
            ("{id: 'c', kind: 'v4l2'}", "'device' is missing"),
            ("{id: 'c', kind: 'v4l2', device: 'A1', rate: 0}", "'rate' is 0"),
        ] as [(String, String?)])
    func `Each key is checked with a sentence`(text: String, complaint: String?) throws {
        var reader = try ConfigReader(file: "agent.json5", text: [UInt8](text.utf8))
        let surroundings = Surroundings(host: HostID(unchecked: "h"))
        if let complaint {
            #expect {
                _ = try DeviceCatalog.device(from: &reader, in: surroundings)
            } throws: { error in
                "\(error)".contains("agent.json5: \(complaint)")
            }
        } else {
            _ = try DeviceCatalog.device(from: &reader, in: surroundings)
        }
    }

    @Test func `A speaker is made from its keys`() throws {
        var reader = try ConfigReader(
            file: "agent.json5", text: [UInt8]("{kind: 'alsa', card: 'Loopback', device: 0}".utf8))
        _ = reader.value("kind")
        let speaker = try ALSASpeaker(from: &reader)
        try reader.finish()
        #expect(speaker.label == "sound card 'hw:CARD=Loopback,DEV=0'")
    }
}
