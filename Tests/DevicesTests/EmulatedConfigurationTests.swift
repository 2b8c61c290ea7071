internal import Devices
internal import Protocol
internal import Testing

@Suite struct EmulatedConfigurationTests {
    static let room = Surroundings(
        host: HostID(unchecked: "a"), air: AirPlace(folder: "/nowhere", position: [1, 2, 3], noise: 0.01))

    static func device(_ text: String, in surroundings: Surroundings = room) throws -> any CaptureDevice {
        var reader = try ConfigReader(file: "agent.json5", text: Array(text.utf8))
        return try DeviceCatalog.device(from: &reader, in: surroundings)
    }

    @Test(
        "each kind is made with its defaults and with all its keys",
        arguments: [
            "{id: 'x', kind: 'emulated-camera'}",
            """
            {id: 'x', kind: 'emulated-camera', format: 'nv12', width: 1280, height: 720, rate: 59.94, skew_ppm: -20,
             phase_ms: 3, jitter_us: 10, latency_ms: 5, seed: -3, drop_percent: 1, stall_after_s: 2, stall_for_s: 1,
             fail_after_s: 4}
            """,
            "{id: 'x', kind: 'emulated-microphone'}",
            """
            {id: 'x', kind: 'emulated-microphone', rate: 44100, channels: 2, skew_ppm: 3.5, jitter_us: 0, gain: 1,
             noise: 0.002, position: [0, 1, 2], seed: 5, drop_percent: 0}
            """,
            "{id: 'x', kind: 'emulated-imu'}",
            """
            {id: 'x', kind: 'emulated-imu', rate: 1000, skew_ppm: 900, counter_start_s: 77, jitter_us: 100, seed: 1,
             fail_after_s: 0.5}
            """,
        ])
    func legal(_ text: String) throws {
        #expect(try Self.device(text).stream.rawValue == "x")
    }

    @Test(
        "what is wrong is named with its key, what was read, and what is legal",
        arguments: [
            ("{id: 'x', kind: 'emulated-camera', width: 641}", ["'width' is 641", "even number from 160 to 3840"]),
            ("{id: 'x', kind: 'emulated-camera', format: 'rgb'}", ["'format' is 'rgb'", "'yuyv', 'nv12', 'yuv420p'"]),
            ("{id: 'x', kind: 'emulated-camera', rate: 0}", ["'rate' is 0", "1.0 to 240.0"]),
            ("{id: 'x', kind: 'emulated-camera', rate: 50, phase_ms: 21}", ["'phase_ms' is 21", "0.0 to 20.0"]),
            ("{id: 'x', kind: 'emulated-camera', framerate: 30}", ["'framerate' is not a key", "'rate'"]),
            ("{id: 'x', kind: 'emulated-camera', drop_percent: 101}", ["'drop_percent' is 101", "0.0 to 100.0"]),
            ("{id: 'x', kind: 'emulated-microphone', rate: 4000}", ["'rate' is 4000", "8000 to 192000"]),
            ("{id: 'x', kind: 'emulated-microphone', position: [1, 2]}", ["'position' is", "3 numbers"]),
            ("{id: 'x', kind: 'emulated-microphone', position: [1, 2, 1e9]}", ["'position' is", "10000.0"]),
            ("{id: 'x', kind: 'emulated-imu', rate: 50}", ["'rate' is 50", "100.0 to 1000.0"]),
            ("{id: 'x', kind: 'emulated-imu', fail_after_s: 'soon'}", ["'fail_after_s' is 'soon'", "a number"]),
            ("{id: 'x', kind: 'emulated-nose'}", ["'kind' is 'emulated-nose'", "'emulated-camera'"]),
        ] as [(String, [String])])
    func illegal(_ text: String, _ words: [String]) throws {
        let error = try #require(throws: ConfigReader.Invalid.self) { try Self.device(text) }
        #expect(error.description.hasPrefix("agent.json5: "))
        for word in words { #expect(error.description.contains(word), "\(error)") }
    }

    @Test("a speaker needs a room")
    func speaker() throws {
        var reader = try ConfigReader(file: "agent.json5", text: Array("{rate: 44100, latency_ms: 20}".utf8))
        let speaker = try EmulatedSpeaker(from: &reader, in: Self.room)
        try reader.finish()
        #expect(speaker.label.contains("/nowhere"))
        var homeless = try ConfigReader(file: "agent.json5", text: Array("{}".utf8))
        let error = try #require(throws: ConfigReader.Invalid.self) {
            try EmulatedSpeaker(from: &homeless, in: Surroundings(host: HostID(unchecked: "a")))
        }
        #expect(error.description.contains("'air'"))
    }

    @Test("emulated kinds are always there")
    func attached() {
        let kinds = ["emulated-camera", "emulated-imu", "emulated-microphone"]
        let found = DeviceCatalog.kinds.flatMap { $0.attached() }.filter { $0.kind.hasPrefix("emulated") }
        #expect(found.map(\.kind).sorted() == kinds)
        #expect(found.allSatisfy { $0.problem == nil && !$0.abilities.isEmpty })
    }
}
